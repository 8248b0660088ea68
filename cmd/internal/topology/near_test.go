package topology

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// placed is a machine of n GPUs on two NUMA nodes, each below its own switch, with pairs.
func placed(n int, hosts []facts.HostPath, pairs ...facts.Pair) *facts.Facts {
	f := linked(n, pairs...)
	f.PCI = &facts.PCIFacts{}
	f.NUMA = &facts.NUMAFacts{Nodes: []facts.NUMANode{{ID: 0, CPUs: "0-7"}, {ID: 1, CPUs: "8-15"}}}
	f.Links.Hosts = hosts
	for i := range n {
		node := i * 2 / n
		d := card(gpu(i), at(2.5, 16, 32, 16))
		d.NUMANode = &node
		f.PCI.Devices = append(f.PCI.Devices, d)
	}
	return f
}

func toNIC(i int, nic, path string, gbps float64) facts.Pair {
	return facts.Pair{A: gpu(i), B: nic, Kind: "gpu-nic", Path: path, Narrowest: &facts.NarrowestLink{BestGBps: gbps}}
}

func between(a, b int, path string, nvlinks int) facts.Pair {
	return facts.Pair{A: gpu(a), B: gpu(b), Kind: "gpu-gpu", Path: path, NVLinks: &nvlinks}
}

func host(i int, at string, gts float64, width int, gbps float64) facts.HostPath {
	return facts.HostPath{GPU: gpu(i), At: at, SpeedGTs: gts, Width: width, GBps: gbps}
}

func set(f *facts.Facts, name, value string) *facts.Facts {
	f.Env = &facts.EnvFacts{Variables: []facts.Variable{{Name: name, Value: value, Effective: true}}}
	return f
}

func ports(f *facts.Facts, ports ...facts.RDMAPort) *facts.Facts {
	f.NICs = &facts.NICFacts{RDMA: ports}
	return f
}

func TestNear(t *testing.T) {
	f := placed(2, nil, between(0, 1, "SYS", 0), toNIC(0, "0000:90:00.0", "PXB", 31.5), toNIC(0, "0000:91:00.0", "NODE", 63), toNIC(1, "0000:90:00.0", "SYS", 0),
		facts.Pair{A: gpu(0), B: "0000:a0:00.0", Kind: "gpu-nvme", Path: "PIX"})
	ports(f, facts.RDMAPort{Device: "mlx5_0", Address: "0000:90:00.0"}, facts.RDMAPort{Device: "mlx5_1", Address: "0000:91:00.0"})
	m := New(f, nil, asIs)
	want := []Near{
		{GPU: "GPU 0", NICs: "mlx5_0 (PXB, 32 GB/s)", Drives: "0000:a0:00.0 (PIX)", CPUs: "0-7"},
		{GPU: "GPU 1", NICs: "mlx5_0 (SYS)", CPUs: "8-15"},
	}
	expect.NoDiff(t, want, m.Near, "it")
	expect.Equal(t, "NIC mlx5_0 (PXB, 32 GB/s), NVMe 0000:a0:00.0 (PIX), CPUs 0-7", m.Near[0].String(), "it")
	flat := true
	f.Links.VirtualTopology = &flat
	if m := New(f, nil, asIs); len(m.Near) > 0 || len(m.Notes) != 1 || !strings.Contains(m.Notes[0], "without a topology file") {
		t.Errorf("of hidden paths: %v, %v", m.Near, m.Notes)
	}
	if m := New(set(f, "NCCL_TOPO_FILE", "/x.xml"), nil, asIs); len(m.Notes) != 1 || m.Notes[0] != "NCCL takes the paths from NCCL_TOPO_FILE=/x.xml." {
		t.Errorf("of hidden paths with a file: %v", m.Notes)
	}
}

