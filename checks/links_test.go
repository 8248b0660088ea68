package checks

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// wantPaths are the paths of the eight-GPU machine, row by column.
var wantPaths = [][]string{
	{"", "PIX", "NODE", "NODE", "SYS", "SYS", "SYS", "SYS"},
	{"", "", "NODE", "NODE", "SYS", "SYS", "SYS", "SYS"},
	{"", "", "", "PXB", "SYS", "SYS", "SYS", "SYS"},
	{"", "", "", "", "SYS", "SYS", "SYS", "SYS"},
	{"", "", "", "", "", "PHB", "NODE", "NODE"},
	{"", "", "", "", "", "", "NODE", "NODE"},
	{"", "", "", "", "", "", "", "PIX"},
}

func TestLinkPaths(t *testing.T) {
	gpus := eightGPUs
	for privileged, m := range map[bool]*host.Memory{true: checktest.Rebuilt(t, eightGPU), false: unprivileged(t)} {
		f := gatherTopology(t, m, nil)
		for i := range gpus {
			for j := i + 1; j < len(gpus); j++ {
				p := f.Links.Between(gpus[j], gpus[i])
				expect.Must(t, p != nil, "no pair of GPUs %d and %d", i, j)
				expect.That(t, p.Kind == "gpu-gpu" && p.Path == wantPaths[i][j], "privileged %t: GPUs %d and %d are %s by %q, want gpu-gpu by %q", privileged, i, j, p.Kind, p.Path, wantPaths[i][j])
			}
		}
		// GPU by NIC: NIC 0 stands beside GPUs 0 and 1, NIC 1 beside GPU 2
		// and above GPU 3, NICs 2 and 3 beside GPUs 4 and 5.
		wantNICs := []string{
			"PIX NODE SYS SYS", "PIX NODE SYS SYS", "NODE PIX SYS SYS", "NODE PXB SYS SYS",
			"SYS SYS PIX PHB", "SYS SYS PHB PIX", "SYS SYS NODE NODE", "SYS SYS NODE NODE",
		}
		for i, gpu := range gpus {
			got := expect.Map(itsNICs, func(nic string) string {
				p := f.Links.Between(gpu, nic)
				expect.That(t, p.Kind == "gpu-nic" && p.A == gpu && p.NVLinks == nil && p.P2P == nil, "pair %+v, want the GPU first and nothing said of NVLink", p)
				return p.Path
			})
			expect.Equal(t, wantNICs[i], strings.Join(got, " "), "privileged %t: GPU %d to NICs", privileged, i)
		}
		expect.Equal(t, 28+32, len(f.Links.Pairs), "it")
		expect.NoDiff(t, new(false), f.Links.VirtualTopology, "virtual topology")
		expect.NoDiff(t, nil, checktest.UnknownOf(f, "links"), "unknown")
	}
}

func TestLinkBridges(t *testing.T) {
	f := gatherTopology(t, checktest.Rebuilt(t, eightGPU), nil)
	for _, test := range []struct {
		a, b    int
		bridges []string
		common  string
	}{
		{0, 1, []string{"0000:17:00.0", "0000:17:01.0"}, "0000:16:00.0"},
		{2, 3, []string{"0000:39:00.0", "0000:39:01.0", "0000:3b:00.0", "0000:3d:00.0"}, "0000:38:00.0"},
		{0, 4, []string{"0000:17:00.0", "0000:16:00.0", "0000:15:01.0", "0000:97:01.0", "0000:98:00.0", "0000:9a:00.0"}, ""},
	} {
		p := f.Links.Between(eightGPUs[test.a], eightGPUs[test.b])
		expect.NoDiff(t, test.bridges, p.Bridges, "GPUs %d and %d", test.a, test.b)
		expect.Equal(t, test.common, p.CommonBridge, "GPUs %d and %d turn at", test.a, test.b)
	}
}

