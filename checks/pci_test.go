package checks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// gatherTopology runs the checks that know the machine's shape, in order, on
// a machine in memory. gpus stands in for the answer of the gpus check.
func gatherTopology(tb testing.TB, m *host.Memory, gpus *facts.GPUFacts) *facts.Facts {
	tb.Helper()
	f := &facts.Facts{GPUs: gpus}
	g := checktest.On(m, f)
	for _, c := range []*gather.Check{pci.Check, iommuCheck, affinity.Check, linksCheck} {
		err := c.Gather(tb.Context(), g)
		expect.Must(tb, err == nil, "%s: %v", c.Name, err)
	}
	f.Unknown = g.Unknowns()
	slices.SortFunc(f.Unknown, func(a, b facts.Unknown) int {
		return strings.Compare(a.Section+a.Fact+a.Reason, b.Section+b.Fact+b.Reason)
	})
	return f
}

func deviceOf(tb testing.TB, f *facts.Facts, address string) facts.PCIDevice {
	tb.Helper()
	for _, d := range f.PCI.Devices {
		if d.Address == address {
			return d
		}
	}
	tb.Fatalf("no device %s", address)
	return facts.PCIDevice{}
}

// eightGPU is a recorded bare-metal server of two sockets with eight GPUs behind PCIe switches. Between its GPUs are all
// the types of paths:
//
//	socket 0, root bus 15: switch with GPUs 0 and 1 and NIC 0    PIX
//	          root bus 37: switch with GPU 2 and NIC 1, and a
//	                       second switch below it with GPU 3     PXB
//	socket 1, root bus 97: two root ports, each with a switch,
//	                       GPU 4 with NIC 2, and GPU 5 with NIC 3   PHB
//	          root bus b7: switch with GPUs 6 and 7              PIX; NODE to 4
//
// Every root bus has a hundred functions beside, as a server processor does.
const eightGPU = "model-8x-pcie"

var (
	eightGPUs = []string{"0000:18:00.0", "0000:19:00.0", "0000:3a:00.0", "0000:3e:00.0", "0000:9b:00.0", "0000:9e:00.0", "0000:ba:00.0", "0000:bb:00.0"}
	itsNICs   = []string{"0000:1a:00.0", "0000:3c:00.0", "0000:9c:00.0", "0000:9f:00.0"}
)

// deviceFile is the path of a file of a PCI function.
func deviceFile(address, name string) string { return pci.Devices + "/" + address + "/" + name }

// changeConfig changes the config space of a function.
func changeConfig(tb testing.TB, m *host.Memory, address string, change func(b []byte) []byte) {
	tb.Helper()
	at := deviceFile(address, "config")
	m.AddFile(at, change(slices.Clone(expect.Value(m.ReadFile(at, 4096))(tb))))
}

// pcieLink is a PCIe link: the codes of speeds, 1 (2.5 GT/s) to 6 (64 GT/s), and widths.
type pcieLink struct{ speed, width, maxSpeed, maxWidth int }

// gen is a link that runs at the best that its end can do.
func gen(generation, width int) pcieLink { return pcieLink{generation, width, generation, width} }

// set writes the link into config space, where the PCIe capability of these machines is at 0x60.
func (l pcieLink) set(tb testing.TB, m *host.Memory, address string) {
	tb.Helper()
	changeConfig(tb, m, address, func(b []byte) []byte {
		binary.LittleEndian.PutUint32(b[0x6c:], uint32(l.maxSpeed|l.maxWidth<<4))
		binary.LittleEndian.PutUint16(b[0x72:], uint16(l.speed|l.width<<4))
		return b
	})
}

// showLink writes a link as the kernel shows it in files.
func showLink(m *host.Memory, address string, l *facts.PCIeLink) {
	m.AddFile(deviceFile(address, "current_link_speed"), fmt.Appendf(nil, "%.1f GT/s PCIe\n", l.SpeedGTs))
	m.AddFile(deviceFile(address, "max_link_speed"), fmt.Appendf(nil, "%.1f GT/s PCIe\n", l.MaxSpeedGTs))
	m.AddFile(deviceFile(address, "current_link_width"), fmt.Appendf(nil, "%d\n", l.Width))
	m.AddFile(deviceFile(address, "max_link_width"), fmt.Appendf(nil, "%d\n", l.MaxWidth))
}

// unprivileged is the machine as a user without privileges sees it: 64 bytes of config space, and the links in files.
func unprivileged(tb testing.TB) *host.Memory {
	tb.Helper()
	m := checktest.Rebuilt(tb, eightGPU)
	for _, d := range gatherTopology(tb, m, nil).PCI.Devices {
		if d.Link != nil {
			showLink(m, d.Address, d.Link)
			changeConfig(tb, m, d.Address, func(b []byte) []byte { return b[:64] })
		}
	}
	return m
}

