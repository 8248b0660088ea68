package affinity_test

import (
	"fmt"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func nic(gpu, to, path string) facts.Pair {
	return facts.Pair{A: gpu, B: to, Kind: "gpu-nic", Path: path, Narrowest: &facts.NarrowestLink{BestGBps: 63}}
}

// roce is a machine with two GPUs, a bond of two links below the first, and a NIC without RDMA.
func roce() *facts.Facts {
	return &facts.Facts{
		GPUs: &facts.GPUFacts{Devices: []facts.GPU{{Address: "0000:18:00.0", Index: new(0)}, {Address: "0001:19:00.0", Index: new(1), NUMANode: new(1)}}},
		NUMA: &facts.NUMAFacts{Nodes: []facts.NUMANode{{ID: 0, CPUs: "0-47"}, {ID: 1, CPUs: "48-95"}}},
		PCI:  &facts.PCIFacts{Devices: []facts.PCIDevice{{Address: "0000:18:00.0", NUMANode: new(0)}, {Address: "0000:2b:00.0", Device: "0xefa1"}}},
		NICs: &facts.NICFacts{
			RDMA: []facts.RDMAPort{
				{Device: "mlx5_bond_0", Address: "0000:2c:00.0", RateGbps: 200, Netdev: "bond0"},
				{Device: "mlx5_1", Address: "0001:08:00.0", RateGbps: 400, Netdev: "eth1"},
				{Device: "rdmap43s0", Address: "0000:2b:00.0"},
			},
			Bonds:      []facts.Bond{{Name: "bond0", Mode: "802.3ad", HashPolicy: "layer3+4", Members: []string{"reth0", "reth1"}}},
			Interfaces: []facts.Interface{{Name: "reth0", SpeedGbps: 200}, {Name: "reth1", SpeedGbps: 100}},
		},
		Links: &facts.LinkFacts{
			Pairs: []facts.Pair{
				{A: "0000:18:00.0", B: "0001:19:00.0", Kind: "gpu-gpu", Path: "SYS"},
				nic("0000:18:00.0", "0000:2c:00.0", "PXB"), nic("0000:18:00.0", "0001:08:00.0", "SYS"), nic("0000:18:00.0", "0000:01:00.0", "PIX"),
				nic("0001:19:00.0", "0000:2c:00.0", "SYS"), nic("0001:19:00.0", "0001:08:00.0", ""),
				{A: "0000:18:00.0", B: "0000:30:00.0", Kind: "gpu-nvme", Path: "NODE"},
				{A: "0000:18:00.0", B: "0000:31:00.0", Kind: "gpu-nvme", Path: "NODE"},
			},
			Hosts: []facts.HostPath{{GPU: "0001:19:00.0", At: "0001:17:00.0", SpeedGTs: 16, Width: 8, GBps: 15.754}},
		},
	}
}

func TestOf(t *testing.T) {
	f := roce()
	expect.NoDiff(t, []affinity.GPU{
		{
			Address: "0000:18:00.0", CPUs: "0-47",
			NICs:   []affinity.Near{{Address: "0000:2c:00.0", Device: "mlx5_bond_0", Path: "PXB", GBps: 63}},
			Drives: []affinity.Near{{Address: "0000:30:00.0", Path: "NODE"}, {Address: "0000:31:00.0", Path: "NODE"}},
		},
		{Address: "0001:19:00.0", CPUs: "48-95", Host: &f.Links.Hosts[0], NICs: []affinity.Near{{Address: "0000:2c:00.0", Device: "mlx5_bond_0", Path: "SYS", GBps: 63}}},
	}, affinity.Of(f), "it")
	expect.NoDiff(t, nil, affinity.Of(&facts.Facts{}), "of nothing")
	// Without RDMA devices every NIC counts.
	f.NICs = nil
	near := affinity.Of(f)[0].NICs
	expect.That(t, len(near) == 1 && near[0].Name() == "0000:01:00.0", "nearest without RDMA: %v", near)
}

func TestPathTo(t *testing.T) {
	f := roce()
	f.Links.Pairs = append(f.Links.Pairs, nic("GPU1", "mlx5_7", "NODE"))
	for _, tt := range []struct{ gpu, device, want string }{
		{"GPU0", "mlx5_bond_0", "PXB"},
		{"0000:18:00.0", "mlx5_1", "SYS"},
		{"0000:19:00.0", "mlx5_bond_0", "SYS"}, // perftest prints no domain.
		{"GPU1", "mlx5_7", "NODE"},
		{"0001:19:00.0", "mlx5_7", "NODE"},
		{"GPU0", "mlx5_9", "none"},
		{"GPU7", "mlx5_1", "none"},
		{"", "mlx5_1", "none"},
	} {
		got := "none"
		if p := affinity.PathTo(f, tt.gpu, tt.device); p != nil {
			got = p.Path
		}
		expect.Equal(t, tt.want, got, "%s to %s", tt.gpu, tt.device)
	}
	f.GPUs.Devices = append(f.GPUs.Devices, facts.GPU{Address: "0002:19:00.0"})
	expect.NoDiff(t, nil, affinity.PathTo(f, "0000:19:00.0", "mlx5_bond_0"), "an address of two GPUs")
}

func TestPortRate(t *testing.T) {
	f := roce()
	for _, tt := range []struct {
		device string
		pairs  int
		want   string
	}{
		{"mlx5_bond_0", 0, "25 the port of mlx5_bond_0"},
		{"mlx5_bond_0", 2, "25 the port of mlx5_bond_0"},
		{"mlx5_bond_0", 1, "12.5 one of the 2 links of bond0 (one queue pair uses one)"},
		{"mlx5_1", 1, "50 the port of mlx5_1"},
		{"rdmap43s0", 1, "12.5 the port of rdmap43s0"},
		{"mlx5_9", 1, "0 "},
	} {
		rate, basis := affinity.PortRate(f, tt.device, tt.pairs)
		expect.Equal(t, tt.want, fmt.Sprint(rate, " ", basis), "%s with %d queue pairs", tt.device, tt.pairs)
	}
	rate, _ := affinity.PortRate(&facts.Facts{}, "mlx5_0", 1)
	expect.That(t, rate == 0, "of nothing: %v", rate)
}

func TestNetworkRate(t *testing.T) {
	f := roce()
	rate, basis := affinity.NetworkRate(f)
	expect.That(t, rate == 25 && basis == "the NIC near each GPU", "%v of %s", rate, basis)
	f.NICs.RDMA[0].RateGbps = 0
	f.NICs.Bonds = nil
	rate, _ = affinity.NetworkRate(f)
	expect.That(t, rate == 0, "of a port without a rate: %v", rate)
}

func TestUplink(t *testing.T) {
	f := roce()
	f.PCI.Devices = append(f.PCI.Devices, facts.PCIDevice{Address: "0001:17:00.0", PortType: "upstream-port"})
	basis := affinity.UplinkBasis(f, &f.Links.Hosts[0])
	expect.Equal(t, "the PCIe 4.0 x8 uplink of the switch at 0001:17:00.0", basis, "basis")
	expect.Equal(t, "the PCIe 3.0 x4 link of the bridge at 0000:99:00.0", affinity.UplinkBasis(f, &facts.HostPath{At: "0000:99:00.0", SpeedGTs: 8, Width: 4}), "basis")
	for _, tt := range []struct {
		bases []string
		want  string
	}{
		{[]string{basis}, "PCIe 4.0 x8 uplink"},
		{[]string{basis, "the PCIe 4.0 x8 uplink of the switch at 0000:45:00.0"}, "PCIe 4.0 x8 uplink"},
		{[]string{basis, "the GPU's PCIe link"}, ""},
		{[]string{basis, "the PCIe 3.0 x8 uplink of the switch at 0000:45:00.0"}, ""},
		{nil, ""},
		{[]string{""}, ""},
	} {
		expect.Equal(t, tt.want, affinity.Uplink(tt.bases), "%q", tt.bases)
	}
}
