package area

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// known is facts of every area.
func known() *facts.Facts {
	return &facts.Facts{
		GPUs: &facts.GPUFacts{Devices: []facts.GPU{
			{Address: "a", ECC: &facts.ECC{Enabled: true}, NVLinks: []facts.NVLink{{Active: true}, {}}, PCIe: &facts.GPULink{MaxGeneration: 4, MaxWidth: 16}},
			{Address: "b", ECC: &facts.ECC{}},
		}},
		PCI: &facts.PCIFacts{Devices: []facts.PCIDevice{
			{Kind: "gpu", Link: &facts.PCIeLink{MaxSpeedGTs: 32, MaxWidth: 16}}, {Kind: "gpu", Link: &facts.PCIeLink{MaxSpeedGTs: 16, MaxWidth: 8}}, {Kind: "nic"},
		}},
		IOMMU:     &facts.IOMMUFacts{Mode: "passthrough"},
		NUMA:      &facts.NUMAFacts{Nodes: []facts.NUMANode{{}, {ID: 1}}, Balancing: new(1)},
		Container: &facts.ContainerFacts{Inside: new(true), Runtime: "docker", SHM: &facts.FileSystem{SizeBytes: 64 << 20}, MemlockSoftBytes: new(int64(8 << 20))},
		Libraries: &facts.LibraryFacts{Files: []facts.Library{{Kind: "libnccl", Version: "2.28.3"}, {Kind: "libnccl", Version: "2.28.9"}, {Kind: "libcuda", Version: "580"}}},
		Env: &facts.EnvFacts{Variables: []facts.Variable{
			{Name: "A", Effective: true}, {Name: "B", Effective: true}, {Name: "C", Effective: true}, {Name: "D", Effective: true}, {Name: "E"},
		}},
		NICs:      &facts.NICFacts{RDMA: []facts.RDMAPort{{State: "active"}, {State: "down"}}},
		KernelLog: &facts.KernelLogFacts{Events: []facts.KernelEvent{{Count: 3}, {}}},
	}
}

func TestTelling(t *testing.T) {
	want := map[rules.Area]string{
		rules.AreaGPUs:        "2 GPUs, ECC on for 1, 1 of 2 NVLinks up",
		rules.AreaPCIe:        "2 GPUs at 4.0 x8 to 5.0 x16",
		rules.AreaIOMMU:       "pass-through mode",
		rules.AreaNUMA:        "2 nodes, automatic balancing on",
		rules.AreaContainer:   "docker container, /dev/shm 64 MiB, locked memory 8.0 MiB",
		rules.AreaLibraries:   "NCCL 2.28.3 and 2.28.9",
		rules.AreaEnvironment: "set: A, B, C, 1 more",
		rules.AreaNetwork:     "1 of 2 RDMA ports active",
		rules.AreaKernelLog:   "4 GPU or PCIe events, no known faults",
	}
	for area, words := range want {
		expect.Equal(t, words, summary(known(), area), "%s", area)
	}
	f := known()
	f.PCI.Devices, f.IOMMU.Mode, f.Env.Variables, f.NICs.RDMA, f.KernelLog.Events = f.PCI.Devices[2:], "off", nil, nil, nil
	f.Container, f.Libraries = &facts.ContainerFacts{Inside: new(false), MemlockSoftBytes: new(int64(-1))}, &facts.LibraryFacts{}
	want = map[rules.Area]string{
		rules.AreaPCIe:        "1 GPU at 4.0 x16",
		rules.AreaIOMMU:       "off",
		rules.AreaContainer:   "not in a container, locked memory unlimited",
		rules.AreaLibraries:   "0 files, neither NCCL nor RCCL among them",
		rules.AreaEnvironment: "no communication variables set",
		rules.AreaNetwork:     "0 interfaces",
		rules.AreaKernelLog:   "no GPU or PCIe events",
	}
	for area, words := range want {
		expect.Equal(t, words, summary(f, area), "%s", area)
	}
}

