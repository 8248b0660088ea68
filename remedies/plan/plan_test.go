package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

func known(t *testing.T) *remedies.Set {
	t.Helper()
	return expect.Value(remedies.Load())(t)
}

// machineOf has some GPUs of one model on two NUMA nodes, each half of them on one.
func machineOf(gpus int) *facts.Facts {
	f := &facts.Facts{
		GPUs: &facts.GPUFacts{}, PCI: &facts.PCIFacts{}, NICs: &facts.NICFacts{}, Links: &facts.LinkFacts{},
		NUMA: &facts.NUMAFacts{Nodes: []facts.NUMANode{{ID: 0, CPUs: "0-15"}, {ID: 1, CPUs: "16-31"}, {ID: 2}}},
	}
	for i := range gpus {
		address := addressOf(i)
		f.GPUs.Devices = append(f.GPUs.Devices, facts.GPU{Address: address, Vendor: "nvidia", Name: "H200", Index: new(i)})
		f.PCI.Devices = append(f.PCI.Devices, facts.PCIDevice{Address: address, NUMANode: new(2 * i / gpus)})
		for j := range i {
			f.Links.Pairs = append(f.Links.Pairs, facts.Pair{A: addressOf(j), B: address, Kind: "gpu-gpu", Path: "PXB"})
		}
	}
	return f
}

func addressOf(i int) string { return "0000:" + string(rune('a'+i)) + "0:00.0" }

// port adds an active RDMA port that is as near to a GPU as a path says.
func port(f *facts.Facts, device, address string, rate float64, nearest ...int) {
	f.NICs.RDMA = append(f.NICs.RDMA, facts.RDMAPort{Device: device, Port: 1, Address: address, State: "active", LinkLayer: "InfiniBand", RateGbps: rate})
	for i := range f.GPUs.Devices {
		path := "SYS"
		if slices.Contains(nearest, i) {
			path = "PIX"
		}
		f.Links.Pairs = append(f.Links.Pairs, facts.Pair{A: addressOf(i), B: address, Kind: "gpu-nic", Path: path})
	}
}

func written(p *Plan) []string {
	return expect.Map(p.Settings, func(s Setting) string { return strings.TrimSuffix(string(s.Kind)+" "+s.Name+"="+s.Value, "=") })
}

func TestNeeds(t *testing.T) {
	rails := machineOf(4)
	port(rails, "mlx5_0", "0000:01:00.0", 400, 0, 1)
	port(rails, "mlx5_1", "0000:02:00.0", 400, 2, 3)
	storage := machineOf(4)
	port(storage, "mlx5_0", "0000:01:00.0", 400, 0, 1, 2, 3)
	port(storage, "mlx5_9", "0000:02:00.0", 100)
	slow := machineOf(2)
	port(slow, "mlx5_0", "0000:01:00.0", 400, 0)
	port(slow, "mlx5_1", "0000:02:00.0", 25, 1)
	down := machineOf(1)
	down.NICs.RDMA = []facts.RDMAPort{{Device: "mlx5_0", Port: 1, State: "down"}}
	different := machineOf(2)
	different.GPUs.Devices[1].Name = "A100"
	radeon := machineOf(2)
	for i := range radeon.GPUs.Devices {
		radeon.GPUs.Devices[i].Vendor = "amd"
	}
	unknown := machineOf(2)
	unknown.NICs, unknown.NUMA = nil, nil
	offered := machineOf(4)

	several := []string{"gpus =all", "shm =16g", "capability SYS_NICE"}
	rdma := []string{"gpus =all", "shm =16g", "device /dev/infiniband", "limit memlock=-1", "capability IPC_LOCK", "capability SYS_NICE"}
	for name, test := range map[string]struct {
		facts   *facts.Facts
		want    []string
		bind    bool
		unknown []string
	}{
		"one GPU":            {facts: machineOf(1), want: []string{"gpus =all"}, bind: true},
		"four GPUs":          {facts: offered, want: several, bind: true},
		"rails":              {facts: rails, want: rdma, bind: true},
		"a port for storage": {facts: storage, want: append([]string{"variable NCCL_IB_HCA==mlx5_0"}, rdma...), bind: true},
		"a slow port":        {facts: slow, want: append([]string{"variable NCCL_IB_HCA==mlx5_0"}, rdma...), bind: true},
		"a port is down":     {facts: down, want: []string{"gpus =all"}, bind: true},
		"different models":   {facts: different, want: append([]string{"variable CUDA_DEVICE_ORDER=PCI_BUS_ID"}, several...), bind: true},
		"AMD":                {facts: radeon, want: []string{"device /dev/kfd", "device /dev/dri", "group video", "group render", "shm =16g", "capability SYS_NICE"}, bind: true},
		"unknown":            {facts: unknown, want: []string{"gpus =all", "shm =16g"}, unknown: []string{"the NUMA nodes", "the RDMA devices"}},
		"nothing":            {facts: &facts.Facts{}, unknown: []string{"the GPUs", "the NUMA nodes", "the RDMA devices"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(Input{Facts: test.facts, Remedies: known(t)})
			expect.NoDiff(t, test.want, written(p), "settings")
			expect.That(t, p.Bind == test.bind && slices.Equal(p.Unknown, test.unknown), "bind %v, unknown %v; want %v, %v", p.Bind, p.Unknown, test.bind, test.unknown)
			for _, s := range p.Settings {
				expect.That(t, s.Reason != "" && !strings.ContainsAny(s.Reason+s.Value, "{}"), "%s %s: value %q, reason %q", s.Kind, s.Name, s.Value, s.Reason)
			}
		})
	}
}

