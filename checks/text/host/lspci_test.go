package host_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestLspciHeads(t *testing.T) {
	for line, want := range map[string]string{
		"01:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)":               "0000:01:00.0 0x030000 0x10de  gpu",
		"3b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20f1] (rev a1)":          "0000:3b:00.0 0x030200 0x10de 0x20f1 gpu",
		"0001:00:00.0 3D controller: NVIDIA Corporation Device 2335 (rev a1)":                                   "0001:00:00.0 0x030200 0x10de 0x2335 gpu",
		"00:06.0 Class [0302]: Device [10de:2335] (rev a1)":                                                     "0000:00:06.0 0x030200 0x10de 0x2335 gpu",
		"05:00.0 0302: 10de:20b0 (rev a1)":                                                                      "0000:05:00.0 0x030200 0x10de 0x20b0 gpu",
		"c1:00.0 Processing accelerators [1200]: Advanced Micro Devices, Inc. [AMD/ATI] Device [1002:74a1]":     "0000:c1:00.0 0x120000 0x1002 0x74a1 gpu",
		"3a:08.0 PCI bridge: PLX Technology, Inc. PEX 8796 96-lane Switch (rev ab)":                             "0000:3a:08.0 0x060400 0x10b5  bridge",
		"1a:00.0 Infiniband controller [0207]: Mellanox Technologies MT2892 Family [ConnectX-6 Dx] [15b3:101d]": "0000:1a:00.0 0x020700 0x15b3 0x101d nic",
		"00:1b.0 Ethernet controller: Amazon.com, Inc. Elastic Fabric Adapter (EFA)":                            "0000:00:1b.0 0x020000 0x1d0f  nic",
		"17:3b:00.0 3D controller: NVIDIA Corporation Device 2335 (rev a1)":                                     "0000:3b:00.0 0x030200 0x10de 0x2335 gpu",
		"40:01.1 PCI bridge: Some New Maker Root Port (rev 1)":                                                  "0000:40:01.1 0x060400   bridge",
	} {
		f := texttest.Parse("lspci.txt", line+"\n")
		expect.Must(t, f.PCI != nil && len(f.PCI.Devices) == 1, "%q: got %+v", line, f.PCI)
		d := f.PCI.Devices[0]
		expect.Equal(t, want, fmt.Sprint(d.Address, " ", d.Class, " ", d.Vendor, " ", d.Device, " ", d.Kind), "%q", line)
		expect.That(t, f.PCI.Partial, "%q: one line is not the whole tree", line)
	}
	for _, line := range []string{"12:30:00.5 The VGA controller: it is slow", "01:00.0 my controller: NVIDIA", "loss controller: 0.5"} {
		f := texttest.Parse("x.log", line+"\n")
		expect.That(t, f.PCI == nil, "%q: got %+v", line, f.PCI)
	}
}

func TestLspciVerbose(t *testing.T) {
	f := texttest.Parse("lspci.txt", texttest.LspciVerbose)
	port := texttest.PCIDevice(t, f, "0000:00:01.1")
	expect.NoDiff(t, facts.PCIDevice{
		Address: "0000:00:01.1", Class: "0x060400", Vendor: "0x1022", Kind: "bridge", Driver: "pcieport", NUMANode: new(1), IOMMUGroup: new(14),
		PortType: "root-port", Extended: true,
		Link: &facts.PCIeLink{SpeedGTs: 2.5, Width: 8, MaxSpeedGTs: 16, MaxWidth: 16, Source: "lspci.txt:13"},
		ACS: &facts.ACS{
			Control: []string{"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"},
		},
	}, port, "port")
	gpu := texttest.PCIDevice(t, f, "0000:01:00.0")
	expect.That(t, gpu.RootBus == "pci0000:00" && cmp.Equal(gpu.Ancestors, []string{"0000:00:01.1"}), "the GPU is at %s below %v", gpu.RootBus, gpu.Ancestors)
	expect.NoDiff(t, []facts.BAR{
		{Index: 0, SizeBytes: 16 << 20},
		{Index: 1, SizeBytes: 256 << 20},
		{Index: 3, Unassigned: true},
		{Index: 5, SizeBytes: 128, IO: true},
	}, gpu.BARs, "BARs")
	expect.NoDiff(t, []facts.ResizableBAR{{Index: 0, SizeBytes: 16 << 20, MaxBytes: 16 << 20}, {Index: 1, SizeBytes: 256 << 20, MaxBytes: 32 << 30}}, gpu.ResizableBARs, "resizable BARs")
	expect.That(t, gpu.ATS != nil && gpu.ATS.Enabled, "ATS is %+v", gpu.ATS)
	expect.That(t, len(f.GPUs.Devices) == 1 && f.GPUs.Devices[0].Name == "GeForce RTX 4090" && f.GPUs.Devices[0].NVLinks != nil, "GPUs are %+v", f.GPUs.Devices)
}