// TestNotes checks what is explained of how machines are built, and that nothing is where there is nothing to
// explain.
func TestNotes(t *testing.T) {
	pix := []facts.Pair{toNIC(0, "a", "PIX", 63), toNIC(1, "b", "PIX", 63)}
	for _, tt := range []struct {
		name  string
		facts *facts.Facts
		want  []string
	}{
		{"each GPU with its NIC", placed(2, []facts.HostPath{host(0, "0000:45:00.0", 32, 16, 63.015), host(1, gpu(1), 32, 16, 63.015)}, pix...), nil},
		{
			"narrow uplinks", placed(3, []facts.HostPath{host(0, "0000:45:00.0", 16, 8, 15.754), host(1, "0000:56:00.0", 16, 8, 15.754), host(2, "0000:67:00.0", 16, 4, 7.877)}),
			[]string{
				"Host copies of GPUs 0 and 1: at most 15.75 GB/s, because the switch above each GPU has a PCIe 4.0 x8 uplink (0000:45:00.0, 0000:56:00.0). This is how the machine is built.",
				"Host copies of GPU 2: at most 7.88 GB/s, because the switch above each GPU has a PCIe 4.0 x4 uplink (0000:67:00.0). This is how the machine is built.",
			},
		},
		{
			"an uplink that GPUs share", placed(2, []facts.HostPath{host(0, "0000:45:00.0", 8, 16, 15.754), host(1, "0000:45:00.0", 8, 16, 15.754)}),
			[]string{"Host copies of GPUs 0 and 1: at most 15.75 GB/s, because the switch above each GPU has a PCIe 3.0 x16 uplink (0000:45:00.0), which GPUs share. This is how the machine is built."},
		},
		{
			"PXN", placed(2, nil, between(0, 1, "SYS", 18), toNIC(0, "a", "PIX", 63), toNIC(1, "a", "SYS", 63)),
			[]string{"GPU 1: the nearest NIC is SYS. NCCL uses GPUDirect RDMA up to PXB, and sends through a GPU that has a nearer NIC and is joined by NVLink (PXN)."},
		},
		{
			"no PXN", set(placed(2, nil, between(0, 1, "NODE", 18), toNIC(0, "a", "PIX", 63), toNIC(1, "a", "NODE", 63)), "NCCL_PXN_DISABLE", "1"),
			[]string{"GPU 1: the nearest NIC is NODE. NCCL uses GPUDirect RDMA up to PXB, and sends through host memory, unless NCCL_NET_GDR_LEVEL allows more."},
		},
		{"a level is set", set(placed(2, nil, between(0, 1, "NODE", 0), toNIC(0, "a", "NODE", 63)), "NCCL_NET_GDR_LEVEL", "SYS"), nil},
		{
			"a NIC is left out", ports(set(placed(2, nil, toNIC(0, "a", "PIX", 0), toNIC(1, "b", "PIX", 0)), "NCCL_IB_HCA", "=mlx5_1"),
				facts.RDMAPort{Device: "mlx5_0", Address: "a"}, facts.RDMAPort{Device: "mlx5_1", Address: "b"}),
			[]string{"NCCL_IB_HCA==mlx5_1 leaves out mlx5_0, the nearest NIC of GPU 0."},
		},
		{
			"one rail for each GPU", set(placed(2, nil, toNIC(0, "a", "PIX", 63), toNIC(1, "b", "PIX", 63)), "NCCL_CROSS_NIC", "0"),
			[]string{"NCCL_CROSS_NIC=0: each ring and tree uses the same NIC on all machines, so that traffic stays on one rail."},
		},
		{
			"rails are crossed", set(placed(2, nil, toNIC(0, "a", "PIX", 63), toNIC(1, "b", "PIX", 63)), "NCCL_CROSS_NIC", "1"),
			[]string{"NCCL_CROSS_NIC=1: a ring or tree may enter a machine by one NIC and leave it by another, so the network must connect the rails."},
		},
		{"the default for rails", set(placed(2, nil, toNIC(0, "a", "PIX", 63), toNIC(1, "b", "PIX", 63)), "NCCL_CROSS_NIC", "2"), nil},
		{"one NIC has no rails", set(placed(1, nil, toNIC(0, "a", "PIX", 63)), "NCCL_CROSS_NIC", "1"), nil},
		{
			"a NIC for two", placed(3, nil, toNIC(0, "a", "PXB", 63), toNIC(1, "a", "PXB", 63), toNIC(2, "b", "PXB", 63)),
			[]string{"GPUs 0 and 1 share the rate of a, the nearest NIC of each."},
		},
		{
			"a slot below the port", ports(placed(1, nil, toNIC(0, "a", "PIX", 31.508)), facts.RDMAPort{Device: "mlx5_0", Address: "a", RateGbps: 400, LinkLayer: "InfiniBand"}),
			[]string{"mlx5_0: the port carries 400 Gb/s (NDR), and the PCIe links to GPU 0 carry 31.51 GB/s."},
		},
		{"sockets", placed(4, nil, between(0, 2, "SYS", 0), between(1, 3, "SYS", 0)), []string{"Traffic between GPUs 0 and 1 and GPUs 2 and 3 crosses the sockets (SYS)."}},
		{"sockets that NVLink spans", placed(4, nil, between(0, 2, "SYS", 18), between(1, 3, "SYS", 18)), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := New(tt.facts, nil, asIs)
			if m == nil {
				m = New(withPort(tt.facts), nil, asIs)
			}
			expect.NoDiff(t, tt.want, m.Notes, "it")
		})
	}
}

// withPort puts the first GPU below a root port, so that there is something to draw.
func withPort(f *facts.Facts) *facts.Facts {
	f.PCI.Devices[0].Ancestors = []string{"0000:00:01.0"}
	f.PCI.Devices = append(f.PCI.Devices, port("0000:00:01.0", "root-port"))
	return f
}
