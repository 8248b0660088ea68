package network_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	live "github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// want compares the ports that a text gives with those that are expected, leaving out where they stand.
func want(t *testing.T, text string, want []facts.RDMAPort) {
	t.Helper()
	got := texttest.Sections("x.txt", text).NICs.RDMA
	for i := range got {
		expect.That(t, got[i].Source == "x.txt" && got[i].Line >= 1, "port %s has no place: %+v", got[i].Device, got[i])
		got[i].Source, got[i].Line = "", 0
	}
	expect.NoDiff(t, want, got, "%q", text)
}

// bounded fails when a text gives more than the facts may hold.
func bounded(t *testing.T, text string) {
	t.Helper()
	f := texttest.Sections("bond0", text)
	gds := cmp.Or(f.Storage.GDS, &facts.GDS{})
	expect.That(t, len(gds.Drivers) <= 500 && len(gds.Properties) <= 500, "too much: %d drivers, %d properties", len(gds.Drivers), len(gds.Properties))
	expect.That(t, len(f.NICs.Interfaces) <= network.MaxInterfaces && len(f.NICs.Bonds) <= network.MaxInterfaces && len(f.NICs.Providers) <= network.MaxInterfaces, "%d interfaces, %d bonds, %d providers", len(f.NICs.Interfaces), len(f.NICs.Bonds), len(f.NICs.Providers))
	for _, n := range f.NICs.Interfaces {
		expect.That(t, len(n.Addresses) <= network.MaxAddresses && live.IsName(n.Name), "interface %q with %d addresses", n.Name, len(n.Addresses))
	}
	expect.That(t, len(f.NICs.RDMA) <= parse.MaxEntries && len(f.NICs.QoS) <= parse.MaxEntries && len(f.NICs.Modules) <= len(live.Modules), "too much: %d ports, %d QoS, %d modules", len(f.NICs.RDMA), len(f.NICs.QoS), len(f.NICs.Modules))
	for _, m := range f.NICs.Modules {
		expect.That(t, slices.Contains(live.Modules, m), "the module %q is not one of those that bear on RDMA", m)
	}
	for _, p := range f.NICs.RDMA {
		expect.That(t, len(p.GIDs) <= network.MaxGIDs && p.Port >= 0 && p.RateGbps >= 0, "port %+v", p)
	}
}

// FuzzTexts checks that what is read of any text is bounded.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{
		mlnxQoSSample,
		"PFC configuration:\npriority 0 1\nenabled 1\nPFC configuration:\nenabled 1 1\n", ibstatusSample,
		"Infiniband device 'x' port 9999999999999 status:\n\n\nstate: 1: DOWN", showGIDsSample,
		"mlx5_0 1 99999999999999999999 0000:0000:0000:0000:0000:ffff:0a01:0203 v2\n", linkSample,
		"link a/999999999999 state\nlink b/1 out_of_sequence 99999999999999999999\n", ibvDevinfoSample,
		"hca_id: x\nport: 99999999999\nactive_width: X\nactive_speed: 1e300\nGID[-1]: y\n", ibstatSample,
		strings.Repeat("CA 'a'\nPort 1:\nState: Down\n", 3), "mlx5_0 port 1 ==> ib0 (Down)\n",
		"0000:3b:00.0 mlx5_4 (MT4129 - M) x fw 1.2 port 1 (DOWN  ) ==> e (Up)\n",
		"Module                  Size  Used by\nnvidia_peermem         16384  0\n",
		"$ lsmod | grep 'a\\|b'\nib_core 100 -1 [permanent],x\n",
		gdscheckSample, "DRIVER CONFIGURATION:\n\n\n: Supported\nIOMMU: \n",
		"provider: efa\n    fabric: efa\n",
		"n1:41:41 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.14.0\n",
		bondingSample,
		"1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN\n    link/loopback 0 brd 0\n    inet 127.0.0.1/8 scope host lo\n",
		"2: eth0@if5: <BROADCAST,UP> mtu 1500 master br0 state DOWN\n    inet 10.8.0.2 peer 10.8.0.1/32 scope global tun0\n",
		"eth0   UP   10.0.0.1/24 fe80::1/64\nlo UNKNOWN 127.0.0.1/8\n",
		"$ ip -o addr\n2: eth0    inet 10.1.0.6/16 scope global eth0\\ valid\ndefault via 10.0.0.1 dev eth0 src 10.0.0.2\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(bounded)
}

