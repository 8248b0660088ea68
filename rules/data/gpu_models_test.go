package data

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestGPUModels(t *testing.T) {
	id := regexp.MustCompile(`^0x[0-9a-f]{4}$`)
	table := Read[struct {
		Models []struct {
			GPUModel
			Architecture string
		}
		AMDInstinct   []string       `json:"amd_instinct"`
		AMDIntegrated []string       `json:"amd_integrated"`
		AcceptedLanes map[string]int `json:"accepted_lanes"`
	}]("gpu_models")
	names, ids := map[string]bool{}, map[string]bool{}
	for _, m := range table.Models {
		check := func(is bool, words string, args ...any) { t.Helper(); expect.That(t, is, m.Name+": "+words, args...) }
		check(m.Name != "" && !names[m.Name], "the name is given twice, or is empty")
		names[m.Name] = true
		for _, of := range m.IDs {
			check(!ids[of] && id.MatchString(of), "the id %q is given twice, or is not valid", of)
			ids[of] = true
		}
		// Escapes such as \S and \B have letters that mean the opposite.
		check(m.Like != "" && m.Like == strings.ToLower(m.Like), "pattern %q", m.Like)
		for value, allowed := range map[string]string{
			m.Architecture: "maxwell pascal volta turing ampere ada hopper blackwell", m.Form: "board card superchip", m.NVLink: "board pair none",
		} {
			check(value == "" || slices.Contains(strings.Fields(allowed), value) || strings.HasPrefix(value, "gfx"), "%q is not one of %q", value, allowed)
		}
		check((m.NVLink == "board") == (m.NVLinkGBps > 0) && m.NVLinkGBps <= 1000 && m.XGMIGBps >= 0 && m.XGMIGBps <= 100, "NVLink %q with %v GB/s, xGMI links of %v GB/s", m.NVLink, m.NVLinkGBps, m.XGMIGBps)
		check(!m.XGMIMesh || m.XGMIGBps != 0, "a mesh of xGMI links without a rate")
	}
	for of, lanes := range table.AcceptedLanes {
		expect.That(t, id.MatchString(of) && slices.Contains([]int{1, 2, 4, 8}, lanes), "the model with id %q is good with %d lanes", of, lanes)
	}
	seen := map[string]bool{}
	for _, a := range slices.Concat(table.AMDInstinct, table.AMDIntegrated) {
		expect.That(t, !seen[a] && regexp.MustCompile(`^gfx[0-9a-f]{3,4}$`).MatchString(a), "the architecture %q is given twice, or is empty", a)
		seen[a] = true
	}
}

