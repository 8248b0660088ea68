// Package rootfs reads a machine from a copy of its /sys and /proc, such as those of hwloc-gather-topology and sosreport. What
// the copy lacks may exist on the machine.
package rootfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/pci"
)

// Bounds of a tree. Of a machine with 8 GPUs, 15,000 files and links with 2 MB are kept.
const (
	maxEntries = 60_000
	maxKept    = 24 << 20
	// MaxFile is how much of a file is kept.
	MaxFile = host.MaxFile
	// MaxTarget is PATH_MAX (include/uapi/linux/limits.h), which bounds the target of a link.
	MaxTarget = 4096
)

// ErrTooLarge is returned for what is beyond the bounds. The rest is unknown.
var ErrTooLarge = fmt.Errorf("more than %d files and links of /sys and /proc, or %d MiB", maxEntries, maxKept>>20)

type notInTree struct{ why string }

func (e *notInTree) Error() string { return e.why }

// Is makes it host.ErrNotRecorded to checks.
func (e *notInTree) Is(target error) bool { return target == host.ErrNotRecorded }

var (
	errNotInTree = &notInTree{"not in this tree"}
	errEmpty     = &notInTree{"empty in this tree"}
	errUnread    = &notInTree{"in this tree, and not read"}
	errCut       = &notInTree{"the tree ends before it"}
)

// Budget is what may still be kept of trees. Those that are read together share it.
type Budget struct{ entries, kept int }

// Machine is a machine whose files are added one by one.
type Machine struct {
	budget *Budget
	files  host.Memory
	cut    bool
}

// New returns a machine without files.
func New(budget *Budget) *Machine { return &Machine{budget: budget} }

func (m *Machine) take(size int) error {
	m.budget.entries++
	m.budget.kept += size
	if m.budget.entries > maxEntries || m.budget.kept > maxKept {
		return ErrTooLarge
	}
	return nil
}

// AddFile adds a file.
func (m *Machine) AddFile(at string, from io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(from, MaxFile+1))
	if err != nil {
		m.files.AddError(at, errUnread)
		return err
	}
	if err := m.take(len(data)); err != nil {
		return err
	}
	whole := len(data) <= MaxFile
	if data = content(at, data); len(data) == 0 && !strings.HasPrefix(at, "/sys/") {
		// Files of /proc have no size, so that some archivers take nothing of them.
		m.files.AddError(at, errEmpty)
		return nil
	}
	if whole {
		m.files.AddFile(at, data)
		return nil
	}
	m.files.AddPart(at, data[:MaxFile:MaxFile], host.FileInfo{Mode: 0o444, Size: int64(len(data))})
	return nil
}

// AddUnread adds a file that could not be read.
func (m *Machine) AddUnread(at string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		err = errUnread
	}
	m.files.AddError(at, err)
	return m.take(0)
}

// AddLink adds a symbolic link. It is followed in the tree.
func (m *Machine) AddLink(at, target string) error {
	if target == "" || len(target) > MaxTarget || strings.ContainsRune(target, 0) {
		return m.AddUnread(at, errUnread)
	}
	m.files.AddLink(at, target)
	return m.take(len(target))
}

// AddDir adds a folder, which may be empty.
func (m *Machine) AddDir(at string) error {
	m.files.AddDir(at)
	return m.take(0)
}

// Cut notes that the tree ends before its time: any of its folders may hold more.
func (m *Machine) Cut() { m.cut = true }

// Host returns the machine as checks read it.
func (m *Machine) Host() *host.Host {
	m.files.Missing = errNotInTree
	s := &source{&m.files, m.cut}
	if names, ok := uname(s); ok {
		m.files.Answer(host.AskUname, names)
	}
	return host.New(s)
}

// content is a file's content without the zeros with which GNU tar fills up what has less than a page ("file shrank").
func content(at string, data []byte) []byte {
	switch {
	case !strings.HasPrefix(at, "/sys/"):
		return data
	case path.Base(at) == "config":
		return config(data)
	}
	return bytes.TrimRight(data, "\x00")
}

// config is the part of a PCI function's config space that was shown to who copied it: without root, the header.
func config(data []byte) []byte {
	// The bit of the header's status that promises capabilities (include/uapi/linux/pci_regs.h, PCI_STATUS_CAP_LIST).
	const header, status, capabilities = 64, 6, 0x10
	if len(data) > header && data[status]&capabilities != 0 && len(bytes.Trim(data[header:], "\x00")) == 0 {
		return data[:header]
	}
	return data
}

type source struct {
	*host.Memory
	cut bool
}

func (s *source) ReadDir(name string) ([]string, error) {
	names, err := s.Memory.ReadDir(name)
	if err != nil {
		return nil, err
	}
	clean := path.Clean(name)
	switch {
	case strings.Count(clean, "/") < 2:
		err = errNotInTree
	case len(names) == 0 && clean == pci.Devices:
		err = errEmpty // The copy of a /sys that was masked, or of its folders alone.
	case s.cut:
		err = errCut
	default:
		return names, nil
	}
	return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
}

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