// TestTellingGPUDirect checks that what was really tried is shown beside the ports, and that what is not known is not.
func TestTellingGPUDirect(t *testing.T) {
	ok, refused := &facts.Attempt{Outcome: "ok"}, &facts.Attempt{Outcome: "refused"}
	const ports = "1 of 2 RDMA ports active"
	for want, gpus := range map[string][]facts.DirectGPU{
		"": {{Address: "a"}, {Address: "b", DMABuf: refused, Peermem: refused}},
		", NICs register the memory of 2 of 2 GPUs (DMA-BUF, nvidia-peermem)": {{Address: "a", DMABuf: ok, Peermem: ok}, {Address: "b", DMABuf: ok, Peermem: ok}},
		", NICs register the memory of 1 of 2 GPUs (DMA-BUF)":                 {{Address: "a", DMABuf: ok, Peermem: refused}, {Address: "b"}},
		", NICs register the memory of 2 of 2 GPUs":                           {{Address: "a", DMABuf: ok}, {Address: "b", Peermem: ok}},
	} {
		f := known()
		f.GPUDirect = &facts.GPUDirectFacts{NICs: []facts.DirectNIC{{GPUs: gpus}}}
		expect.Equal(t, ports+want, summary(f, rules.AreaNetwork), "it")
	}
}

// TestLines checks how the state of an area follows from its rules.
func TestLines(t *testing.T) {
	rule := func(id string, areas ...rules.Area) rules.Rule { return rules.Rule{ID: id, Areas: areas} }
	all := []rules.Rule{
		rule("link", rules.AreaPCIe), rule("acs", rules.AreaPCIe), rule("fault", rules.AreaGPUs, rules.AreaKernelLog),
		rule("numa", rules.AreaNUMA), rule("copy", rules.AreaPaths),
	}
	bad := rules.Finding{Rule: "fault", Severity: rules.High, Title: "A GPU is faulty", Evidence: []rules.Evidence{{Fact: "kernel_log.events[x]"}}}
	below := rules.Finding{Rule: "acs", Severity: rules.Critical, Title: "ACS redirects", Explains: []rules.Finding{{Rule: "copy", Severity: rules.Critical, Title: "A copy fails"}}}
	for _, tt := range []struct {
		name    string
		verdict rules.Result
		paths   Line
		want    map[rules.Area]Line
	}{
		{
			"all passed",
			rules.Result{Passed: []string{"link", "acs", "fault", "copy"}, NotApplicable: map[string]string{"numa": "one node"}},
			Line{State: OK, Summary: "2 of 2"},
			map[rules.Area]Line{
				rules.AreaPCIe: {State: OK, Summary: "2 GPUs at 4.0 x8 to 5.0 x16"}, rules.AreaNUMA: {State: NotApplicable, Summary: "one node"},
				rules.AreaPaths: {State: OK, Summary: "2 of 2"}, rules.AreaJob: {State: NotApplicable, Summary: "no log was given"},
			},
		},
		{
			"one not judged, one left out",
			rules.Result{Passed: []string{"acs", "copy"}, Skipped: []rules.Skipped{{Rule: "link", Missing: []rules.Missing{{Fact: "pci", Reason: "hidden"}}}}},
			Line{State: Unknown, Summary: "no transfer was tried"},
			map[rules.Area]Line{
				rules.AreaPCIe: {State: Unknown, Summary: "hidden", Rules: []string{"link"}}, rules.AreaNUMA: {State: Unknown, Summary: "excluded by --only or --skip"},
				rules.AreaPaths: {State: Unknown, Summary: "no transfer was tried"},
			},
		},
		{"findings", rules.Result{Passed: []string{"link", "numa"}, Findings: []rules.Finding{below, bad}}, Line{State: OK, Summary: "2 of 2"}, map[rules.Area]Line{
			rules.AreaPCIe: {State: Problem, Summary: "ACS redirects", Rules: []string{"acs"}}, rules.AreaKernelLog: {State: Problem, Summary: "A GPU is faulty", Rules: []string{"fault"}},
			rules.AreaGPUs: {State: Problem, Summary: "A GPU is faulty", Rules: []string{"fault"}}, rules.AreaPaths: {State: Problem, Summary: "2 of 2; a consequence of acs", Rules: []string{"copy"}},
		}},
	} {
		got := map[rules.Area]Line{}
		for _, l := range Lines(Input{Facts: known(), Rules: all, Verdict: tt.verdict, Paths: tt.paths}) {
			name := l.Name
			if _, ok := tt.want[name]; ok {
				l.Name = ""
				got[name] = l
			}
		}
		expect.NoDiff(t, tt.want, got, "%s", tt.name)
	}
}