func TestNarrowest(t *testing.T) {
	type links = map[string]pcieLink
	full := facts.NarrowestLink{At: "0000:18:00.0", SpeedGTs: 32, Width: 16, GBps: 63.015, BestGBps: 63.015}
	const first, second = "0000:18:00.0", "0000:19:00.0" // GPUs 0 and 1.
	for _, test := range []struct {
		name   string
		a, b   int
		change links // By address.
		offBus bool  // The first GPU.
		want   *facts.NarrowestLink
	}{
		{"all at their best", 0, 1, nil, false, &full},
		{"an idle GPU", 0, 1, links{second: {1, 16, 5, 16}}, false, &facts.NarrowestLink{At: second, SpeedGTs: 2.5, Width: 16, GBps: 4, BestGBps: 63.015}},
		{
			"a slot that can do less than the GPU", 0, 1,
			links{"0000:17:00.0": gen(4, 8), first: {4, 8, 5, 16}},
			false,
			&facts.NarrowestLink{At: first, SpeedGTs: 16, Width: 8, GBps: 15.754, BestGBps: 15.754},
		},
		{"a switch's uplink does not count where the traffic turns below it", 0, 1, links{"0000:16:00.0": gen(3, 4)}, false, &full},
		{
			"a switch's uplink counts on the way through the root complex", 0, 4,
			links{"0000:16:00.0": gen(3, 4), "0000:15:01.0": {3, 4, 5, 16}},
			false,
			&facts.NarrowestLink{At: "0000:16:00.0", SpeedGTs: 8, Width: 4, GBps: 3.938, BestGBps: 3.938},
		},
		{
			"the link between two switches", 2, 3,
			links{"0000:3b:00.0": {5, 8, 5, 16}},
			false,
			&facts.NarrowestLink{At: "0000:3b:00.0", SpeedGTs: 32, Width: 8, GBps: 31.508, BestGBps: 63.015},
		},
		{"an emulated port above a real GPU", 0, 1, links{"0000:17:00.0": gen(1, 1)}, false, &full},
		{
			"PCIe 6", 0, 1,
			links{first: gen(6, 16), second: gen(6, 16), "0000:17:00.0": gen(6, 16), "0000:17:01.0": gen(6, 16)},
			false,
			&facts.NarrowestLink{At: first, SpeedGTs: 64, Width: 16, GBps: 121, BestGBps: 121},
		},
		{"a GPU off the bus: its port knows the link", 0, 1, links{"0000:17:00.0": {0, 0, 5, 16}}, true, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := checktest.Rebuilt(t, eightGPU)
			for address, link := range test.change {
				link.set(t, m, address)
			}
			if test.offBus {
				changeConfig(t, m, first, func(b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) })
			}
			f := gatherTopology(t, m, nil)
			expect.NoDiff(t, test.want, f.Links.Between(eightGPUs[test.a], eightGPUs[test.b]).Narrowest, "narrowest")
		})
	}
}

// addBelow adds a GPU to PCI facts, below bridges on a root bus, the first of which is a root port and the others of which
// are upstream and downstream ports in turn. Without privileges that is not seen.
func addBelow(f *facts.PCIFacts, gpu facts.PCIDevice, privileged bool, bridges ...string) string {
	gpu.Kind, gpu.RootBus, gpu.Ancestors = "gpu", "pci0000:"+bridges[0][5:7], bridges
	gpu.Link = &facts.PCIeLink{SpeedGTs: 16, Width: 16, MaxSpeedGTs: 16, MaxWidth: 16}
	for i, address := range bridges {
		d := facts.PCIDevice{Address: address, Kind: "bridge", NUMANode: gpu.NUMANode, RootBus: gpu.RootBus, Ancestors: bridges[:i], Link: gpu.Link}
		if privileged {
			d.PortType = []string{"root-port", "upstream-port", "downstream-port"}[min(i, 2-i%2)]
		}
		if !slices.ContainsFunc(f.Devices, func(d facts.PCIDevice) bool { return d.Address == address }) {
			f.Devices = append(f.Devices, d)
		}
	}
	f.Devices = append(f.Devices, gpu)
	return gpu.Address
}

// linked are facts with the links that follow from them.
func linked(t *testing.T, f *facts.Facts) *facts.Facts {
	t.Helper()
	g := checktest.On(&host.Memory{}, f)
	expect.NoError(t, linksCheck.Gather(t.Context(), g))
	f.Unknown = g.Unknowns()
	return f
}

