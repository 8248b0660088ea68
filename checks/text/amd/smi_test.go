package amd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func testGPU(t *testing.T, f *facts.Facts, address string) *facts.GPU {
	t.Helper()
	expect.Must(t, f.GPUs != nil, "no GPU %s", address)
	i := slices.IndexFunc(f.GPUs.Devices, func(g facts.GPU) bool { return g.Address == address })
	expect.Must(t, i >= 0, "no GPU %s in %+v", address, f.GPUs)
	return &f.GPUs.Devices[i]
}

const smiStaticText = `GPU: 0
    ASIC:
        MARKET_NAME: AMD Instinct MI300X
        DEVICE_ID: 0x74a1
        TARGET_GRAPHICS_VERSION: gfx942
    BUS:
        BDF: 0000:05:00.0
        MAX_PCIE_WIDTH: 16
        MAX_PCIE_SPEED: 32 GT/s
    DRIVER:
        NAME: amdgpu
        VERSION: 6.10.5
    BOARD:
        PRODUCT_NAME: AMD Instinct MI300X OAM
    VRAM:
        SIZE: 196592 MB

GPU: 1
    ASIC:
        MARKET_NAME: AMD Instinct MI300X
    BUS:
        BDF: 0000:26:00.0
`

func TestAMDSMIStatic(t *testing.T) {
	f := texttest.Parse("static.txt", "user@node:~$ amd-smi static\n"+smiStaticText+"\ndone\n")
	g := testGPU(t, f, "0000:05:00.0")
	expect.That(t, g.Name == "AMD Instinct MI300X" && g.Architecture == "gfx942" && g.Vendor == "amd" && g.Index != nil && *g.Index == 0 && g.PCIe != nil && g.PCIe.MaxWidth == 16 && g.PCIe.MaxGeneration == 5 && g.MemoryBytes == 196592<<20, "got %+v", g)
	g = testGPU(t, f, "0000:26:00.0")
	expect.That(t, *g.Index == 1 && g.Integrated == nil, "got %+v", g)
}

func TestAMDSMIMetricAndBadPages(t *testing.T) {
	f := texttest.Parse("metric.txt", `GPU: 0
    PCIE:
        WIDTH: 8
        SPEED: 16 GT/s
    ECC:
        TOTAL_CORRECTABLE_COUNT: 0
        TOTAL_UNCORRECTABLE_COUNT: 2
    ECC_BLOCKS:
        XGMI_WAFL:
            CORRECTABLE_COUNT: 0
            UNCORRECTABLE_COUNT: 1

GPU: 0
    RETIRED:
        - PAGE_ADDRESS: 0x1000
    PENDING: No bad pages found.

GPU: 1
    RETIRED: No bad pages found.
    XGMI_ERR: NO_ERRORS
`)
	g := testGPU(t, f, "GPU0")
	expect.That(t, g.PCIe != nil && g.PCIe.Width == 8 && g.PCIe.Generation == 4, "link: got %+v", g.PCIe)
	expect.That(t, g.ECC != nil && g.ECC.VolatileUncorrected != nil && *g.ECC.VolatileUncorrected == 2, "ecc: got %+v", g.ECC)
	expect.That(t, g.XGMIErrors != nil && *g.XGMIErrors == 1 && g.RetiredPages != nil && *g.RetiredPages == 1, "got %+v", g)
	g = testGPU(t, f, "GPU1")
	expect.That(t, g.RetiredPages != nil && *g.RetiredPages == 0 && g.XGMIErrors != nil && *g.XGMIErrors == 0 && g.ECC == nil, "got %+v", g)
}

func TestAMDSMIGrepped(t *testing.T) {
	f := texttest.Parse("x", "        MARKET_NAME: AMD Radeon RX 7900 XTX\n        MARKET_NAME: 0x164e\n")
	g := testGPU(t, f, "GPU0")
	expect.That(t, g.Name == "AMD Radeon RX 7900 XTX", "got %+v", g)
	g = testGPU(t, f, "GPU1")
	expect.That(t, g.Name == "", "got %+v", g)
}