func TestPortsOfSeveralTextsAreOne(t *testing.T) {
	want(t, `$ ibstat mlx5_0
CA 'mlx5_0'
	Port 1:
		State: Active
		Link layer: Ethernet
$ show_gids
DEV	PORT	INDEX	GID					IPv4  		VER	DEV
mlx5_0	1	3	0000:0000:0000:0000:0000:ffff:0a01:0203	10.1.2.3	v2	ens3f0
`, []facts.RDMAPort{{
		Device: "mlx5_0", Port: 1, State: "active", LinkLayer: "Ethernet",
		GIDs: []facts.GID{{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "RoCE v2", Netdev: "ens3f0"}}, Netdev: "ens3f0",
	}})
}

// Two machines whose prompts give no name both have a mlx5_0.
func TestPortsThatContradictStay(t *testing.T) {
	want(t, "mlx5_0 port 1 ==> ens1 (Up)\nmlx5_0 port 1 ==> ens1 (Up)\nmlx5_0 port 1 ==> ens1 (Down)\n", []facts.RDMAPort{
		{Device: "mlx5_0", Port: 1, Netdev: "ens1", NetdevUp: new(true), LinkLayer: "Ethernet"},
		{Device: "mlx5_0", Port: 1, Netdev: "ens1", NetdevUp: new(false), LinkLayer: "Ethernet"},
	})
}

func TestIBDev2Netdev(t *testing.T) {
	want(t, `mlx5_0 port 1 ==> ib0 (Down)
0000:3B:00.0 mlx5_4 (MT4129 - MCX75310AAS-NEAT) ConnectX-7 HHHL adapter card fw 28.39.1002 port 1 (ACTIVE) ==> enp59s0 (Up)
a ==> b (c)
`, []facts.RDMAPort{
		{Device: "mlx5_0", Port: 1, Netdev: "ib0", NetdevUp: new(false), LinkLayer: "InfiniBand"},
		{Device: "mlx5_4", Port: 1, Netdev: "enp59s0", NetdevUp: new(true), LinkLayer: "Ethernet", State: "active", Address: "0000:3b:00.0", Model: "MT4129", Firmware: "28.39.1002"},
	})
}

const linkSample = `link mlx5_7/1 subnet_prefix fe80:0000:0000:0000 lid 3403 sm_lid 1 lmc 0 state DOWN physical_state POLLING
1/1: mlx5_1/1: state ACTIVE physical_state LINK_UP netdev ens3f1
link rocep1s0/1 state ACTIVE physical_state LINK_UP
link mlx5_2/1 rx_write_requests 7 out_of_sequence 12 local_ack_timeout_err 3
`

func TestRDMALink(t *testing.T) {
	want(t, linkSample, []facts.RDMAPort{
		{Device: "mlx5_7", Port: 1, LinkLayer: "InfiniBand", State: "down", PhysicalState: "Polling", SMLID: new(1)},
		{Device: "mlx5_1", Port: 1, LinkLayer: "Ethernet", State: "active", PhysicalState: "LinkUp", Netdev: "ens3f1"},
		{Device: "rocep1s0", Port: 1, State: "active", PhysicalState: "LinkUp"},
		{Device: "mlx5_2", Port: 1, Counters: map[string]int64{"out_of_sequence": 12, "local_ack_timeout_err": 3}},
	})
}