func TestPathWithoutNodes(t *testing.T) {
	for _, test := range []struct {
		name  string
		nodes int  // Of the machine.
		a, b  *int // Of the two devices.
		want  string
	}{
		{"both named, equal", 2, new(1), new(1), "NODE"},
		{"both named, different", 2, new(0), new(1), "SYS"},
		{"one not named", 2, nil, new(1), ""},
		{"neither named", 2, nil, nil, ""},
		{"a machine of one node", 1, nil, nil, "NODE"},
		{"a machine whose nodes are not shown", 0, nil, nil, ""},
	} {
		f := &facts.Facts{PCI: &facts.PCIFacts{}, NUMA: &facts.NUMAFacts{Nodes: make([]facts.NUMANode, test.nodes)}}
		a := addBelow(f.PCI, facts.PCIDevice{Address: "0000:11:00.0", NUMANode: test.a}, true, "0000:10:01.0")
		b := addBelow(f.PCI, facts.PCIDevice{Address: "0000:21:00.0", NUMANode: test.b}, true, "0000:20:01.0")
		expect.Equal(t, test.want, linked(t, f).Links.Between(a, b).Path, "%s: path", test.name)
		unknown := checktest.UnknownOf(f, "links")
		expect.That(t, (unknown != nil) == (test.want == ""), "%s: unknown = %q, want it said only where there is no path", test.name, unknown)
	}
}

// TestSwitchOnCard has GPUs with a switch of their own on the card, as AMD's
// have, below a shared switch, and a card of two GPUs.
func TestSwitchOnCard(t *testing.T) {
	for _, privileged := range []bool{true, false} {
		f := &facts.Facts{PCI: &facts.PCIFacts{}, NUMA: &facts.NUMAFacts{Nodes: make([]facts.NUMANode, 1)}}
		add := func(vendor, address string, bridges ...string) string {
			return addBelow(f.PCI, facts.PCIDevice{Address: address, Vendor: vendor, NUMANode: new(0)}, privileged, bridges...)
		}
		one := add("0x1002", "0000:15:00.0", "0000:10:01.0", "0000:11:00.0", "0000:12:00.0", "0000:13:00.0", "0000:14:00.0")
		two := add("0x1002", "0000:18:00.0", "0000:10:01.0", "0000:11:00.0", "0000:12:01.0", "0000:16:00.0", "0000:17:00.0")
		left := add("0x10de", "0000:83:00.0", "0000:80:01.0", "0000:81:00.0", "0000:82:00.0")
		right := add("0x10de", "0000:84:00.0", "0000:80:01.0", "0000:81:00.0", "0000:82:01.0")
		p := linked(t, f).Links.Between(one, two)
		expect.That(t, p.Path == "PXB" && len(p.Bridges) == 6 && p.NVLinks != nil && *p.NVLinks == 0, "privileged %t: AMD pair %+v, want PXB over six bridges, no NVLink", privileged, p)
		p = f.Links.Between(left, right)
		expect.That(t, p.Path == "PIX" && p.NVLinks == nil, "privileged %t: pair of one card %+v, want PIX and NVLinks not known", privileged, p)
	}
}

func nvlinks(n int, link facts.NVLink) []facts.NVLink {
	links := make([]facts.NVLink, n)
	for i := range links {
		links[i] = link
		links[i].Link = i
	}
	return links
}

// peersOf returns NVML's answer for each ordered pair of GPUs.
func peersOf(nvlink string, gpus ...string) []facts.GPUPeer {
	var peers []facts.GPUPeer
	for _, a := range gpus {
		for _, b := range gpus {
			if a != b {
				peers = append(peers, facts.GPUPeer{A: a, B: b, Read: "ok", Write: "ok", NVLink: nvlink})
			}
		}
	}
	return peers
}