// addFunction adds a PCI function on a root bus, or below a bridge on it.
func addFunction(m *host.Memory, folder, address, class, vendor, device string) {
	m.AddLink(pci.Devices+"/"+address, "../../../devices/"+folder+"/"+address)
	for name, text := range map[string]string{"class": class, "vendor": vendor, "device": device, "numa_node": "-1", "resource": ""} {
		m.AddFile(deviceFile(address, name), []byte(text+"\n"))
	}
}

func TestPCIPrivileged(t *testing.T) {
	m := checktest.Rebuilt(t, "model-8x-pcie-acs")
	gpu, port := eightGPUs[0], "0000:17:00.0"
	pcieLink{1, 16, 5, 16}.set(t, m, gpu)
	changeConfig(t, m, gpu, func(b []byte) []byte { // An entry for ATS, enabled, behind that for resizable BARs.
		binary.LittleEndian.PutUint32(b[0x160:], 0x0015|1<<16|0x1c0<<20)
		binary.LittleEndian.PutUint32(b[0x1c0:], 0x000f|1<<16)
		binary.LittleEndian.PutUint16(b[0x1c6:], 0x8000)
		return b
	})
	f := gatherTopology(t, m, nil)

	want := facts.PCIDevice{
		Address: gpu, Class: "0x030000", Vendor: "0x10de", Device: "0x2bb1", Kind: "gpu", Driver: "nvidia", NUMANode: new(0),
		IOMMUGroup: new(106), RootBus: "pci0000:15", Ancestors: []string{"0000:15:01.0", "0000:16:00.0", port},
		PortType: "endpoint",
		Link:     &facts.PCIeLink{SpeedGTs: 2.5, Width: 16, MaxSpeedGTs: 32, MaxWidth: 16, Source: "config"},
		Extended: true, ATS: &facts.ATS{Enabled: true},
		ResizableBARs: []facts.ResizableBAR{{Index: 2, SizeBytes: 128 << 30, MaxBytes: 128 << 30}},
		BARs:          []facts.BAR{{Index: 0, SizeBytes: 16 << 20}, {Index: 2, SizeBytes: 128 << 30}, {Index: 4, SizeBytes: 32 << 20}},
	}
	expect.NoDiff(t, want, deviceOf(t, f, gpu), "GPU")

	got := deviceOf(t, f, port)
	expect.NoDiff(t, &facts.ACS{Control: []string{"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"}}, got.ACS, "ACS")
	expect.That(t, got.PortType == "downstream-port" && got.Kind == "bridge", "port = %s %s; want a downstream port, a bridge", got.PortType, got.Kind)
	expect.NoDiff(t, nil, checktest.UnknownOf(f, "pci"), "unknown")
}

func TestPCIUnprivileged(t *testing.T) {
	f := gatherTopology(t, unprivileged(t), nil)
	got := deviceOf(t, f, eightGPUs[3])
	expect.NoDiff(t, facts.PCIDevice{
		Address: eightGPUs[3], Class: "0x030000", Vendor: "0x10de", Device: "0x2bb1", Kind: "gpu", Driver: "nvidia", NUMANode: new(0),
		IOMMUGroup: new(218), RootBus: "pci0000:37", Ancestors: got.Ancestors,
		Link: &facts.PCIeLink{SpeedGTs: 32, Width: 16, MaxSpeedGTs: 32, MaxWidth: 16, Source: "sysfs"},
		BARs: got.BARs,
	}, got, "GPU")
	expect.NoDiff(t, []facts.Unknown{{
		Section: "pci", Fact: "devices.config", Reason: "config space beyond 64 bytes needs root",
		Hint: "run as root (in a container with --cap-add SYS_ADMIN)",
	}}, slices.DeleteFunc(f.Unknown, func(u facts.Unknown) bool { return u.Section != "pci" }), "unknown")
}