// TestHostileNames checks that a name that would be a line or a command of its own is not taken.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"mlx5_0\nLD_PRELOAD=/tmp/x.so", "$(reboot)", "a b", "`id`", "a;b", "", "\x1b[2J", "é"} {
		f := machineOf(2)
		f.NUMA.Nodes[0].CPUs = name
		port(f, "mlx5_7", "0000:01:00.0", 400, 0)
		port(f, name, "0000:02:00.0", 100, 1)
		p := New(Input{Facts: f, Remedies: known(t)})
		for _, s := range p.Settings {
			expect.That(t, s.Name != "NCCL_IB_HCA" && (name == "" || !strings.Contains(s.Reason+s.Value, name)), "%q: %+v", name, s)
		}
		for _, r := range p.Ranks {
			expect.That(t, (len(r.NICs) == 0 || r.NICs[0] == "mlx5_7") && (name == "" || !strings.Contains(r.CPUs, name)), "%q: %+v", name, r)
		}
		expect.That(t, !p.Bind, "%q: the CPUs of a node count as known", name)
	}
}

// TestTable checks that the conditions of the table are those that there are, that its remedies
// set something in a container, and that nothing in braces is left.
func TestTable(t *testing.T) {
	conditions := study(&facts.Facts{}).conditions
	used := map[string]bool{}
	set := known(t)
	m := study(machineOf(2))
	for _, need := range data.JobNeeds().Needs {
		for _, name := range need.When {
			_, ok := conditions[name]
			expect.That(t, ok, "there is no condition %q", name)
			used[name] = true
		}
		_, ok := set.Remedy(need.Remedy)
		expect.That(t, need.Remedy == "" || ok, "there is no remedy %q", need.Remedy)
		expect.That(t, len(m.settingsOf(need, set)) > 0, "the need of %v sets nothing", need.When)
	}
	for name := range conditions {
		expect.That(t, used[name], "no row needs the condition %q", name)
	}
}

// TestFlags checks that each flag of docker run that a remedy has is a setting, but for the
// binding to NUMA nodes, which ranks have.
func TestFlags(t *testing.T) {
	for _, r := range known(t).Remedies() {
		for _, flag := range r.Apply.Docker {
			_, ok := ofFlag(flag)
			expect.That(t, ok || strings.HasPrefix(flag, "--cpuset-mems="), "%s: the flag %q is no setting", r.ID, flag)
		}
		for _, line := range r.Apply.Modprobe {
			expect.That(t, len(strings.Fields(line)) == 3, "%s: the line %q is no module option", r.ID, line)
		}
	}
}

func finding(rule string, severity rules.Severity, ids ...string) rules.Finding {
	return rules.Finding{
		Rule: rule, Cause: rule, Severity: severity, Confidence: rules.Confirmed, Subject: "host", Message: "Fault of " + rule + ".", Remedies: ids,
		Params: map[string]any{"variable": "NCCL_P2P_DISABLE", "bridges": []any{"0000:01:00.0"}},
	}
}

// TestAdvised checks what a plan takes of the advice: the fix, and a workaround where the files of
// a job cannot fix it; nothing for remarks, and what cannot be written as a step.
func TestAdvised(t *testing.T) {
	for name, test := range map[string]struct {
		findings    []rules.Finding
		want, steps []string
		until       string
	}{
		"the kernel, and a workaround": {
			findings: []rules.Finding{finding("p2p-broken-platform", rules.Critical, "iommu-pt", "nccl-p2p-disable")},
			want:     []string{"variable NCCL_P2P_DISABLE=1", "kernel-parameter iommu=pt"},
			until:    "Set the IOMMU to pass-through",
		},
		"the job alone": {findings: []rules.Finding{finding("env-misconfig", rules.High, "unset-env")}, want: []string{"unset NCCL_P2P_DISABLE"}},
		"by hand, and a workaround": {
			findings: []rules.Finding{finding("gpu-fault", rules.High, "update-bios", "nccl-p2p-disable")},
			want:     []string{"variable NCCL_P2P_DISABLE=1"}, steps: []string{"update-bios"}, until: "Update the machine's BIOS and firmware",
		},
		"a remark": {findings: []rules.Finding{finding("numa-affinity", rules.Low, "disable-numa-balancing")}},
		"two faults with one cure": {
			findings: []rules.Finding{finding("acs-redirect", rules.High, "disable-acs"), finding("acs-path", rules.High, "disable-acs")},
			want:     []string{"kernel-parameter pci=disable_acs_redir=0000:01:00.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := known(t)
			f := &facts.Facts{
				GPUs: &facts.GPUFacts{}, NICs: &facts.NICFacts{}, NUMA: &facts.NUMAFacts{},
				Env: &facts.EnvFacts{Variables: []facts.Variable{
					{Name: "NCCL_P2P_DISABLE", Value: "2", Source: "environment", Effective: true}, {Name: "NCCL_P2P_DISABLE", Value: "3", Source: "/etc/nccl.conf"},
				}},
			}
			advice := set.Rank(test.findings, remedies.Situation{Facts: f}).Advice
			p := New(Input{Facts: f, Findings: test.findings, Advice: advice, Remedies: set})
			expect.NoDiff(t, test.want, written(p), "settings")
			expect.NoDiff(t, test.steps, expect.Map(p.Steps, func(s Step) string { return s.Remedy }), "steps")
			for _, s := range p.Settings {
				expect.That(t, s.Remedy != "" && len(s.Cures) != 0 && strings.HasPrefix(s.Reason, "Fault of "), "%+v: it does not say what it is for", s)
			}
			expect.That(t, len(p.Settings) == 0 || strings.HasPrefix(p.Settings[0].Until, test.until) && (test.until == "") == (p.Settings[0].Until == ""), "%+v, want until %q", p.Settings, test.until)
		})
	}
}