func TestLsmod(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // joined by blanks; "-" is not shown
		partial    bool
	}{
		{"whole", "Module                  Size  Used by\nxfs   1 0\nnvidia_peermem         16384  0\nib_core               438272  9 rdma_cm,nvidia_peermem,ib_uverbs\next4                  1 0\n", "nvidia_peermem ib_core rdma_cm ib_uverbs", false},
		{"filtered for it", "$ lsmod | grep peermem\nnvidia_peermem         16384  0\nib_core   557056  9 rdma_cm,nvidia_peermem\n", "nvidia_peermem ib_core rdma_cm", false},
		{"filtered for it, nothing", "$ lsmod | grep nv_peer_mem\n$ uname -r\n", "", false},
		{"filtered for all of NVIDIA's", "$ lsmod | grep -i NVIDIA\nnvidia_uvm           4943872  0\nnvidia              54566912  2 nvidia_uvm\n", "nvidia_uvm nvidia", false},
		{"filtered for others", "$ lsmod | grep mlx\nmlx5_ib               385024  0\nmlx5_core            1216512  1 mlx5_ib\n", "mlx5_ib mlx5_core", true},
		{"a part", "mlx5_ib               385024  0\nmlx5_core            1216512  1 mlx5_ib\n", "mlx5_ib mlx5_core", true},
		{"not shown", "the module ib_core is loaded\n", "-", false},
		{"advice, not a list", "use lsmod | grep nvidia_peermem to see it\n", "-", false},
	} {
		nics := texttest.Sections("x", c.text).NICs
		isShown := nics.Modules != nil
		expect.That(t, isShown == (c.want != "-") && (!isShown || strings.Join(nics.Modules, " ") == c.want) && nics.ModulesPartial == c.partial, "%s: got %q partial %v", c.name, nics.Modules, nics.ModulesPartial)
	}
}

const ibstatusSample = `Infiniband device 'mlx5_0' port 1 status:
	default gid:	 fe80:0000:0000:0000:0000:0000:0000:0001
	base lid:	 0x1f
	sm lid:		 0x1
	state:		 4: ACTIVE
	phys state:	 5: LinkUp
	rate:		 400 Gb/sec (4X NDR)
	link_layer:	 InfiniBand

Infiniband device 'mlx5_bond_0' port 1 status:
	state:		 1: DOWN
	phys state:	 3: Disabled
	rate:		 40 Gb/sec (4X QDR)
	link_layer:	 Ethernet

bye
`

func TestIBStatus(t *testing.T) {
	want(t, ibstatusSample, []facts.RDMAPort{
		{
			Device: "mlx5_0", Port: 1, LinkLayer: "InfiniBand", State: "active", PhysicalState: "LinkUp", RateGbps: 400, SMLID: new(1),
			GIDs: []facts.GID{{Index: 0, GID: "fe80:0000:0000:0000:0000:0000:0000:0001", Type: "IB"}},
		},
		{Device: "mlx5_bond_0", Port: 1, LinkLayer: "Ethernet", State: "down", PhysicalState: "Disabled", RateGbps: 40},
	})
}

const mlnxQoSSample = `$ mlnx_qos -i ens1f0
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
	prio:0 dscp:07,06,05,04,03,02,01,00,
	prio:1 dscp:15,14,13,12,11,10,09,08,
default priority:
Receive buffer size (bytes): 20016,156096,0,0,0,0,0,0,max_buffer_size=262016
Cable len: 7
PFC configuration:
	priority    0   1   2   3   4   5   6   7
	enabled     0   0   0   1   0   0   0   0   
	buffer      0   0   0   1   0   0   0   0   
tc: 1 ratelimit: unlimited, tsa: vendor
	 priority:  0
tc: 0 ratelimit: unlimited, tsa: vendor
	 priority:  1
`

func TestMlnxQoS(t *testing.T) {
	f := texttest.Parse("x", mlnxQoSSample+"$ mlnx_qos -i ens2f0\nDCBX mode: OS controlled\nPriority trust state: pcp\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   0   0   0   0   0\n")
	expect.Must(t, f.NICs != nil && len(f.NICs.QoS) == 2, "got %+v", f.NICs)
	a, b := f.NICs.QoS[0], f.NICs.QoS[1]
	expect.That(t, a.Interface == "ens1f0" && slices.Equal(a.PFC, []int{3}) && a.Line == 2, "got %+v", a)
	expect.That(t, b.Interface == "ens2f0" && b.PFC != nil && len(b.PFC) == 0, "got %+v", b)
}

