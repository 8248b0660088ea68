package checks

import (
	"cmp"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// Derive fills in what follows from other facts of texts: the kinds of PCI functions, which of them are GPUs, and
// the paths between them. What is stated stays.
func Derive(f *facts.Facts) {
	if f.PCI != nil {
		for i := range f.PCI.Devices {
			d := &f.PCI.Devices[i]
			d.Kind = cmp.Or(d.Kind, pci.KindOf(d))
		}
		deriveGPUs(f)
	}
	if f.NICs != nil {
		network.DeriveMTU(f.NICs)
	}
	deriveNVLinks(f)
	derivePairs(f)
	for i := range f.Benchmarks {
		expectOfBenchmark(f, &f.Benchmarks[i])
	}
}

// deriveOffered lists the GPUs that HIP offers and nothing else shows, as in a container without the PCI tree.
func deriveOffered(f *facts.Facts) {
	if f.Transfers == nil || f.Transfers.API != "hip" || f.GPUs == nil {
		return
	}
	for _, d := range f.Transfers.Devices {
		if f.GPUs.At(d.Address) == nil {
			f.GPUs.Devices = append(f.GPUs.Devices, facts.GPU{Address: d.Address, Vendor: pci.WordAMD, Name: d.Name, MemoryBytes: d.MemoryBytes})
		}
	}
	slices.SortStableFunc(f.GPUs.Devices, func(a, b facts.GPU) int { return cmp.Compare(a.Address, b.Address) })
}

// deriveGPUs lists the GPUs of the PCI tree and those that other texts mention.
func deriveGPUs(f *facts.Facts) {
	for _, d := range f.PCI.Devices {
		vendor := pci.VendorName(d.Vendor)
		if d.Kind != pci.KindGPU || vendor == "" || d.Virtual {
			continue
		}
		f.GPUs = cmp.Or(f.GPUs, &facts.GPUFacts{})
		if f.GPUs.At(d.Address) == nil {
			f.GPUs.Devices = append(f.GPUs.Devices, facts.GPU{Address: d.Address})
		}
		g := f.GPUs.At(d.Address)
		g.InPCI, g.Vendor = true, cmp.Or(g.Vendor, vendor)
	}
}

// deriveNVLinks notes the GPUs that have no NVLink, by their model or because a
// text that shows each pair of the GPUs by index shows none.
func deriveNVLinks(f *facts.Facts) {
	pairs, joined := 0, false
	for _, p := range f.Links.All() {
		if p.Kind == pairGPUs && p.NVLinks != nil {
			pairs++
			joined = joined || *p.NVLinks > 0
		}
	}
	n := 0
	for _, g := range f.GPUs.All() {
		if g.Index != nil {
			n++
		}
	}
	none := !joined && pairs > 0 && pairs == n*(n-1)/2
	for i := range f.GPUs.All() {
		g := &f.GPUs.Devices[i]
		if g.NVLinks == nil && g.Vendor != pci.WordAMD && (none || data.GPUModelOf(g.Name).NVLink == "none") {
			g.NVLinks = []facts.NVLink{}
		}
	}
}

// derivePairs adds the paths that follow from the tree, and completes those that a text states.
func derivePairs(f *facts.Facts) {
	t := newTopology(f)
	placed := func(address string) bool { d := t.devices[address]; return d != nil && d.RootBus != "" }
	derived := slices.Collect(t.pairs(placed))
	hosts := t.hosts()
	if len(derived)+len(hosts) == 0 {
		return
	}
	f.Links = cmp.Or(f.Links, &facts.LinkFacts{})
	for _, p := range derived {
		stated := f.Links.Between(p.A, p.B)
		if stated == nil {
			f.Links.Pairs = append(f.Links.Pairs, p)
			continue
		}
		stated.Path = cmp.Or(stated.Path, p.Path)
		if stated.Bridges == nil {
			stated.Bridges, stated.CommonBridge = p.Bridges, p.CommonBridge
		}
		stated.Narrowest = cmp.Or(stated.Narrowest, p.Narrowest)
		stated.P2P = cmp.Or(stated.P2P, p.P2P)
		if stated.NVLinks == nil {
			stated.NVLinks, stated.NVSwitch, stated.NVLinkGBps = p.NVLinks, p.NVSwitch, p.NVLinkGBps
		}
	}
	if !f.PCI.Partial {
		f.Links.Hosts = hosts
		f.Links.VirtualTopology = t.virtual()
	}
}
