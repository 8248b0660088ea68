// Command release makes and checks what .ci/release publishes beside the program.
package main

import (
	"debug/buildinfo"
	"debug/elf"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	goversion "go/version"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

var errUsage = errors.New(`usage:
    release sbom PROGRAM   write the bill of materials of a program
    release check PROGRAM  check that a program is built as a release`)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "sbom":
		info, err := buildinfo.ReadFile(args[1])
		if err != nil {
			return err
		}
		return writeSBOM(stdout, info)
	case len(args) == 2 && args[0] == "check":
		return check(stdout, args[1])
	}
	return errUsage
}

// writeSBOM writes the bill of materials of a program in the format of CycloneDX.
// The same program gives the same bytes.
func writeSBOM(w io.Writer, info *debug.BuildInfo) error {
	bom := cdx.NewBOM()
	program := component(cdx.ComponentTypeApplication, &info.Main)
	bom.Metadata = &cdx.Metadata{Timestamp: setting(info, "vcs.time"), Component: &program}
	libraries, refs := []cdx.Component{}, []string{}
	for _, m := range modules(info) {
		c := component(cdx.ComponentTypeLibrary, m)
		libraries, refs = append(libraries, c), append(refs, c.BOMRef)
	}
	bom.Components = &libraries
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
}

// modules are the modules that a program is made of beside its own, with the
// standard library by the name that vulnerabilities of it are filed under.
func modules(info *debug.BuildInfo) []*debug.Module {
	all := []*debug.Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, m)
	}
	return all
}

func component(kind cdx.ComponentType, m *debug.Module) cdx.Component {
	c := cdx.Component{Type: kind, Name: m.Path, Version: m.Version, PackageURL: "pkg:golang/" + m.Path + "@" + m.Version}
	c.BOMRef = c.PackageURL
	// The checksum of go.sum: SHA-256 over the names and checksums of the files.
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
		}
	}
	return c
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// check reports all that a program lacks.
func check(stdout io.Writer, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	needs, wants := "macOS", staticBuild
	if setting(info, "GOOS") == "linux" {
		f, err := elf.Open(program)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // It was only read.
		if needs = "no libraries"; isStatic(info) {
			err = static(f)
		} else {
			needs, err = glibc(f)
			err, wants = errors.Join(err, hardened(f)), dynamicBuild
		}
		if err != nil {
			return err
		}
	}
	started, err := starts(program, info)
	if err := errors.Join(stamped(info, wants), err); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: needs %s, revision %s, %d modules, %s\n", program, needs, setting(info, "vcs.revision"), len(info.Deps), started)
	return err
}

func isStatic(info *debug.BuildInfo) bool {
	return slices.Contains(strings.Split(setting(info, "-tags"), ","), "static")
}

// leastGlibc is what README.md promises: Debian 12, Ubuntu 22.04 and RHEL 9 have it.
const leastGlibc = "2.34"

// glibc names the newest version of glibc's symbols that a program uses.
func glibc(f *elf.File) (string, error) {
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return "", err
	}
	newest := "0"
	for _, s := range symbols {
		if v, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && newer(v, newest) {
			newest = v
		}
	}
	if newer(newest, leastGlibc) {
		return "", fmt.Errorf("the program needs glibc %s; README.md promises %s", newest, leastGlibc)
	}
	return "glibc " + newest, nil
}

// newer compares versions of glibc: they are written as Go's are.
func newer(a, b string) bool { return goversion.Compare("go"+a, "go"+b) > 0 }

// static reports what a program that is to run anywhere still needs.
func static(f *elf.File) error {
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		return errors.Join(err, fmt.Errorf("the static program needs %s", strings.Join(libraries, ", ")))
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return errors.New("the static program needs a dynamic loader")
	}
	return nil
}

// hardened reports what an executable lacks of protection.
//
// It cannot have BIND_NOW: go-nvml leaves the functions of NVIDIA's management
// library undefined until the library is loaded, and the program would not start.
func hardened(f *elf.File) error {
	has := func(kind elf.ProgType, without elf.ProgFlag) bool {
		return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == kind && p.Flags&without == 0 })
	}
	switch {
	case f.Type != elf.ET_DYN:
		return fmt.Errorf("the program is %s, not position-independent", f.Type)
	case !has(elf.PT_GNU_STACK, elf.PF_X):
		return errors.New("the stack is executable")
	case !has(elf.PT_GNU_RELRO, 0):
		return errors.New("PT_GNU_RELRO is missing")
	}
	return nil
}

// The settings of the two builds of a release, beside what both have.
var (
	dynamicBuild = map[string]string{"-buildmode": "pie", "CGO_ENABLED": "1"}
	staticBuild  = map[string]string{"-buildmode": "exe", "CGO_ENABLED": "0"}
)

// stamped reports what the build information lacks.
func stamped(info *debug.BuildInfo, settings map[string]string) error {
	var errs []error
	all := map[string]string{"-trimpath": "true", "vcs": "git", "vcs.modified": "false"}
	maps.Copy(all, settings)
	for key, want := range all {
		if got := setting(info, key); got != want {
			errs = append(errs, fmt.Errorf("build setting %s is %q, want %q", key, got, want))
		}
	}
	if revision := setting(info, "vcs.revision"); len(revision) < 40 { // SHA-1, or SHA-256.
		errs = append(errs, fmt.Errorf("build setting vcs.revision is %q", revision))
	}
	return errors.Join(errs...)
}

// emulators run programs of other processors. Debian's qemu-user-static has them.
var emulators = map[string]string{"arm64": "qemu-aarch64-static", "amd64": "qemu-x86_64-static"}

// starts starts the program, under an emulator where it is of another processor, and says
// whether it could. It reports that the program does not say what it was built from.
func starts(program string, info *debug.BuildInfo) (string, error) {
	command, how := []string{program, "--version"}, "starts"
	if system := setting(info, "GOOS"); system != runtime.GOOS {
		return "not started: it is for " + system, nil
	}
	if arch := setting(info, "GOARCH"); arch != runtime.GOARCH {
		emulator, _ := exec.LookPath(emulators[arch]) // Empty where there is none.
		if emulator == "" || !isStatic(info) && os.Getenv("QEMU_LD_PREFIX") == "" {
			return "not started: no emulator for " + arch, nil
		}
		command, how = append([]string{emulator}, command...), "starts under "+emulators[arch]
	}
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, out)
	}
	if revision := setting(info, "vcs.revision"); len(revision) < 12 || !strings.Contains(string(out), "commit "+revision[:12]+",") {
		return "", fmt.Errorf("%s says %q, without the revision %s", strings.Join(command, " "), out, revision)
	}
	return how, nil
}