func TestLspciWithoutRoot(t *testing.T) {
	f := texttest.Parse("lspci.txt", "3b:00.0 3D controller: NVIDIA Corporation GA100 (rev a1)\n\tSubsystem: NVIDIA Corporation Device 145f\n\tCapabilities: <access denied>\n\tKernel driver in use: nvidia\n")
	d := texttest.PCIDevice(t, f, "0000:3b:00.0")
	expect.That(t, !d.Extended, "got extended")
}

func TestLspciFragments(t *testing.T) {
	const redirecting = "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
	const quiet = "\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
	on, off := []string{"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"}, []string{}
	for name, tt := range map[string]struct {
		text  string
		named map[string][]string
		want  []facts.UnnamedACS
	}{
		"controls alone": {
			text: "# lspci -vvv | grep ACSCtl\n" + redirecting + quiet + redirecting,
			want: []facts.UnnamedACS{{Control: on, Count: 2, Source: "a.txt", Line: 2}, {Control: off, Count: 1, Source: "a.txt", Line: 3}},
		},
		"bridges and controls": {
			text:  "3a:08.0 PCI bridge: PLX Technology, Inc. PEX 8796\n" + redirecting + "3a:09.0 PCI bridge: PLX Technology, Inc. PEX 8796\n" + quiet + redirecting,
			named: map[string][]string{"0000:3a:08.0": on, "0000:3a:09.0": off},
			// The second line behind 3a:09.0 is of a function that grep left out.
			want: []facts.UnnamedACS{{Control: on, Count: 1, Source: "a.txt", Line: 5}},
		},
	} {
		f := texttest.Parse("a.txt", tt.text)
		expect.Must(t, f.PCI != nil, "%s: nothing was read", name)
		expect.NoDiff(t, tt.want, f.PCI.UnnamedACS, "%s: unnamed", name)
		for address, want := range tt.named {
			d := texttest.PCIDevice(t, f, address)
			expect.That(t, d.ACS != nil && cmp.Equal(d.ACS.Control, want), "%s: %s has %+v, want %v", name, address, d.ACS, want)
		}
	}
}

func TestLspciCutTreeIsNotPlaced(t *testing.T) {
	f := texttest.Parse("a.txt", "3a:08.0 PCI bridge: PLX Technology, Inc. PEX 8796\n\tBus: primary=3a, secondary=3b, subordinate=3b, sec-latency=0\n\n3b:00.0 3D controller: NVIDIA Corporation GA100\n\tKernel driver in use: nvidia\n")
	d := texttest.PCIDevice(t, f, "0000:3b:00.0")
	expect.That(t, d.RootBus == "", "the switch above is not a root port, yet the root bus is %q", d.RootBus)
}

