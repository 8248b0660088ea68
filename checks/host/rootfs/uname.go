package rootfs

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/host"
)

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
	// Red Hat and SUSE end the name of a kernel in the machine, and each architecture of Linux has a form of
	// /proc/cpuinfo of its own (arch/*/kernel, show_cpuinfo or c_show).
	last, cpus := strings.TrimPrefix(path.Ext(names.Release), "."), text("/proc/cpuinfo")
	switch {
	case slices.Contains([]string{"aarch64", "ppc64le", "x86_64"}, last):
		names.Machine = last
	case host.Value(cpus, "CPU architecture") == "8":
		names.Machine = "aarch64"
	case slices.Contains(strings.Fields(host.Value(cpus, "flags")), "lm"): // Long mode: a kernel of 32 bits drives no GPU of today.
		names.Machine = "x86_64"
	}
	return names, names != host.Uname{}
}