func TestPCIDamaged(t *testing.T) {
	const truncated = "devices.config: config space is truncated, or its capability list is invalid: 0000:18:00.0"
	type device = facts.PCIDevice
	cut := func(d *device) { d.Extended, d.ResizableBARs = false, nil }
	for _, test := range []struct {
		name    string
		damage  func(b []byte) []byte // It changes the GPU's config space,
		want    func(d *device)       // and this what the undamaged GPU shows.
		unknown string
	}{
		{"fallen off the bus", func(b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) }, func(d *device) {
			*d = device{
				Address: d.Address, Class: d.Class, Vendor: d.Vendor, Device: d.Device, Kind: d.Kind, Driver: d.Driver,
				NUMANode: d.NUMANode, IOMMUGroup: d.IOMMUGroup, RootBus: d.RootBus, Ancestors: d.Ancestors, OffBus: true, BARs: d.BARs,
			}
		}, "devices.config: config space reads as all ones: the device has fallen off the bus or has no power: 0000:18:00.0"},
		{"cut off in the PCIe capability", func(b []byte) []byte { return b[:0x6a] }, func(d *device) {
			cut(d)
			d.Link.Source = "sysfs"
		}, truncated},
		{"cut off in the extended capabilities", func(b []byte) []byte { return b[:0x162] }, cut, truncated},
		{"without extended space", func(b []byte) []byte { return b[:256] }, cut, "devices.extended: extended config space (ACS, ATS, resizable BAR) is not shown: 0000:18:00.0"},
		{
			"masked by a hypervisor, which makes null entries",
			func(b []byte) []byte { copy(b[0x100:], "\x00\x00"); return b },
			func(d *device) { d.Extended = false },
			"devices.extended: the hypervisor masks some extended capabilities (ACS, ATS, resizable BAR): 0000:18:00.0",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := checktest.Rebuilt(t, eightGPU)
			want := deviceOf(t, gatherTopology(t, m, nil), eightGPUs[0])
			showLink(m, want.Address, want.Link)
			changeConfig(t, m, want.Address, test.damage)
			f := gatherTopology(t, m, nil)
			test.want(&want)
			expect.NoDiff(t, want, deviceOf(t, f, eightGPUs[0]), "GPU")
			expect.NoDiff(t, []string{test.unknown}, checktest.UnknownOf(f, "pci"), "unknown")
		})
	}
}

func TestPCIUnreadable(t *testing.T) {
	m := checktest.Rebuilt(t, eightGPU)
	m.AddError(deviceFile(eightGPUs[0], "config"), host.ErrSlow)
	m.AddError(deviceFile(eightGPUs[0], "class"), fs.ErrPermission)
	m.AddError(deviceFile("0000:15:01.0", "config"), fs.ErrPermission)
	m.AddDir(pci.Devices + "/not an address")
	f := gatherTopology(t, m, nil)
	got := deviceOf(t, f, eightGPUs[0])
	expect.That(t, got.Kind == "" && got.Class == "", "kind, class = %q, %q; want none where class cannot be read", got.Kind, got.Class)
	expect.NoDiff(t, []string{
		"devices.class: class, vendor or device cannot be read: " + eightGPUs[0],
		"devices.config: config space cannot be read (permission denied): 0000:15:01.0",
	}, checktest.UnknownOf(f, "pci"), "unknown")
}

func TestPCIFlatVM(t *testing.T) {
	f := gatherTopology(t, checktest.Rebuilt(t, "h200x2"), nil)
	expect.NoDiff(t, facts.PCIDevice{
		Address: "0000:00:00.0", Class: "0x060000", Vendor: "0x8086", Device: "0x0d57", Kind: "host-bridge", NoNUMANode: true, RootBus: "pci0000:00",
	}, deviceOf(t, f, "0000:00:00.0"), "host bridge")
	expect.NoDiff(t, facts.PCIDevice{
		Address: "0000:00:03.0", Class: "0x020000", Vendor: "0x1af4", Device: "0x1041", Kind: "nic", Driver: "virtio-pci", NoNUMANode: true,
		RootBus: "pci0000:00", BARs: []facts.BAR{{Index: 0, SizeBytes: 512 << 10}},
	}, deviceOf(t, f, "0000:00:03.0"), "virtio NIC")
	gpu := deviceOf(t, f, "0000:00:06.0")
	if gpu.Extended || gpu.NUMANode != nil || !gpu.NoNUMANode || gpu.Ancestors != nil || gpu.BARs[1].SizeBytes != 256<<30 {
		t.Errorf("GPU = %+v, want no whole extended space, no node, no ancestors, a BAR of 256 GiB", gpu)
	}
}

