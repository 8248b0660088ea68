package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// shownBy says which GPUs each source shows.
type shownBy struct{ pci, management, api []bool }

// vendorOf is a machine of one vendor, on which the sources show some of its GPUs.
type vendorOf struct{ vendor, id, driver, api string }

var vendorsOf = []vendorOf{{"nvidia", "0x10de", "nvidia", "cuda"}, {"amd", "0x1002", "amdgpu", "hip"}}

func addressOf(i int) string { return fmt.Sprintf("0000:%02x:00.0", 0x3b+i) }

func (v vendorOf) machine(s shownBy) *facts.Facts {
	f := &facts.Facts{
		Schema: facts.FactsSchema, PCI: &facts.PCIFacts{Devices: []facts.PCIDevice{}}, Host: &facts.HostFacts{Root: new(true)},
		GPUs: &facts.GPUFacts{NVML: "ok", Devices: []facts.GPU{}, AMD: &facts.AMDDriver{KFD: "ok"}}, Env: &facts.EnvFacts{Variables: []facts.Variable{}},
		Container: &facts.ContainerFacts{Inside: new(false), DeviceNodes: []facts.DeviceNode{}}, KernelLog: &facts.KernelLogFacts{Events: []facts.KernelEvent{}},
		Libraries: &facts.LibraryFacts{Files: []facts.Library{}},
		Transfers: &probe.Report{Outcome: probe.OK, API: v.api, Devices: []probe.Device{}, Peers: []probe.Peer{}, Transfers: []probe.Transfer{}},
	}
	for i := range s.pci {
		a := addressOf(i)
		if s.pci[i] {
			f.PCI.Devices = append(f.PCI.Devices, facts.PCIDevice{Address: a, Vendor: v.id, Device: "0x1111", Kind: "gpu", Driver: v.driver})
		}
		if s.pci[i] || s.management[i] {
			g := facts.GPU{Address: a, Vendor: v.vendor, Name: "Model", Integrated: new(false), InPCI: s.pci[i], InNVML: s.management[i] && v.vendor == "nvidia"}
			if s.management[i] && v.vendor == "amd" {
				g.KFD = &facts.KFDNode{Node: i + 1}
			}
			f.GPUs.Devices = append(f.GPUs.Devices, g)
		}
		if s.api[i] {
			f.Transfers.Devices = append(f.Transfers.Devices, probe.Device{Ordinal: i, Address: a, Outcome: probe.OK})
		}
	}
	return f
}

// lackOf are n GPUs, of which a source lacks some.
func lackOf(n, some int) []bool {
	list := make([]bool, n)
	for i := range list {
		list[i] = some>>i&1 == 0
	}
	return list
}

