package checks

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// TestHostPaths checks which link bounds the copies between a GPU and its processor.
func TestHostPaths(t *testing.T) {
	x16 := facts.HostPath{GPU: "0000:18:00.0", At: "0000:16:00.0", SpeedGTs: 32, Width: 16, GBps: 63.015}
	for _, tt := range []struct {
		name  string
		links map[string]pcieLink // By address.
		want  *facts.HostPath
	}{
		{"links that are alike", nil, &x16},
		{"an idle GPU", map[string]pcieLink{x16.GPU: {1, 16, 5, 16}}, &x16},
		{"a narrow uplink", map[string]pcieLink{x16.At: gen(4, 8)}, &facts.HostPath{GPU: x16.GPU, At: x16.At, SpeedGTs: 16, Width: 8, GBps: 15.754}},
		{"an older GPU", map[string]pcieLink{x16.GPU: gen(3, 16)}, &facts.HostPath{GPU: x16.GPU, At: x16.GPU, SpeedGTs: 8, Width: 16, GBps: 15.754}},
		{"an uplink that a hypervisor makes up", map[string]pcieLink{x16.At: gen(1, 1)}, nil},
		{"a link without a speed", map[string]pcieLink{x16.At: {}, "0000:15:01.0": {}}, nil},
	} {
		m := checktest.Rebuilt(t, eightGPU)
		for address, link := range tt.links {
			link.set(t, m, address)
			if link == gen(1, 1) {
				m.AddFile(deviceFile(address, "vendor"), []byte("0x1b36\n"))
			}
		}
		expect.NoDiff(t, tt.want, gatherTopology(t, m, nil).Links.Host(x16.GPU), "%s", tt.name)
	}
	expect.That(t, (*facts.LinkFacts)(nil).Host("x") == nil, "a way without links")
}

// TestExpectUplink checks that host copies are compared with a narrow uplink, and that one below a lane of
// PCIe 3.0 is slow whatever the link.
func TestExpectUplink(t *testing.T) {
	const gpu = "0000:53:00.0"
	f := &facts.Facts{
		PCI:   &facts.PCIFacts{Devices: []facts.PCIDevice{{Address: gpu, NUMANode: new(0)}, {Address: "0000:45:00.0", PortType: "upstream-port"}}},
		GPUs:  &facts.GPUFacts{Devices: []facts.GPU{{Address: gpu, PCIe: &facts.GPULink{MaxGeneration: 5, Width: 16}}}},
		Links: &facts.LinkFacts{Hosts: []facts.HostPath{{GPU: gpu, At: "0000:45:00.0", SpeedGTs: 16, Width: 8, GBps: 15.754}}},
	}
	unknown := &facts.Facts{GPUs: &facts.GPUFacts{Devices: []facts.GPU{{Address: gpu}}}}
	for _, c := range []struct {
		facts *facts.Facts
		gbps  float64
		want  probe.Outcome
		basis string
	}{
		{f, 14.2, probe.OK, "the PCIe 4.0 x8 uplink of the switch at 0000:45:00.0"},
		{f, 3.2, probe.Slow, "the PCIe 4.0 x8 uplink of the switch at 0000:45:00.0"},
		{unknown, 0.76, probe.Slow, "one lane of PCIe 3.0"},
		{unknown, 2.6, probe.OK, ""},
	} {
		x := probe.Transfer{Test: probe.TestHostToDevice, Source: "node0", Destination: gpu, Outcome: probe.OK, GBps: &c.gbps}
		judgeSpeed(c.facts, 2, &x)
		expect.That(t, x.Outcome == c.want && x.Basis == c.basis, "%.2f GB/s: %s by %q, want %s by %q", c.gbps, x.Outcome, x.Basis, c.want, c.basis)
	}
}