func TestPCIVirtualFunction(t *testing.T) {
	m := checktest.Rebuilt(t, eightGPU)
	const vf = "0000:1a:00.1"
	addFunction(m, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0", vf, "0x020700", "0x15b3", "0x101e")
	m.AddLink(deviceFile(vf, "physfn"), "../"+itsNICs[0])
	m.AddFile(deviceFile(vf, "config"), slices.Repeat([]byte{0xff, 0xff, 0xff, 0xff, 6, 0, 0x10, 0}, 8)) // Without ids of its own.
	f := gatherTopology(t, m, nil)
	got := deviceOf(t, f, vf)
	expect.That(t, got.Virtual && !got.OffBus && got.Vendor == "0x15b3", "virtual, off bus, vendor = %t, %t, %s; want true, false, 0x15b3", got.Virtual, got.OffBus, got.Vendor)
	expect.NoDiff(t, deviceOf(t, f, itsNICs[0]).Link, got.Link, "link")
}

func TestPCIMissing(t *testing.T) {
	g := checktest.On(&host.Memory{}, &facts.Facts{})
	err := pci.Check.Gather(t.Context(), g)
	expect.That(t, err != nil && g.Facts.PCI == nil, "error = %v, section = %v; want an error and no section where there is no /sys", err, g.Facts.PCI)
}

func TestPCIKind(t *testing.T) {
	for _, test := range []struct {
		class, vendor, device, address string
		ancestors                      []string
		want                           string
	}{
		{"0x030000", "0x10de", "0x2684", "0000:01:00.0", nil, "gpu"},
		{"0x030200", "0x10de", "0x2335", "0000:01:00.0", nil, "gpu"},
		{"0x038000", "0x1002", "0x740f", "0000:83:00.0", nil, "gpu"},
		{"0x120000", "0x1002", "0x74a1", "0000:83:00.0", nil, "gpu"},
		{"0x120000", "0x1da3", "0x1020", "0000:83:00.0", nil, "other"},
		{"0x030000", "0x1002", "0x744c", "0000:03:00.0", nil, "gpu"},
		{"0x030000", "0x1002", "0x164e", "0000:0f:00.0", nil, "display"}, // Raphael.
		{"0x030000", "0x8086", "0x4692", "0000:00:02.0", nil, "display"}, // Alder Lake.
		{"0x030000", "0x8086", "0x56a0", "0000:03:00.0", []string{"0000:00:01.0"}, "gpu"},
		{"0x030000", "0x1a03", "0x2000", "0000:02:00.0", nil, "display"}, // Aspeed.
		{"0x030000", "0x102b", "0x0538", "0000:02:00.0", nil, "display"}, // Matrox.
		{"0x068000", "0x10de", "0x22a3", "0000:02:00.0", nil, "nvswitch"},
		{"0x068000", "0x8086", "0x22a3", "0000:02:00.0", nil, "other"},
		{"0x020000", "0x1d0f", "0xefa2", "0000:02:00.0", nil, "nic"},
		{"0x020700", "0x15b3", "0x1021", "0000:02:00.0", nil, "nic"},
		{"0x060400", "0x1000", "0xc030", "0000:02:00.0", nil, "bridge"},
		{"0x060000", "0x8086", "0x09a2", "0000:00:00.0", nil, "host-bridge"},
		{"0x010802", "0x144d", "0xa824", "0000:02:00.0", nil, "nvme"},
		{"0x040300", "0x10de", "0x22ba", "0000:01:00.1", nil, "audio"},
		{"0x0c0600", "0x1077", "0x7322", "0000:43:00.0", nil, "nic"},
		{"", "0x10de", "0x22ba", "0000:01:00.1", nil, ""},
		{"0x030000", "", "", "0000:01:00.0", nil, ""},
	} {
		d := facts.PCIDevice{Address: test.address, Class: test.class, Vendor: test.vendor, Device: test.device, Ancestors: test.ancestors}
		expect.Equal(t, test.want, pci.KindOf(&d), "kind of %s %s:%s at %s", test.class, test.vendor, test.device, test.address)
	}
}

// countingSource counts the files that are read and the links that are followed.
type countingSource struct {
	*host.Memory

	reads, bytes atomic.Int64
}

func (s *countingSource) ReadFile(name string, limit int64) ([]byte, error) {
	b, err := s.Memory.ReadFile(name, limit)
	s.reads.Add(1)
	s.bytes.Add(int64(len(b)))
	return b, err
}

func (s *countingSource) ReadLink(name string) (string, error) {
	s.reads.Add(1)
	return s.Memory.ReadLink(name)
}

// TestPCIReads checks that functions which have no part in transfers cost
// little: seven short reads each, and no config space.
func TestPCIReads(t *testing.T) {
	const address = "0000:00:01.0"
	count := func(class string) (reads, bytes int64) {
		s := &countingSource{Memory: &host.Memory{}}
		addFunction(s.Memory, "pci0000:00", address, class, "0x10de", "0x2330")
		s.AddFile(deviceFile(address, "config"), expect.Value(checktest.Rebuilt(t, eightGPU).ReadFile(deviceFile(eightGPUs[0], "config"), 4096))(t))
		expect.NoError(t, pci.Check.Gather(t.Context(), checktest.On(s, &facts.Facts{})))
		return s.reads.Load(), s.bytes.Load()
	}
	reads, bytes := count("0x088000")
	expect.That(t, reads <= 7 && bytes <= 64, "a function without a part in transfers costs %d reads and %d bytes, want at most 7 and 64", reads, bytes)
	reads, bytes = count("0x030200")
	expect.That(t, reads <= 13 && bytes >= 4096, "a GPU costs %d reads and %d bytes, want at most 13, and config space", reads, bytes)
}