func TestLspciTree(t *testing.T) {
	for name, tt := range map[string]struct {
		text, gpu, root string
		ancestors       []string
		partial         bool
	}{
		"flat": {text: "-[0000:00]-+-00.0  Device 8086:0d57\n           +-01.0  Device 1af4:1042\n           \\-06.0  Device 10de:2335\n", gpu: "0000:00:06.0", root: "pci0000:00"},
		"switches": {
			text: "-+-[0000:80]-+-00.0  Intel Corporation Device 09a2\n" +
				" |           \\-01.0-[81-85]----00.0-[82-85]--+-08.0-[83]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]\n" +
				" |                                           \\-10.0-[84]----00.0  Mellanox Technologies MT2892\n" +
				" \\-[0000:00]-+-00.0  Intel Corporation Device 09a2\n" +
				"             \\-02.0-[01]----00.0  NVIDIA Corporation Device [10de:2684]\n",
			gpu: "0000:83:00.0", root: "pci0000:80", ancestors: []string{"0000:80:01.0", "0000:81:00.0", "0000:82:08.0"},
		},
		"a part": {
			text: "           +-1d.4-[0c]--+-00.0  NVIDIA Corporation Device [10de:2684]\n           |            \\-00.1  NVIDIA Corporation Device [10de:22ba]\n",
			gpu:  "0000:0c:00.0", partial: true,
		},
	} {
		f := texttest.Parse("tree.txt", tt.text)
		d := texttest.PCIDevice(t, f, tt.gpu)
		expect.That(t, d.Kind == "gpu" && d.RootBus == tt.root && cmp.Equal(d.Ancestors, tt.ancestors) && f.PCI.Partial == tt.partial, "%s: got %s at %s below %v, partial %v", name, d.Kind, d.RootBus, d.Ancestors, f.PCI.Partial)
	}
}

func TestLspciLoopEnds(t *testing.T) {
	f := texttest.Parse("a.txt", "01:00.0 PCI bridge: A Root Port\n\tBus: primary=02, secondary=02, subordinate=02\n02:00.0 PCI bridge: B Root Port\n\tBus: primary=01, secondary=01, subordinate=01\n")
	d := texttest.PCIDevice(t, f, "0000:02:00.0")
	expect.That(t, d.RootBus == "", "two bridges below each other stand at %q", d.RootBus)
}

// lspci -v leaves the numbers of the BARs out.
func TestLspciPlainRegions(t *testing.T) {
	f := texttest.Parse("lspci.txt", `0a:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Vega 10 (rev c3)
	Flags: bus master, fast devsel, latency 0, IRQ 61
	Memory at d0000000 (64-bit, prefetchable) [size=256M]
	Memory at e0000000 (64-bit, prefetchable) [size=2M]
	I/O ports at d000 [size=256]
	Memory at fe900000 (32-bit, non-prefetchable) [size=512K]
	Kernel driver in use: amdgpu
`)
	expect.Must(t, f.PCI != nil && len(f.PCI.Devices) == 1, "devices: %+v", f.PCI)
	indices := expect.Map(f.PCI.Devices[0].BARs, func(b facts.BAR) int { return b.Index })
	expect.That(t, slices.Equal(indices, []int{0, 2, 4, 5}) && f.PCI.Devices[0].BARs[0].SizeBytes == 256<<20, "BARs: %+v", f.PCI.Devices[0].BARs)
}

func TestLspciGone(t *testing.T) {
	f := texttest.Parse("x", "$ lspci | grep -i nvidia\n"+
		"1a:00.0 VGA compatible controller: NVIDIA Corporation TU102GL [Quadro RTX 6000/8000] (rev a1)\n"+
		"1c:00.0 VGA compatible controller: NVIDIA Corporation TU102GL [Quadro RTX 6000/8000] (rev ff)\n"+
		"1e:00.0 3D controller: NVIDIA Corporation TU102GL [Quadro RTX 6000/8000] (rev ff) (prog-if ff)\n")
	for address, want := range map[string]bool{"0000:1a:00.0": false, "0000:1c:00.0": true, "0000:1e:00.0": true} {
		expect.Equal(t, want, texttest.PCIDevice(t, f, address).OffBus, "%s: off the bus", address)
	}
}
