package host

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// maxKernelConfig bounds the kernel's configuration: that of a distribution's kernel 6.8 has 290 kB.
const maxKernelConfig = 4 << 20

var (
	errNoKernelConfig = errors.New("neither /proc/config.gz nor a config file for this kernel in /boot or /lib/modules exists")
	errKernelConfig   = errors.New("not a whole kernel configuration")
)

// kernelConfig reads the options of the running kernel: from itself if it was built with IKCONFIG_PROC, otherwise from where
// distributions put them.
func kernelConfig(release string) (KernelConfig, error) {
	names := []string{"/proc/config.gz"}
	if release != "" && !strings.ContainsAny(release, "/\x00") {
		names = append(names, "/boot/config-"+release, "/lib/modules/"+release+"/config", "/usr/lib/modules/"+release+"/config")
	}
	for _, name := range names {
		if c, err := readKernelConfig(name); !errors.Is(err, os.ErrNotExist) {
			return c, err
		}
	}
	return KernelConfig{}, errNoKernelConfig
}

func readKernelConfig(name string) (KernelConfig, error) {
	f, err := open(name, regular)
	if err != nil {
		return KernelConfig{}, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	options, err := parseKernelConfig(io.LimitReader(f, maxKernelConfig), strings.HasSuffix(name, ".gz"))
	if err != nil {
		return KernelConfig{}, fmt.Errorf("read %s: %w", name, err)
	}
	return KernelConfig{Source: name, Options: options}, nil
}

// parseKernelConfig reads lines such as "CONFIG_A=y" and "# CONFIG_B is not set". An option that is not named could not be
// chosen, so all of it must have been read.
func parseKernelConfig(r io.Reader, compressed bool) (map[string]string, error) {
	if compressed {
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = unpacked
	}
	text, err := io.ReadAll(io.LimitReader(r, maxKernelConfig))
	if err != nil {
		return nil, err
	}
	options := make(map[string]string, len(wantedKernelOptions))
	named := 0
	for line := range strings.Lines(string(text)) {
		name, value, ok := kernelOption(line)
		if ok {
			named++
		}
		if wantedKernelOption(name, value) {
			options[name] = value
		}
	}
	if named < 100 || len(text) == maxKernelConfig { // The smallest kernel that has a PCI bus names a thousand.
		return nil, errKernelConfig
	}
	for _, name := range wantedKernelOptions {
		options[name] = cmp.Or(options[name], "n")
	}
	return options, nil
}

// kernelOption reads a line of a configuration (scripts/kconfig/confdata.c).
func kernelOption(line string) (name, value string, ok bool) {
	line = strings.TrimSpace(line)
	if comment, is := strings.CutPrefix(line, "# "); is {
		if off, isOff := strings.CutSuffix(comment, " is not set"); isOff {
			line = off + "=n"
		}
	}
	name, value, ok = strings.Cut(line, "=")
	return name, value, ok && strings.HasPrefix(name, "CONFIG_")
}

func wantedKernelOption(name, value string) bool {
	return slices.Contains(wantedKernelOptions, name) && (value == "y" || value == "m" || value == "n")
}

// KernelOption is a line's option, if checks need it.
func KernelOption(line string) (name, value string, ok bool) {
	name, value, ok = kernelOption(line)
	return name, value, ok && wantedKernelOption(name, value)
}