const showGIDsSample = `DEV	PORT	INDEX	GID					IPv4  		VER	DEV
---	----	-----	---					------------  	---	---
mlx5_0	1	0	fe80:0000:0000:0000:0202:03ff:fe04:0506			v1	ens1f0
mlx5_0	1	3	0000:0000:0000:0000:0000:ffff:0a01:0203	10.1.2.3  	v2	ens1f0
mlx5_1	1	0	fe80:0000:0000:0000:0202:03ff:fe04:0507			v1	ib0
n_gids_found=3
`

func TestShowGIDs(t *testing.T) {
	want(t, showGIDsSample, []facts.RDMAPort{
		{
			Device: "mlx5_0", Port: 1, LinkLayer: "Ethernet", Netdev: "ens1f0",
			GIDs: []facts.GID{
				{Index: 0, GID: "fe80:0000:0000:0000:0202:03ff:fe04:0506", Type: "RoCE v1", Netdev: "ens1f0"},
				{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "RoCE v2", Netdev: "ens1f0"},
			},
		},
		{Device: "mlx5_1", Port: 1, LinkLayer: "InfiniBand", Netdev: "ib0", GIDs: []facts.GID{{Index: 0, GID: "fe80:0000:0000:0000:0202:03ff:fe04:0507", Type: "IB", Netdev: "ib0"}}},
	})
}

// In a container the interface is hidden and its column empty.
func TestShowGIDsFragment(t *testing.T) {
	want(t, "mlx5_0  1       5       0000:0000:0000:0000:0000:ffff:0a01:0203 10.1.2.3        v2\n", []facts.RDMAPort{{
		Device: "mlx5_0", Port: 1,
		GIDs: []facts.GID{{Index: 5, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "RoCE v2"}},
	}})
}

const ibstatSample = `CA 'mlx5_0'
	CA type: MT4123
	Number of ports: 1
	Firmware version: 20.31.1014
	Hardware version: 0
	Node GUID: 0xaaaabbbb00000001
	System image GUID: 0xaaaabbbb00000001
	Port 1:
		State: Down
		Physical state: Polling
		Rate: 10
		Base lid: 65535
		LMC: 0
		SM lid: 0
		Capability mask: 0x2651e848
		Port GUID: 0xaaaabbbb00000001
		Link layer: InfiniBand
CA 'mlx5_1'
	CA type: MT4123
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 200
		Base lid: 12
		SM lid: 3
		Link layer: InfiniBand
`

func TestIBStat(t *testing.T) {
	want(t, ibstatSample+"done\n", []facts.RDMAPort{
		{Device: "mlx5_0", Port: 1, LinkLayer: "InfiniBand", State: "down", PhysicalState: "Polling", RateGbps: 10, SMLID: new(0), Firmware: "20.31.1014", Model: "MT4123"},
		{Device: "mlx5_1", Port: 1, LinkLayer: "InfiniBand", State: "active", PhysicalState: "LinkUp", RateGbps: 200, SMLID: new(3), Model: "MT4123"},
	})
}

func TestIBStatFragments(t *testing.T) {
	want(t, "$ ibstat | grep -E \"CA '|State|Rate\"\nCA 'mlx5_0'\n                State: Initializing\n                Rate: 200\n", []facts.RDMAPort{
		{Device: "mlx5_0", Port: 1, State: "init", RateGbps: 200},
	})
	want(t, "$ ibstat mlx5_7 1\n\tState: Down\n\tPhysical state: Disabled\n", []facts.RDMAPort{
		{Device: "mlx5_7", Port: 1, State: "down", PhysicalState: "Disabled"},
	})
}
