package rootfs

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/host"
)

// uname returns the names that the kernel gives itself, as far as files tell them.
func uname(s host.Source) (names host.Uname, ok bool) {
	text := func(name string) string {
		b, err := s.ReadFile(name, host.MaxFile)
		if err != nil {
			return ""
		}
		return string(bytes.TrimSpace(b))
	}
	names.Node, names.Release = text("/proc/sys/kernel/hostname"), text("/proc/sys/kernel/osrelease")
	if rest, is := strings.CutPrefix(text("/proc/version"), "Linux version "); is && names.Release == "" {
		names.Release, _, _ = strings.Cut(rest, " ")
	}
	if names.Machine = architectureOfRelease(names.Release); names.Machine == "" {
		names.Machine = architecture(text("/proc/cpuinfo"))
	}
	return names, names != host.Uname{}
}

// architectureOfRelease is the machine that the name of a kernel ends in, as Red Hat and SUSE
// name theirs: "4.18.0-513.el8.ppc64le".
func architectureOfRelease(release string) string {
	last := strings.TrimPrefix(path.Ext(release), ".")
	if slices.Contains([]string{"aarch64", "ppc64", "ppc64le", "riscv64", "s390x", "x86_64"}, last) {
		return last
	}
	return ""
}

// architecture tells the machine from the form of /proc/cpuinfo, which each architecture
// of Linux has its own (arch/*/kernel, show_cpuinfo or c_show); empty if it does not tell.
// The byte order of POWER is not in it.
func architecture(cpuinfo string) string {
	for _, known := range forms {
		for line := range strings.Lines(cpuinfo) {
			key, value, _ := strings.Cut(line, ":")
			if strings.TrimSpace(key) == known.key && strings.Contains(" "+strings.TrimSpace(value)+" ", known.value) {
				return known.machine
			}
		}
	}
	return ""
}

// forms are lines of /proc/cpuinfo by which an architecture is known.
var forms = []struct{ key, value, machine string }{
	{"arch", " IA-64 ", "ia64"},
	{"vendor_id", " IBM/S390 ", "s390x"},
	{"CPU architecture", " 8 ", "aarch64"},
	{"isa", " rv64", "riscv64"},
	{"flags", " lm ", "x86_64"}, // Long mode: a kernel of 32 bits drives no GPU of today.
}