// choose sets a list of as many GPUs as the API offers.
func choose(f *facts.Facts, v vendorOf, _ []int) {
	name := map[string]string{"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "HIP_VISIBLE_DEVICES"}[v.vendor]
	f.Env.Variables = []facts.Variable{{Name: name, Value: "0,1"[:2*len(f.Transfers.Devices)-1], Source: "environment", Effective: true}}
}

// giveNodes gives as many device nodes.
func giveNodes(f *facts.Facts, v vendorOf, _ []int) {
	for i := range f.Transfers.Devices {
		node := map[string]string{"nvidia": "/dev/nvidia", "amd": "/dev/dri/renderD12"}[v.vendor] + strconv.Itoa(i)
		f.Container.DeviceNodes = append(f.Container.DeviceNodes, facts.DeviceNode{Path: node, Access: "rw"})
	}
}

// explanations are what explains that CUDA or HIP offers fewer GPUs than there are. They explain nothing else.
var explanations = map[string]func(f *facts.Facts, v vendorOf, lacks []int){
	"a list": choose, "device nodes": giveNodes,
	"nodes without access": func(f *facts.Facts, v vendorOf, lacks []int) {
		giveNodes(f, v, nil)
		for i := range lacks {
			node := map[string]string{"nvidia": "/dev/nvidia", "amd": "/dev/dri/renderD13"}[v.vendor] + strconv.Itoa(5+i)
			f.Container.DeviceNodes = append(f.Container.DeviceNodes, facts.DeviceNode{Path: node, Access: "none"})
		}
	},
	"MIG": func(f *facts.Facts, v vendorOf, _ []int) {
		if v.vendor == "amd" {
			choose(f, v, nil)
			return
		}
		f.GPUs.Devices[0].MIG = new(true)
	},
	"lost GPUs": func(f *facts.Facts, _ vendorOf, lacks []int) {
		for i := range f.GPUs.Devices {
			if slices.ContainsFunc(lacks, func(l int) bool { return addressOf(l) == f.GPUs.Devices[i].Address }) {
				f.GPUs.Devices[i].Error = "GPU_IS_LOST"
			}
		}
	},
	"the other vendor's API": func(f *facts.Facts, v vendorOf, _ []int) {
		f.Transfers.API = map[string]string{"cuda": "hip", "hip": "cuda"}[v.api]
		f.GPUs.Devices = append(f.GPUs.Devices, facts.GPU{
			Address: "0000:c1:00.0", Vendor: map[string]string{"nvidia": "amd", "amd": "nvidia"}[v.vendor], InNVML: v.vendor == "amd", InPCI: true, KFD: &facts.KFDNode{Node: 9},
		})
		f.PCI.Devices = append(f.PCI.Devices, facts.PCIDevice{Address: "0000:c1:00.0", Vendor: "0x1002", Kind: "gpu"})
		f.Transfers.Devices = []probe.Device{{Address: "0000:c1:00.0", Outcome: probe.OK}}
	},
}

// unread are the ways in which a source, or what could explain a difference, is not known.
var unread = map[string]func(f *facts.Facts){
	"the management library failed": func(f *facts.Facts) { f.GPUs.NVML, f.GPUs.AMD.KFD = "error", "partial" },
	"the probe gave no GPUs":        func(f *facts.Facts) { f.Transfers.Devices = nil },
	"no probe":                      func(f *facts.Facts) { f.Transfers = nil },
	"no variables":                  func(f *facts.Facts) { f.Env = nil },
	"no device nodes":               func(f *facts.Facts) { f.Container.DeviceNodes = nil },
}

// TestSourcesOfGPUs checks, for up to three GPUs and each subset of them that a source lacks, that a difference without
// explanation is a finding that names the source and the GPUs, that one with an explanation is none, and that an
// unknown source gives neither a finding nor a rule that passes.
func TestSourcesOfGPUs(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "nothing in it runs side by side")
	set := compiledSet(t)
	judged := []string{"gpu-missing", "gpu-fault", "amd-gpu-fault", "gpu-visibility"}
	verdict := func(f *facts.Facts) *Result {
		return expect.Value(set.Evaluate(t.Context(), f, Options{Only: judged}))(t)
	}
	// found are the findings that name a GPU, or all that CUDA lacks.
	found := func(v *Result, address, source string) bool {
		return slices.ContainsFunc(v.Findings, func(f Finding) bool {
			return slices.Contains(f.Affects, address) && strings.Contains(f.Message, source) || f.Rule == "gpu-visibility" && f.Subject == "CUDA"
		})
	}
	missing := func(v *Result) bool {
		return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Rule == "gpu-missing" })
	}
	combinations := 0
	for _, v := range vendorsOf {
		names := map[string]string{"api": strings.ToUpper(v.api), "management": map[string]string{"nvidia": "NVML", "amd": "compute driver"}[v.vendor]}
		for n := 1; n <= 3; n++ {
			whole := lackOf(n, 0)
			got := verdict(v.machine(shownBy{whole, whole, whole}))
			expect.That(t, len(got.Findings) == 0 && slices.Contains(got.Passed, "gpu-missing"), "%d of %s, all shown by all: %v, passed %v", n, v.vendor, got.Findings, got.Passed)
			for some := 1; some < 1<<n; some++ {
				part := lackOf(n, some)
				var lacks []int
				for i, here := range part {
					if !here {
						lacks = append(lacks, i)
					}
				}
				all := len(lacks) == n
				for source, s := range map[string]shownBy{
					"api": {whole, whole, part}, "management": {whole, part, whole}, "management, api": {whole, part, part},
				} {
					where := fmt.Sprintf("%s %v of %s lacks %v", source, names[source], v.vendor, lacks)
					// HIP without a GPU is an error of the probe, and the compute driver of AMD need not know a model.
					silent := all && v.vendor == "amd" && source != "management"
					got := verdict(v.machine(s))
					combinations++
					for _, i := range lacks {
						expect.That(t, found(got, addressOf(i), names[source]) != silent, "%s: %v", where, got.Findings)
					}
					for name, unknown := range unread {
						f := v.machine(s)
						unknown(f)
						combinations++
						got := verdict(f)
						expect.That(t, !missing(got) && !slices.Contains(got.Passed, "gpu-missing"), "%s, and %s: %v, passed %v", where, name, got.Findings, got.Passed)
					}
					if source != "api" || all {
						continue
					}
					for name, explain := range explanations {
						f := v.machine(s)
						explain(f, v, lacks)
						combinations++
						got := verdict(f)
						expect.That(t, !missing(got), "%s, explained by %s: %v", where, name, got.Findings)
					}
				}
			}
		}
	}
	t.Logf("%d combinations", combinations)
}
