package checks

import (
	"cmp"
	"slices"
)

// Address returns a PCI address as the facts write it ("0000:3b:00.0"), from
// one that may lack domain or function or has a domain of eight digits, in
// either case; it is empty when s is none.
func Address(s string) string { return canonicalAddress(s) }

// SteersCommunication reports whether a variable of this name steers how GPUs
// communicate, and so belongs into EnvFacts.
func SteersCommunication(name string) bool { return steersCommunication(name) }

// Printable returns at most limit bytes of s, with what could steer a terminal
// or break a report written as escapes.
func Printable(s string, limit int) string { return printable(s, limit) }

// IsGPU reports whether a PCI function is a GPU by its class and vendor.
func IsGPU(d *PCIDevice) bool { return cmp.Or(d.Kind, pciKind(d)) == kindGPU }

// VendorName is the word for a GPU vendor's PCI id: "nvidia", "amd" or empty.
func VendorName(id string) string { return gpuVendors[id] }

// Derive fills in what follows from other facts, for a document that was put
// together from texts: what kind each PCI function is, which of them are GPUs,
// and the paths between them where the tree is known. What the document states
// already stays.
func Derive(f *Facts) {
	if f.PCI != nil {
		for i := range f.PCI.Devices {
			d := &f.PCI.Devices[i]
			d.Kind = cmp.Or(d.Kind, pciKind(d))
		}
		f.deriveGPUs()
	}
	f.derivePairs()
	f.expectOfBenchmarks()
}

// deriveGPUs lists the GPUs of the PCI tree with those that other texts tell
// of.
func (f *Facts) deriveGPUs() {
	for _, d := range f.PCI.Devices {
		vendor := gpuVendors[d.Vendor]
		if d.Kind != kindGPU || vendor == "" || d.Virtual {
			continue
		}
		if f.GPUs == nil {
			f.GPUs = &GPUFacts{}
		}
		i := slices.IndexFunc(f.GPUs.Devices, func(g GPU) bool { return g.Address == d.Address })
		if i < 0 {
			f.GPUs.Devices = append(f.GPUs.Devices, GPU{Address: d.Address})
			i = len(f.GPUs.Devices) - 1
		}
		g := &f.GPUs.Devices[i]
		g.InPCI, g.Vendor = true, cmp.Or(g.Vendor, vendor)
	}
}

// derivePairs adds the paths that follow from the tree, and completes those
// that a text states.
func (f *Facts) derivePairs() {
	t := newTopology(f)
	placed := func(address string) bool { d := t.devices[address]; return d != nil && d.RootBus != "" }
	var derived []Pair
	for i, a := range t.gpuAddresses {
		if !placed(a) {
			continue
		}
		for _, b := range t.gpuAddresses[i+1:] {
			if placed(b) && len(derived) < maxPairs {
				derived = append(derived, t.pair(a, b, pairGPUs))
			}
		}
		for _, b := range t.nicAddresses {
			if placed(b) && len(derived) < maxPairs {
				derived = append(derived, t.pair(a, b, pairNIC))
			}
		}
	}
	if len(derived) == 0 {
		return
	}
	if f.Links == nil {
		f.Links = &LinkFacts{}
	}
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
		if stated.Narrowest == nil {
			stated.Narrowest = p.Narrowest
		}
		if stated.NVLinks == nil {
			stated.NVLinks, stated.NVSwitch, stated.NVLinkGBps = p.NVLinks, p.NVSwitch, p.NVLinkGBps
		}
		if stated.P2P == nil {
			stated.P2P = p.P2P
		}
	}
	if !f.PCI.Partial {
		f.Links.VirtualTopology = t.virtual()
	}
}
