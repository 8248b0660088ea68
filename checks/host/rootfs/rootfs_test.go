package rootfs_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/host/rootfs"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestSplit(t *testing.T) {
	for name, want := range map[string][2]string{
		"sys/bus/pci/devices":                          {"", "/sys/bus/pci/devices"},
		"./proc/cpuinfo":                               {"", "/proc/cpuinfo"},
		"/proc/sys/kernel/osrelease":                   {"", "/proc/sys/kernel/osrelease"},
		"sosreport-node7-2026/sys/class/iommu":         {"sosreport-node7-2026", "/sys/class/iommu"},
		"a/../../b/sys/devices/pci0000:00":             {"b", "/sys/devices/pci0000:00"},
		"node/proc/1234/status":                        {"node", "/proc/1234/status"},
		"linux-6.8/include/sys/types.h":                {},
		"sys":                                          {},
		"sos_commands/process/proc/x":                  {},
		"var/log/sys/log":                              {},
		"case/node1/var/lib/c/1/sys/bus/pci/devices/x": {"case/node1/var/lib/c/1", "/sys/bus/pci/devices/x"},
	} {
		root, at, ok := rootfs.Split(name)
		expect.That(t, ok == (want[1] != "") && root == want[0] && at == want[1], "%s: got %q, %q, %t, want %q", name, root, at, ok, want)
	}
}

// TestKeepsRecorded checks that all files of /sys and /proc that the recorded machines hold are kept,
// and that no folder above them is left out. Recordings of another time hold some that no check reads today.
func TestKeepsRecorded(t *testing.T) {
	unread := func(at string) bool {
		return strings.HasPrefix(at, "/sys/fs/cgroup/") || path.Dir(path.Dir(at)) == "/proc"
	}
	seen := 0
	for _, name := range fixtures.Examples() {
		files, _ := checktest.SplitRecording(t, name)
		for name, file := range files {
			_, at, ok := rootfs.Split(name)
			if !ok || file.Mode.IsDir() || unread(at) {
				continue
			}
			seen++
			expect.That(t, rootfs.Keeps(at), "%s is not kept", at)
			for folder := path.Dir(at); strings.Count(folder, "/") > 1; folder = path.Dir(folder) {
				expect.That(t, !rootfs.Prunes(folder), "%s is left out, with %s", folder, at)
			}
		}
	}
	expect.AtLeast(t, 1000, seen, "files were seen")
	for _, at := range []string{"/sys/devices/system/cpu/cpu0/cache", "/sys/kernel/slab", "/sys/devices/system/node/node0/memory12", "/proc/1234", "/sys/devices/virtual/tty"} {
		expect.That(t, !rootfs.Keeps(at) && rootfs.Prunes(at), "%s is looked at", at)
	}
}

func TestLinksStayInside(t *testing.T) {
	m := rootfs.New(&rootfs.Budget{})
	add := func(err error) {
		t.Helper()
		expect.NoError(t, err)
	}
	const function = "/sys/devices/pci0000:00/0000:00:01.0"
	add(m.AddFile(function+"/vendor", strings.NewReader("0x10de\n")))
	add(m.AddLink("/sys/bus/pci/devices/0000:00:01.0", "../../../../../../../sys/devices/pci0000:00/0000:00:01.0"))
	add(m.AddLink("/sys/bus/pci/devices/0000:00:02.0", function))
	add(m.AddLink("/sys/bus/pci/devices/0000:00:03.0", "../../../../../../etc"))
	add(m.AddLink("/sys/bus/pci/devices/0000:00:04.0", "0000:00:04.0"))
	add(m.AddLink("/sys/bus/pci/devices/0000:00:05.0", strings.Repeat("a/", 3000)))
	h := m.Host()
	for address, want := range map[string]string{"0000:00:01.0": "0x10de", "0000:00:02.0": "0x10de", "0000:00:03.0": "", "0000:00:04.0": "", "0000:00:05.0": ""} {
		got, err := h.Text("/sys/bus/pci/devices/" + address + "/vendor")
		expect.That(t, got == want && (err != nil) == (want == ""), "%s: got %q, %v", address, got, err)
		expect.That(t, !errors.Is(err, fs.ErrNotExist), "%s: that it is not in the tree shows that it does not exist: %v", address, err)
	}
}

func TestContent(t *testing.T) {
	m := rootfs.New(&rootfs.Budget{})
	const function = "/sys/devices/pci0000:00/0000:00:01.0"
	header := make([]byte, 4096) // As GNU tar fills up the 64 bytes that a user can read.
	copy(header, "\xde\x10\x30\x23\x06\x04\x10\x00")
	whole := bytes.Clone(header)
	whole[0x40] = 1
	for at, data := range map[string][]byte{
		function + "/class":                           append([]byte("0x030200\n"), make([]byte, 4096)...),
		function + "/ras/gpu_vram_bad_pages":          make([]byte, 4096),
		function + "/config":                          header,
		"/sys/devices/pci0000:00/0000:00:02.0/config": whole,
		"/proc/cpuinfo":                               nil,
	} {
		expect.NoError(t, m.AddFile(at, bytes.NewReader(data)))
	}
	h := m.Host()
	s, err := h.Text(function + "/class")
	expect.That(t, err == nil && s == "0x030200", "class is %q, %v", s, err)
	b, err := h.Read(function + "/ras/gpu_vram_bad_pages")
	expect.That(t, err == nil && len(b) == 0, "an empty list is %q, %v", b, err)
	b, err = h.ReadPart(function+"/config", 4096)
	expect.That(t, err == nil && len(b) == 64, "the header has %d bytes, %v", len(b), err)
	b, err = h.ReadPart("/sys/devices/pci0000:00/0000:00:02.0/config", 4096)
	expect.That(t, err == nil && len(b) == 4096, "config space has %d bytes, %v", len(b), err)
	expect.Fails(h.Read("/proc/cpuinfo"))(t, host.ErrNotRecorded, "a file of /proc of which nothing was taken")
}

