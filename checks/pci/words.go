package pci

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// The values of GPU.Vendor.
const (
	WordNVIDIA = "nvidia"
	WordAMD    = "amd"
)

// gpuVendors are the words for PCI vendor ids.
var gpuVendors = map[string]string{VendorNVIDIA: WordNVIDIA, VendorAMD: WordAMD}

// ReadConfig takes from the bytes of a function's configuration space what they
// show, as for a live machine.
func ReadConfig(d *facts.PCIDevice, config []byte) { readConfig(d, config) }

// ACSWord returns the ACS controls that a control word switches on.
func ACSWord(word int) []string { return bitNames(uint32(word), acsNames) }

// ACSNames are the ACS controls by their names in lspci, from bit 0.
func ACSNames() []string { return slices.Clone(acsNames) }

// LinkSpeed reads a link's speed in GT/s ("32GT/s", "16.0 GT/s PCIe"); 0 where
// s is not a speed.
func LinkSpeed(s string) float64 {
	number, _, _ := strings.Cut(strings.TrimSpace(s), "GT/s")
	return parseLinkSpeed(strings.TrimSpace(number))
}

// LinkWidth reads a link's width ("16", "x16"); 0 if s is not a width.
func LinkWidth(s string) int { return parseLinkWidth(strings.TrimPrefix(strings.TrimSpace(s), "x")) }

// PortType is the facts' word for lspci's name of a PCI Express port type.
func PortType(name string) string { return lspciPorts[name] }

// lspciPorts are the port types as lspci names them (ls-caps.c, cap_express).
var lspciPorts = map[string]string{
	"Endpoint":                         portEndpoint,
	"Legacy Endpoint":                  "legacy-endpoint",
	"Root Port":                        PortRoot,
	"Upstream Port":                    PortUpstream,
	"Downstream Port":                  PortDownstream,
	"PCI-Express to PCI/PCI-X Bridge":  "pcie-to-pci",
	"PCI/PCI-X to PCI-Express Bridge":  "pci-to-pcie",
	"Root Complex Integrated Endpoint": PortIntegrated,
	"Root Complex Event Collector":     "event-collector",
}

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
