package pci

import (
	"cmp"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// The values of GPU.Vendor.
const (
	WordNVIDIA = "nvidia"
	WordAMD    = "amd"
)

// gpuVendors are the words for PCI vendor ids.
var gpuVendors = map[string]string{VendorNVIDIA: WordNVIDIA, VendorAMD: WordAMD}

// IsGPU reports whether a PCI function is a GPU by its class and vendor.
func IsGPU(d *facts.PCIDevice) bool { return cmp.Or(d.Kind, KindOf(d)) == KindGPU }

// VendorName is the word for a GPU vendor's PCI id: "nvidia", "amd" or empty.
func VendorName(id string) string { return gpuVendors[id] }

// DeviceAt is the entry of an address in the PCI tree.
func DeviceAt(f *facts.Facts, address string) (facts.PCIDevice, bool) {
	for _, d := range f.PCI.All() {
		if d.Address == address {
			return d, true
		}
	}
	return facts.PCIDevice{}, false
}