func TestNVLinks(t *testing.T) {
	hopper := facts.NVLink{Active: true, Version: 4, SpeedMBps: 26562}
	toSwitch := hopper
	toSwitch.RemoteType, toSwitch.RemoteAddress = "switch", "0000:c1:00.0"
	joined := &facts.Fabric{State: "completed", Status: "SUCCESS"}
	to := func(link facts.NVLink, address string) facts.NVLink {
		link.RemoteType, link.RemoteAddress = "gpu", address
		return link
	}
	down := toSwitch
	down.Active = false
	for _, test := range []struct {
		name   string
		others int // GPUs beside the two.
		status string
		a, b   []facts.NVLink
		fabric *facts.Fabric
		links  *int
		nvsw   bool
		gbps   float64
	}{
		{"NVSwitch", 6, "ok", nvlinks(18, toSwitch), nvlinks(18, toSwitch), joined, new(18), true, 450},
		{"NVSwitch, status not known", 6, "", nvlinks(18, toSwitch), nvlinks(18, toSwitch), nil, new(18), true, 450},
		{"NVSwitch, two links down", 6, "ok", nvlinks(18, toSwitch), append(nvlinks(16, toSwitch), down, down), joined, new(16), true, 400},
		{"NVSwitch, another partition", 6, "not-supported", nvlinks(18, toSwitch), nvlinks(18, toSwitch), joined, new(0), false, 0},
		{"hidden in a VM", 6, "ok", nvlinks(18, hopper), nvlinks(18, hopper), joined, new(18), true, 450},
		{"hidden in a VM, refused", 6, "not-supported", nvlinks(18, hopper), nvlinks(18, hopper), joined, new(0), false, 0},
		{"hidden in a VM, status not known", 6, "", nvlinks(18, hopper), nvlinks(18, hopper), joined, nil, false, 0},
		{"hidden, no fabric, several GPUs", 2, "ok", nvlinks(6, hopper), nvlinks(6, hopper), nil, nil, false, 0},
		{"hidden, no fabric, two GPUs", 0, "ok", nvlinks(6, hopper), nvlinks(6, hopper), nil, new(6), false, 150},
		{"direct", 2, "ok", nvlinks(4, to(hopper, "0000:00:04.0")), nvlinks(4, to(hopper, "0000:00:03.0")), nil, new(4), false, 100},
		{"direct, to another GPU", 2, "ok", nvlinks(4, to(hopper, "0000:00:05.0")), nvlinks(4, to(hopper, "0000:00:06.0")), nil, new(0), false, 0},
		{"bridge of four narrow links (GA102)", 0, "ok", nvlinks(4, to(facts.NVLink{Active: true, Version: 3, SpeedMBps: 14062}, "0000:00:04.0")), nvlinks(4, to(facts.NVLink{Active: true, Version: 3, SpeedMBps: 14062}, "0000:00:03.0")), nil, new(4), false, 56.248},
		{"none", 0, "not-supported", []facts.NVLink{}, []facts.NVLink{}, nil, new(0), false, 0},
		{"one not known", 0, "ok", nvlinks(4, hopper), nil, nil, nil, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			const a, b = "0000:00:03.0", "0000:00:04.0"
			pci := &facts.PCIFacts{}
			for i := range 2 + test.others {
				pci.Devices = append(pci.Devices, facts.PCIDevice{Address: fmt.Sprintf("0000:00:%02x.0", 3+i), Kind: "gpu", Vendor: "0x10de", RootBus: "pci0000:00"})
			}
			gpus := &facts.GPUFacts{Devices: []facts.GPU{
				{Address: a, Vendor: "nvidia", NVLinks: test.a, Fabric: test.fabric},
				{Address: b, Vendor: "nvidia", NVLinks: test.b, Fabric: test.fabric},
			}}
			if test.status != "" {
				gpus.P2P = peersOf(test.status, a, b)
			}
			p := linked(t, &facts.Facts{PCI: pci, GPUs: gpus}).Links.Between(a, b)
			expect.NoDiff(t, test.links, p.NVLinks, "NVLinks")
			expect.That(t, p.NVSwitch == test.nvsw && !(math.Abs(p.NVLinkGBps-test.gbps) > 0.001), "NVSwitch, GB/s = %t, %g; want %t, %g", p.NVSwitch, p.NVLinkGBps, test.nvsw, test.gbps)
		})
	}
}

func TestUsableNVLink(t *testing.T) {
	for _, test := range []struct {
		version, mbps int
		want          float64
	}{
		{1, 20000, 20},
		{2, 25781, 25},
		{3, 25000, 25},
		{3, 14062, 14.062},
		{4, 26562, 25},
		{5, 53125, 50},
		{5, 0, 50},
		{0, 53125, 50},
		{0, 26562, 25},
		{0, 14062, 14.062},
		{7, 106250, 106.25},
		{0, 0, 0},
	} {
		expect.Equal(t, test.want, usableGBps((&facts.NVLink{Version: test.version, SpeedMBps: test.mbps})), "version %d at %d MB/s carries", test.version, test.mbps)
	}
}

func TestP2PStatus(t *testing.T) {
	const a, b, c = "0000:00:06.0", "0000:00:07.0", "0000:00:08.0"
	gpus := &facts.GPUFacts{P2P: []facts.GPUPeer{
		{A: a, B: b, Read: "ok", Write: "ok", NVLink: "unknown"},
		{A: b, B: a, Read: "chipset-not-supported", Write: "ok", NVLink: "ok"},
		{A: c, B: b, Read: "ok"},
	}}
	f := gatherTopology(t, checktest.Rebuilt(t, "h200x4"), gpus)
	for pair, want := range map[[2]string]*facts.P2PStatus{
		{a, b}: {Read: "chipset-not-supported", Write: "ok", NVLink: "unknown"},
		{b, c}: {Read: "ok"},
		{a, c}: nil,
	} {
		expect.NoDiff(t, want, f.Links.Between(pair[0], pair[1]).P2P, "%s - %s", pair[0], pair[1])
	}
}

