package checks

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// hosts are the ways between each GPU and its processor, as far as the tree shows their links.
func (t *topology) hosts() []facts.HostPath {
	var all []facts.HostPath
	for _, address := range t.addresses[pci.KindGPU] {
		if d := t.devices[address]; d != nil && d.RootBus != "" {
			if h := t.host(d); h != nil {
				all = append(all, *h)
			}
		}
	}
	return all
}

// host finds the narrowest link between a GPU and the root complex, of several the one nearest to the processor. It
// is nil if a link is not known, or a hypervisor makes it up.
func (t *topology) host(d *facts.PCIDevice) *facts.HostPath {
	var h *facts.HostPath
	for _, link := range t.hops(d, t.roles(d.Ancestors), 0) {
		now, best := link.speeds()
		if now == nil || emulated(link.lower) {
			return nil
		}
		if rate := best.GBps(); h == nil || rate <= h.GBps {
			h = &facts.HostPath{GPU: d.Address, At: link.lower.Address, SpeedGTs: best.GTs, Width: best.Lanes, GBps: rate}
		}
	}
	return h
}

// emulated reports whether a hypervisor makes up a bridge.
func emulated(d *facts.PCIDevice) bool {
	return d.Kind == pci.KindBridge && slices.Contains(data.Rates().EmulatedVendors, d.Vendor)
}