func TestAMDSMITable(t *testing.T) {
	f := texttest.Parse("x", `+------------------------------------------------------------------------------+
| AMD-SMI 26.2.0+021c61fc      amdgpu version: 6.16.6   ROCm version: 7.1.1    |
| VBIOS version: 00159017                                                      |
|-------------------------------------+----------------------------------------|
| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
|=====================================+========================================|
| 0000:05:00.0    AMD Instinct MI300X | 0 %      37 °C   4           141/750 W |
|   0       0       2        SPX/NPS1 | 0 %        N/A           285/196288 MB |
|-------------------------------------+----------------------------------------|
| 0000:65:00.0                 0x1586 | N/A        N/A   0             N/A/0 W |
|   1       1     N/A             N/A | N/A        N/A           1013/65536 MB |
+-------------------------------------+----------------------------------------+
`)
	g := testGPU(t, f, "0000:05:00.0")
	expect.That(t, g.Name == "AMD Instinct MI300X" && *g.Index == 0 && g.ECC != nil && *g.ECC.VolatileUncorrected == 4, "got %+v", g)
	g = testGPU(t, f, "0000:65:00.0")
	expect.That(t, g.Name == "" && *g.Index == 1 && g.ECC == nil, "got %+v", g)
	expect.That(t, len(f.Software) == 1 && f.Software[0].Name == "rocm" && f.Software[0].Version == "7.1.1", "got %+v", f.Software)
}

func TestAMDSMIVersion(t *testing.T) {
	f := texttest.Parse("x", "AMDSMI Tool: 25.4.2+aca1101 | AMDSMI Library version: 25.4.0 | ROCm version: 6.4.1 | amdgpu version: 6.12.12 | amd_hsmp version: N/A\n")
	expect.That(t, len(f.Software) == 1 && f.Software[0].Version == "6.4.1", "got %+v", f.Software)
}

const smiTopologyText = `ACCESS TABLE:
             0000:05:00.0 0000:26:00.0
0000:05:00.0 ENABLED      DISABLED
0000:26:00.0 ENABLED      ENABLED

WEIGHT TABLE:
             0000:05:00.0 0000:26:00.0
0000:05:00.0 0            15
0000:26:00.0 15           0
HOPS TABLE:
             0000:05:00.0 0000:26:00.0
0000:05:00.0 0            1
0000:26:00.0 1            0
LINK TYPE TABLE:
             0000:05:00.0 0000:26:00.0
0000:05:00.0 SELF         XGMI
0000:26:00.0 XGMI         SELF
NUMA BW TABLE:
             0000:05:00.0 0000:26:00.0
0000:05:00.0 N/A          50000-50000
0000:26:00.0 50000-50000  N/A
`

func TestAMDSMITopology(t *testing.T) {
	f := texttest.Parse("topo.txt", "$ amd-smi topology\n"+smiTopologyText)
	expect.Must(t, f.Links != nil && len(f.Links.Pairs) == 1, "got %+v", f.Links)
	p := f.Links.Pairs[0]
	expect.That(t, p.A == "0000:05:00.0" && p.B == "0000:26:00.0" && p.LinkType == "xgmi" && *p.Hops == 1 && p.Accessible != nil && !*p.Accessible, "got %+v", p)
	g := testGPU(t, f, "0000:26:00.0")
	expect.That(t, *g.Index == 1, "got %+v", g)
}

func TestAMDJSONTopology(t *testing.T) {
	entry := func(gpu, bdf, other, otherBDF string) string {
		return `    {
        "gpu": ` + gpu + `,
        "bdf": "` + bdf + `",
        "links": [
            {
                "gpu": ` + other + `,
                "bdf": "` + otherBDF + `",
                "weight": 40,
                "link_status": "ENABLED",
                "link_type": "PCIE",
                "num_hops": 2
            }
        ]
    }`
	}
	whole := "[\n" + entry("0", "0000:03:00.0", "1", "0000:0C:00.0") + ",\n" + entry("1", "0000:0c:00.0", "0", "0000:03:00.0") + "\n]\n"
	behind, _, _ := strings.Cut(whole, `"num_hops": 2`)
	_, before, _ := strings.Cut(whole, `        "gpu": 0`)
	for name, text := range map[string]string{
		"whole":       whole,
		"in a page":   "Topology:\n```\n" + whole + "```\nmore\n",
		"compact":     strings.ReplaceAll(strings.ReplaceAll(whole, "\n", ""), "  ", ""),
		"cut behind":  behind + `"num_hops": 2`,
		"cut before":  `        "gpu": 0` + before,
		"with values": strings.ReplaceAll(whole, `"weight": 40`, `"weight": {"value": 40, "unit": "N/A"}`),
	} {
		f := texttest.Parse(name, text)
		expect.Must(t, f.Links != nil && len(f.Links.Pairs) == 1, "%s: got %+v", name, f.Links)
		p := f.Links.Pairs[0]
		expect.That(t, p.A == "0000:03:00.0" && p.B == "0000:0c:00.0" && p.LinkType == "pcie" && p.Hops != nil && *p.Hops == 2 && *p.Accessible, "%s: got %+v", name, p)
	}
}

