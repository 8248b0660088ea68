package checks

import (
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

func functionAt(tb testing.TB, tree *checktest.Tree, address string) *checktest.Function {
	tb.Helper()
	for _, f := range tree.Functions {
		if f.Address == address {
			return f
		}
	}
	tb.Fatalf("no function %s", address)
	return nil
}

func TestPCIPrivileged(t *testing.T) {
	tree, gpus, _ := checktest.EightGPU()
	port := functionAt(t, tree, "0000:17:00.0")
	port.ACS = checktest.ACSRedirect()
	gpus[0].Link = checktest.Link{Speed: 1, Width: 16, MaxSpeed: 5, MaxWidth: 16}
	gpus[0].ATS = new(true)
	f := gatherTopology(t, checktest.MemoryOf(tree), nil)

	want := facts.PCIDevice{
		Address: gpus[0].Address, Class: "0x030200", Vendor: "0x10de", Device: "0x2330", Kind: "gpu", Driver: "nvidia", NUMANode: new(0),
		IOMMUGroup: new(gpus[0].Group), RootBus: "pci0000:15", Ancestors: []string{"0000:15:01.0", "0000:16:00.0", "0000:17:00.0"},
		PortType: "endpoint",
		Link:     &facts.PCIeLink{SpeedGTs: 2.5, Width: 16, MaxSpeedGTs: 32, MaxWidth: 16, Source: "config"},
		Extended: true, ATS: &facts.ATS{Enabled: true},
		ResizableBARs: []facts.ResizableBAR{{Index: 2, SizeBytes: 128 << 30, MaxBytes: 128 << 30}},
		BARs:          []facts.BAR{{Index: 0, SizeBytes: 16 << 20}, {Index: 2, SizeBytes: 128 << 30}, {Index: 4, SizeBytes: 32 << 20}},
	}
	expect.NoDiff(t, want, deviceOf(t, f, gpus[0].Address), "GPU")

	got := deviceOf(t, f, port.Address)
	expect.NoDiff(t, &facts.ACS{Control: []string{"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"}}, got.ACS, "ACS")
	expect.That(t, got.PortType == "downstream-port" && got.Kind == "bridge", "port = %s %s; want a downstream port, a bridge", got.PortType, got.Kind)
	expect.NoDiff(t, nil, checktest.UnknownOf(f, "pci"), "unknown")
}

func TestPCIUnprivileged(t *testing.T) {
	tree, gpus, _ := checktest.EightGPU()
	m := &host.Memory{}
	tree.Write(m, false)
	f := gatherTopology(t, m, nil)
	got := deviceOf(t, f, gpus[3].Address)
	expect.NoDiff(t, facts.PCIDevice{
		Address: gpus[3].Address, Class: "0x030200", Vendor: "0x10de", Device: "0x2330", Kind: "gpu", Driver: "nvidia", NUMANode: new(0),
		IOMMUGroup: new(gpus[3].Group), RootBus: "pci0000:37", Ancestors: got.Ancestors,
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
		damage  checktest.Function // What is not zero, is put into the GPU.
		want    func(d *device)    // It changes what the undamaged GPU shows.
		unknown string
	}{
		{"fallen off the bus", checktest.Function{OffBus: true}, func(d *device) {
			*d = device{
				Address: d.Address, Class: d.Class, Vendor: d.Vendor, Device: d.Device, Kind: d.Kind, Driver: d.Driver,
				NUMANode: d.NUMANode, IOMMUGroup: d.IOMMUGroup, RootBus: d.RootBus, Ancestors: d.Ancestors, OffBus: true, BARs: d.BARs,
			}
		}, "devices.config: config space reads as all ones: the device has fallen off the bus or has no power: 0000:18:00.0"},
		{"cut off in the PCIe capability", checktest.Function{ConfigBytes: 0x6a}, func(d *device) {
			cut(d)
			d.Link.Source = "sysfs"
		}, truncated},
		{"cut off in the extended capabilities", checktest.Function{ConfigBytes: 0x162}, cut, truncated},
		{"without extended space", checktest.Function{ConfigBytes: 256}, cut, "devices.extended: extended config space (ACS, ATS, resizable BAR) is not shown: 0000:18:00.0"},
		{
			"masked by a hypervisor",
			checktest.Function{Masked: true},
			func(d *device) { d.Extended = false },
			"devices.extended: the hypervisor masks some extended capabilities (ACS, ATS, resizable BAR): 0000:18:00.0",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tree, gpus, _ := checktest.EightGPU()
			want := deviceOf(t, gatherTopology(t, checktest.MemoryOf(tree), nil), gpus[0].Address)
			gpus[0].OffBus, gpus[0].Masked = test.damage.OffBus, test.damage.Masked
			if test.damage.ConfigBytes > 0 {
				gpus[0].ConfigBytes = test.damage.ConfigBytes
			}
			f := gatherTopology(t, checktest.MemoryOf(tree), nil)
			test.want(&want)
			expect.NoDiff(t, want, deviceOf(t, f, gpus[0].Address), "GPU")
			expect.NoDiff(t, []string{test.unknown}, checktest.UnknownOf(f, "pci"), "unknown")
		})
	}
}

func TestPCIUnreadable(t *testing.T) {
	tree, gpus, _ := checktest.EightGPU()
	m := checktest.MemoryOf(tree)
	dir := "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/" + gpus[0].Address
	m.AddError(dir+"/config", host.ErrSlow)
	m.AddError(dir+"/class", fs.ErrPermission)
	m.AddError("/sys/bus/pci/devices/0000:15:01.0/config", fs.ErrPermission)
	m.AddDir("/sys/bus/pci/devices/not an address")
	f := gatherTopology(t, m, nil)
	got := deviceOf(t, f, gpus[0].Address)
	expect.That(t, got.Kind == "" && got.Class == "", "kind, class = %q, %q; want none where class cannot be read", got.Kind, got.Class)
	expect.NoDiff(t, []string{
		"devices.class: class, vendor or device cannot be read: " + gpus[0].Address,
		"devices.config: config space cannot be read (permission denied): 0000:15:01.0",
	}, checktest.UnknownOf(f, "pci"), "unknown")
}

func TestPCIFlatVM(t *testing.T) {
	tree, gpus := checktest.FlatVM(2)
	f := gatherTopology(t, checktest.MemoryOf(tree), nil)
	expect.NoDiff(t, facts.PCIDevice{
		Address: "0000:00:00.0", Class: "0x060000", Vendor: "0x8086", Device: "0x0d57", Kind: "host-bridge", NoNUMANode: true, RootBus: "pci0000:00",
	}, deviceOf(t, f, "0000:00:00.0"), "host bridge")
	expect.NoDiff(t, facts.PCIDevice{
		Address: "0000:00:02.0", Class: "0x020000", Vendor: "0x1af4", Device: "0x1041", Kind: "nic", Driver: "virtio-pci", NoNUMANode: true,
		RootBus: "pci0000:00", BARs: []facts.BAR{{Index: 0, SizeBytes: 512 << 10}},
	}, deviceOf(t, f, "0000:00:02.0"), "virtio NIC")
	gpu := deviceOf(t, f, gpus[0].Address)
	if gpu.Extended || gpu.NUMANode != nil || !gpu.NoNUMANode || gpu.Ancestors != nil || gpu.BARs[1].SizeBytes != 256<<30 {
		t.Errorf("GPU = %+v, want no whole extended space, no node, no ancestors, a BAR of 256 GiB", gpu)
	}
}

func TestPCIVirtualFunction(t *testing.T) {
	tree, _, nics := checktest.EightGPU()
	port := functionAt(t, tree, "0000:17:02.0") // Above NIC 0.
	vf := port.Below.Add(0, 1, checktest.Function{Class: 0x020700, Vendor: 0x15b3, Device: 0x101e, Driver: "mlx5_core", Physical: nics[0]})
	f := gatherTopology(t, checktest.MemoryOf(tree), nil)
	got := deviceOf(t, f, vf.Address)
	expect.That(t, got.Virtual && !got.OffBus && got.Vendor == "0x15b3", "virtual, off bus, vendor = %t, %t, %s; want true, false, 0x15b3", got.Virtual, got.OffBus, got.Vendor)
	expect.NoDiff(t, deviceOf(t, f, nics[0].Address).Link, got.Link, "link")
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
	count := func(change func(bus *checktest.Bus)) (reads, bytes int64) {
		tree := &checktest.Tree{}
		change(tree.Root(0, 0, 0))
		s := &countingSource{Memory: checktest.MemoryOf(tree)}
		expect.NoError(t, pci.Check.Gather(t.Context(), checktest.On(s, &facts.Facts{})))
		return s.reads.Load(), s.bytes.Load()
	}
	reads, bytes := count(func(bus *checktest.Bus) { bus.Other(1, 0) })
	expect.That(t, reads <= 7 && bytes <= 64, "a function without a part in transfers costs %d reads and %d bytes, want at most 7 and 64", reads, bytes)
	reads, bytes = count(func(bus *checktest.Bus) { bus.GPU(1, checktest.Gen(5, 16)) })
	expect.That(t, reads <= 13 && bytes >= 4096, "a GPU costs %d reads and %d bytes, want at most 13, and config space", reads, bytes)
}