func TestLinksFlatVM(t *testing.T) {
	const a, b = "0000:00:06.0", "0000:00:07.0"
	f := gatherTopology(t, checktest.Rebuilt(t, "h200x2"), nil)
	want := &facts.Pair{
		A: a, B: b, Kind: "gpu-gpu", Path: "PHB", Bridges: []string{},
		Narrowest: &facts.NarrowestLink{At: a, SpeedGTs: 32, Width: 16, GBps: 63.015, BestGBps: 63.015},
	}
	expect.NoDiff(t, want, f.Links.Between(b, a), "pair")
	expect.NoDiff(t, new(true), f.Links.VirtualTopology, "virtual topology")
	expect.Equal(t, "off", f.IOMMU.Mode, "IOMMU mode")
	expect.That(t, f.Links.Between(a, a) == nil && (*facts.LinkFacts)(nil).Between(a, b) == nil, "a pair that is not there was found")
}

// TestLinksWithoutPCI has the management library show GPUs that /sys hides.
func TestLinksWithoutPCI(t *testing.T) {
	link := facts.NVLink{Active: true, Version: 4, SpeedMBps: 26562, RemoteType: "switch"}
	f := &facts.Facts{GPUs: &facts.GPUFacts{Devices: []facts.GPU{
		{Address: "0000:01:00.0", Vendor: "nvidia", NVLinks: nvlinks(18, link)},
		{Address: "0000:02:00.0", Vendor: "nvidia", NVLinks: nvlinks(18, link)},
	}}}
	g := checktest.On(&host.Memory{}, f)
	expect.NoError(t, linksCheck.Gather(t.Context(), g))
	want := &facts.LinkFacts{Pairs: []facts.Pair{{A: "0000:01:00.0", B: "0000:02:00.0", Kind: "gpu-gpu", NVLinks: new(18), NVSwitch: true, NVLinkGBps: 450}}}
	expect.NoDiff(t, want, f.Links, "section")
	expect.That(t, slices.ContainsFunc(g.Unknowns(), func(u facts.Unknown) bool { return u.Fact == "pairs.path" }), "unknown = %v, want the path", g.Unknowns())
	f.GPUs = nil
	expect.That(t, linksCheck.Gather(t.Context(), g) != nil, "no error where neither section is known")
}

// TestLinksOfGuests checks that devices which guests have are left out.
func TestLinksOfGuests(t *testing.T) {
	f := gatherTopology(t, checktest.Rebuilt(t, eightGPU), nil)
	for i, driver := range []string{"vfio-pci", "nvgrace-gpu-vfio-pci", ""} {
		at := slices.IndexFunc(f.PCI.Devices, func(d facts.PCIDevice) bool { return d.Address == eightGPUs[i] })
		f.PCI.Devices[at].Driver = driver
	}
	free := deviceOf(t, f, itsNICs[0])
	free.Address, free.Driver, free.Virtual = "0000:1a:00.1", "", true
	f.PCI.Devices = append(f.PCI.Devices, free)
	linked(t, f)
	for pair, want := range map[[2]string]bool{
		{eightGPUs[0], eightGPUs[3]}: false,
		{eightGPUs[1], eightGPUs[3]}: false,
		{eightGPUs[2], eightGPUs[3]}: true, // A driver that is missing is no reason.
		{eightGPUs[3], itsNICs[0]}:   true,
		{eightGPUs[3], free.Address}: false,
	} {
		expect.Equal(t, want, f.Links.Between(pair[0], pair[1]) != nil, "%s - %s paired", pair[0], pair[1])
	}
}

// TestLinksBounded checks that a document full of GPUs is cut off.
func TestLinksBounded(t *testing.T) {
	f := &facts.Facts{PCI: &facts.PCIFacts{}}
	for bus := range 256 {
		for device := range 4 {
			address := fmt.Sprintf("0000:%02x:%02x.0", bus, device)
			f.PCI.Devices = append(f.PCI.Devices, facts.PCIDevice{Address: address, Kind: "gpu", RootBus: "pci0000:00"})
		}
	}
	expect.NoError(t, linksCheck.Gather(t.Context(), checktest.On(&host.Memory{}, f)))
	expect.Equal(t, maxPairs, len(f.Links.Pairs), "it")
}