// TestMasked checks that a /sys of folders alone, as of a container that masks it, does not show that
// there is no PCI device.
func TestMasked(t *testing.T) {
	m := rootfs.New(&rootfs.Budget{})
	expect.NoError(t, m.AddDir("/sys/bus/pci/devices"))
	names, err := m.Host().Dir("/sys/bus/pci/devices")
	expect.That(t, errors.Is(err, host.ErrNotRecorded), "got %q, %v", names, err)
}

func TestBounds(t *testing.T) {
	m := rootfs.New(&rootfs.Budget{})
	expect.NoError(t, m.AddFile("/proc/cpuinfo", io.LimitReader(zeros{}, 1<<40)))
	expect.Fails(m.Host().ReadPart("/proc/cpuinfo", 1<<30))(t, nil, "a part of a giant file passes for the whole of it")
	expect.ErrorIs(t, io.ErrUnexpectedEOF, m.AddFile("/proc/meminfo", iotest.ErrReader(io.ErrUnexpectedEOF)), "a broken file gives")
	var err error
	for range 100_000 {
		if err = m.AddDir("/sys/class/net"); err != nil {
			break
		}
	}
	expect.ErrorIs(t, rootfs.ErrTooLarge, err, "without end")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestUname(t *testing.T) {
	for name, c := range map[string]struct{ version, cpuinfo, release, arch string }{
		"x86":             {"Linux version 6.8.0-41-generic (buildd@x) #41", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu lm nx\n", "6.8.0-41-generic", "x86_64"},
		"i686":            {"", "vendor_id\t: GenuineIntel\nflags\t\t: fpu nx\n", "", ""},
		"arm64":           {"", "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\n", "", "aarch64"},
		"red hat's power": {"Linux version 4.14.0-49.el7a.ppc64le (x)", "cpu\t\t: POWER9\n", "4.14.0-49.el7a.ppc64le", "ppc64le"},
	} {
		m := rootfs.New(&rootfs.Budget{})
		for at, data := range map[string]string{"/proc/version": c.version, "/proc/cpuinfo": c.cpuinfo} {
			expect.NoError(t, m.AddFile(at, strings.NewReader(data)))
		}
		var got host.Uname
		err := m.Host().Ask(t.Context(), host.AskUname, &got)
		expect.That(t, (err == nil || c.arch+c.release == "") && got.Release == c.release && got.Machine == c.arch, "%s: got %+v, %v", name, got, err)
	}
}

// FuzzTree checks that no archive makes a tree show that something does not exist, whatever
// its links and however it ends.
func FuzzTree(f *testing.F) {
	link := func(to string) *fstest.MapFile { return &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte(to)} }
	f.Add(checktest.Tar(f, "", fstest.MapFS{
		"sys/devices/pci0000:00/0000:00:01.0/vendor": {Data: []byte("0x10de\n")},
		"sys/bus/pci/devices/0000:00:01.0":           link("../../../devices/pci0000:00/0000:00:01.0"),
	}), 0)
	f.Add(checktest.Tar(f, "", fstest.MapFS{"sys/class/net": link("net"), "sys/class/net/eth0/x": {Data: []byte("1")}}), 600)
	f.Add(checktest.Tar(f, "", fstest.MapFS{"proc/self/status": link("../../../.."), "proc/self/status/x": link("/")}), 0)
	f.Fuzz(func(t *testing.T, archive []byte, cut int) {
		if cut > 0 && cut < len(archive) {
			archive = archive[:cut]
		}
		m := rootfs.New(&rootfs.Budget{})
		var seen []string
		members := tar.NewReader(bytes.NewReader(archive))
		for {
			head, err := members.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					m.Cut()
				}
				break
			}
			_, at, ok := rootfs.Split(head.Name)
			if !ok || !rootfs.Keeps(at) {
				continue
			}
			seen = append(seen, at)
			switch head.Typeflag {
			case tar.TypeReg:
				err = m.AddFile(at, members)
			case tar.TypeSymlink:
				err = m.AddLink(at, head.Linkname)
			case tar.TypeDir:
				err = m.AddDir(at)
			default:
			}
			if errors.Is(err, rootfs.ErrTooLarge) {
				break
			}
		}
		h := m.Host()
		for _, at := range append(seen, "/", "/sys", "/sys/bus/pci/devices", "/sys/class/iommu", "/proc/self/status", "/etc/passwd") {
			_, read := h.Read(at)
			_, list := h.Dir(at)
			_, link := h.Link(at)
			_, stat := h.Stat(at)
			_, resolve := h.Real(at)
			for _, err := range []error{read, list, link, stat, resolve} {
				expect.That(t, !errors.Is(err, fs.ErrNotExist), "%s: %v", at, err)
			}
		}
	})
}