// TestGPUModelOf checks what the table says of names as drivers, lspci and people write
// them, and that each row is the first for some name.
func TestGPUModelOf(t *testing.T) {
	first := map[string]bool{}
	for name, want := range map[string]string{
		"NVIDIA GB300": "GB300", "NVIDIA GB200": "GB200", "NVIDIA GB10": "GB10", "NVIDIA B300 SXM6 AC": "B300", "NVIDIA B200": "B200", "B100": "B100",
		"NVIDIA GH200 480GB": "GH200", "NVIDIA H200 NVL": "H200 NVL", "NVIDIA H200": "H200", "NVIDIA H100 NVL": "H100 NVL", "NVIDIA H100 PCIe": "H100 PCIe",
		"NVIDIA H100 80GB HBM3": "H100 SXM", "GH100 [H100 SXM5 80GB]": "H100 SXM", "8x h100": "H100", "NVIDIA H800": "H800", "NVIDIA H800 PCIe": "H800 PCIe",
		"NVIDIA H800 NVL": "H800 NVL", "NVIDIA H20": "H20", "NVIDIA A100-PCIE-40GB": "A100 PCIe", "NVIDIA A100 80GB PCIe": "A100 PCIe",
		"NVIDIA A100-SXM4-80GB": "A100 SXM", "NVIDIA A100-SXM4-40GB MIG 1g.5gb": "A100 SXM", "A100": "A100", "NVIDIA A800-SXM4-80GB": "A800 SXM",
		"NVIDIA A800 80GB PCIe": "A800 PCIe", "NVIDIA A800 40GB Active": "A800", "Tesla V100-SXM3-32GB": "V100 SXM3", "Tesla V100-SXM2-16GB": "V100 SXM2",
		"Tesla V100-PCIE-16GB": "V100 PCIe", "Tesla V100S-PCIE-32GB": "V100 PCIe", "V100": "V100", "Tesla P100-SXM2-16GB": "P100 SXM2", "Tesla P100-PCIE-16GB": "P100 PCIe", "P100": "P100",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX PRO", "NVIDIA RTX 6000 Ada Generation": "RTX Ada", "NVIDIA RTX 4000 SFF Ada Generation": "RTX Ada",
		"NVIDIA RTX A6000": "RTX A", "A5000": "RTX A", "Quadro RTX 8000": "Quadro RTX", "NVIDIA GeForce RTX 5090": "GeForce RTX 50",
		"NVIDIA GeForce RTX 4090": "GeForce RTX 4080 and 4090", "NVIDIA GeForce RTX 4060 Laptop GPU": "GeForce RTX 40", "NVIDIA GeForce RTX 3090 Ti": "GeForce RTX 3090",
		"NVIDIA GeForce RTX 3060": "GeForce RTX 30", "GeForce RTX 2080 Ti": "GeForce RTX 20", "GeForce GTX 1080 Ti": "GeForce GTX",
		"AMD Instinct MI60 / MI50": "AMD Instinct MI60 / MI50", "AMD Radeon VII": "AMD Radeon VII", "AMD Radeon Pro VII": "AMD Radeon Pro VII", "AMD Instinct MI100": "AMD Instinct MI100",
		"AMD Instinct MI210": "AMD Instinct MI210", "AMD Instinct MI210 VF": "AMD Instinct MI210 VF", "AMD Instinct MI250X / MI250": "AMD Instinct MI250X / MI250",
		"AMD Instinct MI250X": "AMD Instinct MI250X", "AMD Instinct MI300A": "AMD Instinct MI300A", "AMD Instinct MI300X": "AMD Instinct MI300X",
		"AMD Instinct MI300X VF": "AMD Instinct MI300X VF", "AMD Instinct MI308X": "AMD Instinct MI308X", "AMD Instinct MI325X": "AMD Instinct MI325X",
		"AMD Instinct MI325X VF": "AMD Instinct MI325X VF", "AMD Instinct MI350X": "AMD Instinct MI350X", "AMD Instinct MI355X": "AMD Instinct MI355X",
		"AMD Radeon Pro V620": "AMD Radeon Pro V620", "AMD Radeon Pro W6800": "AMD Radeon Pro W6800", "AMD Radeon PRO W7900": "AMD Radeon Pro W7900",
		"AMD Radeon PRO W7900 Dual Slot": "AMD Radeon Pro W7900 Dual Slot", "AMD Radeon Pro W7800 48GB": "AMD Radeon Pro W7800 48GB", "W7800": "AMD Radeon Pro W7800",
		"AMD Radeon RX 7900 XTX": "AMD Radeon RX 7900 series", "RX7800 XT": "AMD Radeon RX 7800 series", "AMD Radeon RX 9070 XT": "AMD Radeon RX 9070 series",
		"AMD Radeon RX 9060 XT": "AMD Radeon RX 9060 series", "R9700": "AMD Radeon AI PRO R9700", "NVIDIA L40S": "L40S", "NVIDIA L40": "L40", "NVIDIA L4": "L4",
		"NVIDIA A40": "A40", "NVIDIA A30": "A30", "NVIDIA A16": "A16", "NVIDIA A10G": "A10G", "NVIDIA A10": "A10", "NVIDIA A2": "A2", "Tesla T4": "T4", "NVIDIA T4G": "T4",
		"Tesla P40": "P40", "Tesla P4": "P4", "Tesla M60": "M60", "Tesla M40 24GB": "M40", "Tesla M10": "M10", "NVIDIA Graphics Device Blackwell": "a Blackwell GPU",
		"Hopper": "a Hopper GPU", "Ampere": "an Ampere GPU", "NVIDIA X1-SXM9": "a GPU module", "GeForce MX450": "a GeForce", "NVIDIA TITAN V": "a card",
		"Orin (nvgpu)": "Jetson", "Tesla K80": "", "": "",
	} {
		got := GPUModelOf(name).Name
		expect.Equal(t, want, got, "the model of %q", name)
		first[got] = true
	}
	for _, m := range GPUModels().Models {
		expect.That(t, first[m.Name], "no name leads to %s", m.Name)
	}
}

func TestGPUModelByID(t *testing.T) {
	for id, want := range map[string]string{"0x74a1": "AMD Instinct MI300X", "0x738e": "AMD Instinct MI100", "0x0000": "", "": ""} {
		expect.Equal(t, want, GPUModelByID(id).Name, "the model with id %q", id)
	}
}

func TestNVIDIAFunctions(t *testing.T) {
	n := GPUModels().NVIDIA
	names := regexp.MustCompile(n.Names)
	for name, want := range map[string]bool{"GA100 [A100 SXM4 40GB]": true, "Tesla K80": true, "AD102 [GeForce RTX 4090]": true, "MCP55 Ethernet": false} {
		expect.Equal(t, want, names.MatchString(name), "%q is a GPU's name", name)
	}
	for _, id := range slices.Concat(n.NVSwitchIDs, []string{n.FirstGPUID}) {
		expect.That(t, regexp.MustCompile(`^0x[0-9a-f]{4}$`).MatchString(id), "the id %q is not valid", id)
	}
}