// TestCompareBenchmarks checks what a table is compared with on a machine that shows the ways between its
// GPUs, their processors and NICs.
func TestCompareBenchmarks(t *testing.T) {
	machineFacts := func() *facts.Facts {
		f := gatherCloud(t)
		for _, d := range f.PCI.Devices {
			if d.Kind == "gpu" {
				f.GPUs.Devices = append(f.GPUs.Devices, facts.GPU{Address: d.Address, Vendor: "nvidia", PCIe: &facts.GPULink{MaxGeneration: 5, Width: 16}})
			}
			if d.Kind == "nic" {
				f.NICs.RDMA = append(f.NICs.RDMA, facts.RDMAPort{Device: "rdma" + d.Address, Address: d.Address, RateGbps: 100})
			}
		}
		return f
	}
	value := func(gbps float64) []facts.BenchmarkPoint {
		return []facts.BenchmarkPoint{{A: "CPU", B: "GPU2", Bytes: 1 << 30, GBps: &gbps}}
	}
	for _, tt := range []struct {
		name      string
		benchmark facts.Benchmark
		way, want string
	}{
		{"host copies", facts.Benchmark{What: "host-to-gpu", Points: value(14.2)}, "", "15.754 x 0.5 by the PCIe 4.0 x8 uplink of the switch above a GPU"},
		{"over NVLink", facts.Benchmark{What: "collective", GPUNames: []string{h100Name, h100Name}, Points: value(364.9)}, "p2p-cumem", "450 x 0.35 by the NVLinks of " + h100Name},
		{"over EFA", facts.Benchmark{What: "collective", GPUNames: []string{h100Name, h100Name}, Points: value(38.2)}, "net", "50 x 0.5 by the 4 NICs near each GPU"},
		{"through the host", facts.Benchmark{What: "collective", GPUNames: []string{h100Name, h100Name}, Points: value(3.2)}, "shm", "450 x 0.35 by the NVLinks of " + h100Name},
	} {
		f := machineFacts()
		f.Benchmarks = []facts.Benchmark{tt.benchmark}
		f.Logs = &facts.LogFacts{Transports: []facts.Transport{{Kind: tt.way}}}
		CompareBenchmarks(f)
		p := f.Benchmarks[0].Points[0]
		expect.Must(t, p.ExpectedGBps != nil, "%s: nothing to compare with", tt.name)
		expect.Equal(t, tt.want, fmt.Sprint(*p.ExpectedGBps, " x ", *p.Threshold, " by ", p.Basis), "%s", tt.name)
		expect.That(t, tt.benchmark.Points[0].ExpectedGBps == nil, "%s: the table of the texts was changed", tt.name)
	}
}

// h100Name is the model of its GPUs.
const h100Name = "NVIDIA H100 80GB HBM3"

// gatherCloud is the topology of the machine with EFA.
func gatherCloud(t *testing.T) *facts.Facts {
	t.Helper()
	f := gatherTopology(t, checktest.Rebuilt(t, "model-p5"), &facts.GPUFacts{})
	f.NICs = &facts.NICFacts{}
	return f
}

// TestNearest checks, of each recorded machine, that no NIC or drive is nearer to a GPU than those that are
// called the nearest, that the path of a pair does not depend on its direction, and that without one device the
// paths of the others stay.
func TestNearest(t *testing.T) {
	for _, name := range fixtures.Examples() {
		f := gatherTopology(t, checktest.Rebuilt(t, name), nil)
		topology := newTopology(f)
		for _, g := range affinity.Of(f) {
			for _, p := range f.Links.Pairs {
				near := map[string][]affinity.Near{pairNIC: g.NICs, pairNVMe: g.Drives}[p.Kind]
				if p.A != g.Address || p.Path == "" || p.Kind == pairGPUs {
					continue
				}
				listed := slices.ContainsFunc(near, func(n affinity.Near) bool { return n.Address == p.B })
				rank := data.PathRank(p.Path) - data.PathRank(near[0].Path)
				expect.That(t, rank >= 0 && (rank == 0) == listed, "%s: %s has the nearest %v, and %s at %s", name, g.Address, near, p.B, p.Path)
			}
		}
		for _, p := range f.Links.Pairs {
			back := facts.Pair{A: p.B, B: p.A}
			topology.joinPCIe(&back)
			expect.That(t, back.Path == p.Path && back.CommonBridge == p.CommonBridge && len(back.Bridges) == len(p.Bridges), "%s: %s to %s is %s, and back %s", name, p.A, p.B, p.Path, back.Path)
		}
		without := *f
		without.PCI = &facts.PCIFacts{Devices: slices.DeleteFunc(slices.Clone(f.PCI.Devices), func(d facts.PCIDevice) bool {
			return d.Address == f.Links.Pairs[0].A
		})}
		expect.NoError(t, linksCheck.Gather(t.Context(), checktest.On(&host.Memory{}, &without)))
		for _, p := range without.Links.Pairs {
			expect.NoDiff(t, f.Links.Between(p.A, p.B), &p, "%s without a GPU", name)
		}
	}
}
