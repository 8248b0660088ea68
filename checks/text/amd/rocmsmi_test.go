package amd_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const rocmSMITopologyText = `============================ ROCm System Management Interface ============================
================================ Weight between two GPUs =================================
       GPU0         GPU1         GPU2         
GPU0   0            15           40           
GPU1   15           0            40           
GPU2   40           40           0            

================================= Hops between two GPUs ==================================
       GPU0         GPU1         GPU2         
GPU0   0            1            2            
GPU1   1            0            2            
GPU2   2            2            0            

=============================== Link Type between two GPUs ===============================
       GPU0         GPU1         GPU2         
GPU0   0            XGMI         PCIE         
GPU1   XGMI         0            PCIE         
GPU2   PCIE         PCIE         0            

======================================= Numa Nodes =======================================
GPU[0]		: (Topology) Numa Node: 0
================================== End of ROCm SMI Log ===================================
`

func TestROCmSMITopology(t *testing.T) {
	f := texttest.Parse("x", rocmSMITopologyText)
	expect.Must(t, f.Links != nil && len(f.Links.Pairs) == 3, "got %+v", f.Links)
	want := map[string]string{"GPU0 GPU1": "xgmi", "GPU0 GPU2": "pcie", "GPU1 GPU2": "pcie"}
	for _, p := range f.Links.Pairs {
		expect.That(t, want[p.A+" "+p.B] == p.LinkType && p.Hops != nil, "got %+v", p)
	}
	expect.That(t, len(f.GPUs.Devices) == 3 && f.GPUs.Devices[0].Vendor == "amd", "got %+v", f.GPUs)
}

// The addresses, when a later part tells them, go into the pairs as well.
func TestROCmSMIAddresses(t *testing.T) {
	f := texttest.Parse("x", rocmSMITopologyText+"GPU[0]\t\t: PCI Bus: 0000:C1:00.0\nGPU[1]\t\t: PCI Bus: 0000:C6:00.0\nGPU[0]\t\t: Card Series: \t\tAMD Instinct MI250X\nGPU[0]\t\t: GFX Version: \t\tgfx90a\nGPU[0]\t\t: XGMI Error count: 2 (Multiple errors detected)\n")
	g := testGPU(t, f, "0000:c1:00.0")
	expect.That(t, g.Name == "AMD Instinct MI250X" && g.Architecture == "gfx90a" && g.XGMIErrors != nil && *g.XGMIErrors == 2, "got %+v", g)
	p := f.Links.Between("0000:c1:00.0", "0000:c6:00.0")
	expect.That(t, p != nil && p.LinkType == "xgmi", "got %+v", f.Links)
}