func TestAMDJSONStatic(t *testing.T) {
	f := texttest.Parse("x", `{
    "gpu_data": [
        {
            "gpu": 0,
            "asic": {"market_name": "AMD Instinct MI210", "target_graphics_version": "gfx90a"},
            "bus": {"bdf": "0000:c8:00.0", "max_pcie_width": 16, "max_pcie_speed": {"value": 16, "unit": "GT/s"}},
            "driver": {"name": "amdgpu", "version": "6.8.5"}
        }
    ]
}
`)
	g := testGPU(t, f, "0000:c8:00.0")
	expect.That(t, g.Name == "AMD Instinct MI210" && g.Architecture == "gfx90a" && g.PCIe.MaxGeneration == 4, "got %+v", g)
}

func TestROCmSMIJSON(t *testing.T) {
	f := texttest.Parse("x", `{"card0": {"Card series": "AMD Instinct MI100", "PCI Bus": "0000:2F:00.0"}, "card1": {"PCI Bus": "0000:03:00.0"}}
`)
	g := testGPU(t, f, "0000:2f:00.0")
	expect.That(t, g.Name == "AMD Instinct MI100", "got %+v", g)
}

// FuzzTexts checks that what is read of any text is bounded.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{
		smiStaticText, smiTopologyText, "| AMD-SMI 1\n| 0000:05:00.0 x | 0 % 3 4 1/2 W |\n| 0 0 0 S |\n",
		"[\n{\n\"gpu\": 0,\n\"bdf\": \"0000:03:00.0\",\n\"links\": [{\"gpu\": 1}]\n}]\n", `{"card0": {"a": [[[[`, "\"gpu\": 1, \"bdf\": \"\\", "AMDSMI Tool: | ROCm version: 6",
		rocminfoText, "$ rocminfo | grep gfx\n  Name:     gfx1100\n", "$ cat /opt/rocm/.info/version\n6.2.0-66\n",
		rocmSMITopologyText, "GPU[0]\t\t: PCI Bus: 0000:C1:00.0\nGPU[0]\t\t: GFX Version: gfx90a\n",
		">>> torch.cuda.is_available()\nFalse\n", "$ python -c 'torch.cuda.device_count()'\n3\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(testBounded)
}

// testBounded parses a text and checks that what comes out is bounded.
func testBounded(t *testing.T, text string) {
	f := texttest.Sections("fuzz", text)
	gpus := len(f.GPUs.Devices)
	expect.That(t, (f.Links == nil || len(f.Links.Pairs) <= parse.MaxEntries*2) && gpus <= parse.MaxDevices && len(f.Benchmarks) <= parse.MaxEntries && len(f.Software) <= parse.MaxEntries, "%d GPUs, %d benchmarks, %d packages", gpus, len(f.Benchmarks), len(f.Software))
}

func TestAMDSMILinkOfTwoReports(t *testing.T) {
	f := texttest.Parse("smi.txt", "$ amd-smi metric --pcie -g 3\nGPU: 3\n    PCIE:\n        WIDTH: 8\n        SPEED: 32 GT/s\n"+
		"$ amd-smi static --bus -g 3\nGPU: 3\n    BUS:\n        BDF: 0000:5d:00.0\n        MAX_PCIE_WIDTH: 16\n        MAX_PCIE_SPEED: 32 GT/s\n")
	expect.Must(t, f.GPUs != nil && len(f.GPUs.Devices) == 1, "got %+v, want one GPU", f.GPUs)
	l := f.GPUs.Devices[0].PCIe
	expect.That(t, l != nil && l.Width == 8 && l.MaxWidth == 16, "got link %+v, want 8 lanes of 16", l)
}
