package parse

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/pci"
)

// join makes one document of what several texts told: GPUs that one text knows
// by index and another by address become one.
func (s *Sink) join() {
	s.nameGPUs()
	if len(s.devices) > 0 || s.Facts.PCI != nil {
		f := s.PCI()
		f.Partial, f.Devices = s.partialPCI, make([]facts.PCIDevice, 0, len(s.devices))
		for _, address := range s.Addresses() {
			f.Devices = append(f.Devices, *s.devices[address])
		}
	}
	if len(s.order) > 0 {
		gpus := s.GPUs()
		for _, name := range s.order {
			if g := s.gpus[name]; g != nil {
				gpus.Devices = append(gpus.Devices, *g)
			}
		}
		slices.SortStableFunc(gpus.Devices, func(a, b facts.GPU) int { // By index where both have one.
			if a.Index != nil && b.Index != nil {
				return cmp.Compare(*a.Index, *b.Index)
			}
			return cmp.Compare(a.Address, b.Address)
		})
	}
	checks.Derive(s.Facts)
}

// nameGPUs gives GPUs that are known by index alone their addresses, where another text tells them, or, as the
// management library counts in order of the addresses (nvmlDeviceGetHandleByIndex), where the PCI tree shows as
// many GPUs of that vendor. An index that several GPUs have, as in texts of several machines, names none of them.
func (s *Sink) nameGPUs() {
	addressOf, shared := make(map[int]string), make(map[int]bool)
	var unnamed []*facts.GPU
	for _, name := range slices.Sorted(maps.Keys(s.gpus)) {
		switch g := s.gpus[name]; {
		case g.Index == nil:
		case name == GPUName(*g.Index):
			unnamed = append(unnamed, g)
		default:
			shared[*g.Index] = addressOf[*g.Index] != ""
			addressOf[*g.Index] = name
		}
	}
	if len(unnamed) == 0 {
		return
	}
	if len(addressOf) == 0 {
		var shown []string
		for _, address := range s.Addresses() {
			if d := s.devices[address]; pci.IsGPU(d) && (unnamed[0].Vendor == "" || pci.VendorName(d.Vendor) == unnamed[0].Vendor) {
				shown = append(shown, address)
			}
		}
		if len(shown) == len(unnamed) {
			for i, address := range shown {
				addressOf[i] = address
			}
		}
	}
	rename := make(map[string]string)
	for _, g := range unnamed {
		old := g.Address
		address, ok := addressOf[*g.Index]
		if !ok || shared[*g.Index] {
			continue
		}
		rename[old] = address
		delete(s.gpus, old)
		s.order = slices.DeleteFunc(s.order, func(n string) bool { return n == old })
		if known := s.gpus[address]; known != nil {
			MergeGPU(known, g)
			continue
		}
		g.Address = address
		s.gpus[address] = g
		s.order = append(s.order, address)
	}
	s.renameGPUs(rename)
}

// AddressOf returns the address of the GPU of a vendor, or of any where vendor is empty,
// that has an index; empty if none has it, or several do, of several machines.
func (s *Sink) AddressOf(index int, vendor string) string {
	found := ""
	for address, g := range s.gpus {
		switch {
		case g.Index == nil || *g.Index != index || vendor != "" && g.Vendor != vendor || address == GPUName(index):
		case found != "":
			return ""
		default:
			found = address
		}
	}
	return found
}

// renameGPUs carries new names into what speaks of GPUs.
func (s *Sink) renameGPUs(names map[string]string) {
	to := func(name string) string { return cmp.Or(names[name], name) }
	if s.Facts.Links != nil {
		for i := range s.Facts.Links.Pairs {
			p := &s.Facts.Links.Pairs[i]
			p.A, p.B = to(p.A), to(p.B)
		}
	}
	if s.Facts.GPUs != nil {
		for i := range s.Facts.GPUs.P2P {
			p := &s.Facts.GPUs.P2P[i]
			p.A, p.B = to(p.A), to(p.B)
		}
	}
	s.ledger.rename(names)
}
