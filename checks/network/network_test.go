package network_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// add adds an interface to a machine, of hardware or virtual.
func add(m *host.Memory, name string, hardware bool, files map[string]string) {
	folder := "/sys/devices/virtual/net/" + name
	if hardware {
		folder = "/sys/devices/pci0000:00/0000:1c:00.0/net/" + name
	}
	m.AddLink("/sys/class/net/"+name, strings.Replace(folder, "/sys", "../..", 1))
	for file, text := range files {
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			m.AddLink(folder+"/"+file, target)
		} else {
			m.AddFile(folder+"/"+file, []byte(text+"\n"))
		}
	}
}

func files(more ...string) map[string]string {
	all := map[string]string{"operstate": "up", "carrier": "1", "flags": "0x1003", "mtu": "1500", "type": "1", "uevent": "INTERFACE=x"}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// bonded is a machine with a RoCE port on a bond of two links, one of which is dead, a management
// interface, and what a container runtime adds.
func bonded() *host.Memory {
	m := &host.Memory{}
	add(m, "eth0", true, files("speed", "25000"))
	add(m, "reth0", true, files("speed", "200000", "mtu", "9000", "bonding_slave/mii_status", "up"))
	add(m, "reth1", true, files("speed", "-1", "operstate", "down", "carrier", "0", "mtu", "9000", "bonding_slave/mii_status", "down"))
	add(m, "bond0", false, files("uevent", "INTERFACE=bond0\nDEVTYPE=bond", "mtu", "9000", "speed", "200000", "bonding/mode", "802.3ad 4",
		"bonding/xmit_hash_policy", "layer3+4 1", "bonding/mii_status", "up", "bonding/slaves", "reth0 reth1",
		"bonding/ad_partner_mac", "00:00:5e:00:01:01", "bonding/ad_num_ports", "1"))
	add(m, "lo", false, files("operstate", "unknown", "flags", "0x49", "type", "772", "mtu", "65536"))
	add(m, "docker0", false, files("operstate", "down", "carrier", "0", "uevent", "DEVTYPE=bridge"))
	add(m, "wg0", false, files("operstate", "unknown", "type", "65534", "mtu", "1420"))
	add(m, "veth1a", false, files())
	m.AddDir("/sys/module/mlx5_ib")
	m.AddDir("/sys/module/nvidia_peermem")
	m.AddDir("/sys/module/ext4")
	m.Answer(network.AskAddresses, map[string][]string{"bond0": {"10.1.0.5/24", "fe80::1/64"}, "lo": {"127.0.0.1/8"}})
	m.Answer(network.AskFlowControl+"reth0", network.FlowControl{Priorities: []int{3}})
	m.AnswerError(network.AskFlowControl+"reth1", errors.New("DCB_CMD_IEEE_GET: operation not supported"))
	for i := range 8 {
		m.AddFile(fmt.Sprintf("/sys/devices/pci0000:00/0000:1c:00.0/net/reth0/ecn/roce_np/enable/%d", i), fmt.Appendln(nil, i/3%2))
	}
	m.AddLink("/sys/class/infiniband/mlx5_bond_0", "../../devices/pci0000:00/0000:1c:00.0/infiniband/mlx5_bond_0")
	port := "/sys/devices/pci0000:00/0000:1c:00.0/infiniband/mlx5_bond_0/ports/1/"
	for file, text := range map[string]string{
		"link_layer": "Ethernet", "state": "4: ACTIVE", "gids/0": "fe80::1", "gid_attrs/types/0": "RoCE v2", "gid_attrs/ndevs/0": "bond0",
	} {
		m.AddFile(port+file, []byte(text+"\n"))
	}
	return m
}

func TestNetwork(t *testing.T) {
	f := checktest.One(t, network.Check, bonded())
	up, down := new(true), new(false)
	want := &facts.NICFacts{
		Interfaces: []facts.Interface{
			{Name: "eth0", State: "up", Carrier: up, MTU: 1500, SpeedGbps: 25, Kind: "ethernet"},
			{Name: "reth0", State: "up", Carrier: up, MTU: 9000, SpeedGbps: 200, Kind: "ethernet"},
			{Name: "reth1", State: "down", Carrier: down, MTU: 9000, Kind: "ethernet"},
			{Name: "bond0", State: "up", Carrier: up, MTU: 9000, SpeedGbps: 200, Kind: "bond", Addresses: []string{"10.1.0.5/24", "fe80::1/64"}},
			{Name: "lo", State: "up", MTU: 65536, Kind: "loopback", Addresses: []string{"127.0.0.1/8"}},
			{Name: "docker0", State: "down", Carrier: down, MTU: 1500, Kind: "bridge"},
			{Name: "veth1a", State: "up", Carrier: up, MTU: 1500, Kind: "veth"},
			{Name: "wg0", State: "up", Carrier: up, MTU: 1420, Kind: "tunnel"},
		},
		Bonds:   []facts.Bond{{Name: "bond0", Mode: "802.3ad", HashPolicy: "layer3+4", Members: []string{"reth0", "reth1"}, Down: []string{"reth1"}, Partner: "00:00:5e:00:01:01", Aggregated: new(1)}},
		Modules: []string{"mlx5_ib", "nvidia_peermem"}, QoS: []facts.QoS{{Interface: "reth0", PFC: []int{3}, ECN: []int{3, 4, 5}}},
		RDMA: []facts.RDMAPort{{
			Device: "mlx5_bond_0", Port: 1, Address: "0000:1c:00.0", LinkLayer: "Ethernet", State: "active", Netdev: "bond0", AllowedMTU: 4096,
			GIDs: []facts.GID{{GID: "fe80::1", Type: "RoCE v2", Netdev: "bond0"}},
		}},
	}
	diff := cmp.Diff(want, f.NICs, cmpopts.IgnoreFields(facts.Interface{}, "Source"), cmpopts.IgnoreFields(facts.Bond{}, "Source"),
		cmpopts.IgnoreFields(facts.QoS{}, "Source"), cmpopts.IgnoreFields(facts.RDMAPort{}, "Source"))
	expect.That(t, diff == "", "nics (-want +got):\n%s", diff)
	expect.NoDiff(t, []string{"qos.pfc: DCB_CMD_IEEE_GET: operation not supported"}, checktest.UnknownOf(f, "nics"), "unknown")
}

// Without /sys nothing is known, and the reason is; without RDMA, bonds or modules it is known that there is none.
func TestNothing(t *testing.T) {
	var masked host.Memory
	f := checktest.One(t, network.Check, &masked)
	expect.That(t, f.NICs == nil && len(checktest.UnknownOf(f, "nics")) == 1, "masked: %+v, unknown %q", f.NICs, checktest.UnknownOf(f, "nics"))
	var bare host.Memory
	add(&bare, "lo", false, files())
	bare.AddDir("/sys/module")
	bare.Answer(network.AskAddresses, map[string][]string{})
	f = checktest.One(t, network.Check, &bare)
	n := f.NICs
	expect.That(t, n != nil && n.RDMA != nil && n.Bonds != nil && n.Modules != nil && len(n.RDMA)+len(n.Bonds)+len(n.Modules) == 0 && len(f.Unknown) == 0, "bare: %+v, unknown %q", n, f.Unknown)
}

// A node of Kubernetes has a thousand ends of pairs: all hardware is read, of the others those with an
// address first, and the rest is counted.
func TestManyInterfaces(t *testing.T) {
	var m host.Memory
	addresses := map[string][]string{"veth900": {"10.9.0.1/32"}}
	for i := range 12 {
		add(&m, fmt.Sprintf("eth%d", i), true, files("speed", "400000"))
	}
	for i := range 1000 {
		add(&m, fmt.Sprintf("veth%d", i), false, files())
	}
	add(&m, "zbond", false, files("uevent", "DEVTYPE=bond"))
	add(&m, "bond7", false, files("uevent", "DEVTYPE=bond", "bonding/mode", "active-backup 1", "bonding/slaves", ""))
	m.AddDir("/sys/module")
	m.Answer(network.AskAddresses, addresses)
	n := checktest.One(t, network.Check, &m).NICs
	got, all := len(n.Interfaces)+n.InterfacesLeft, 12+1000+2
	expect.That(t, got == all && n.InterfacesLeft >= 900, "%d interfaces listed or counted, %d counted; want %d", got, n.InterfacesLeft, all)
	for _, name := range []string{"eth0", "eth11", "bond7", "veth900"} {
		expect.That(t, slices.ContainsFunc(n.Interfaces, func(i facts.Interface) bool { return i.Name == name }), "%s is not listed", name)
	}
}

// Each file that fails leaves its own fact unknown. A dead NIC gives EINVAL for speed and carrier, which is no
// gap; one that hangs does not keep the others from being read.
func TestUnreadable(t *testing.T) {
	for _, failure := range []error{syscall.EINVAL, host.ErrSlow, fs.ErrPermission} {
		for _, file := range []string{"operstate", "carrier", "mtu", "speed", "type", "uevent"} {
			m := bonded()
			m.AddError("/sys/devices/pci0000:00/0000:1c:00.0/net/eth0/"+file, failure)
			f := checktest.One(t, network.Check, m)
			expect.Must(t, f.NICs != nil && len(f.NICs.Interfaces) == 8, "%s: %v: %+v", file, failure, f.NICs)
			eth0, unknown := f.NICs.Interfaces[0], len(checktest.UnknownOf(f, "nics"))-1
			gap := file == "operstate" || file == "mtu"
			if gap != (unknown == 1) || file == "speed" && eth0.SpeedGbps != 0 || file == "mtu" && eth0.MTU != 0 || file == "operstate" && eth0.State != "" {
				t.Errorf("%s: %v: %+v, %d gaps", file, failure, eth0, unknown)
			}
		}
	}
}

func FuzzFiles(f *testing.F) {
	f.Add("bond0", "802.3ad 4", "reth0 reth1", "DEVTYPE=bond")
	f.Add("x\x1b", "\x1b 1", strings.Repeat("a ", 500), "DEVTYPE=")
	f.Fuzz(func(t *testing.T, name, word, members, uevent string) {
		if strings.ContainsAny(name, "/\x00") || name == "" || name == "." || name == ".." {
			return
		}
		var m host.Memory
		add(&m, name, false, map[string]string{
			"operstate": word, "mtu": word, "speed": word, "type": word, "uevent": uevent, "bonding/mode": word, "bonding/xmit_hash_policy": word,
			"bonding/slaves": members, "bonding/ad_partner_mac": word, "bonding/ad_num_ports": word,
		})
		m.Answer(network.AskAddresses, map[string][]string{name: {word, members}})
		n := checktest.One(t, network.Check, &m).NICs
		bad := func(s string) bool { return len(s) > 64 || strings.ContainsAny(s, "\x1b\n") }
		for _, i := range n.Interfaces {
			expect.That(t, !bad(i.Name) && !bad(i.Kind) && !bad(i.State) && !slices.ContainsFunc(i.Addresses, bad) && i.MTU >= 0 && i.SpeedGbps >= 0, "got %+v", i)
		}
		for _, b := range n.Bonds {
			expect.That(t, !bad(b.Mode) && !bad(b.HashPolicy) && !bad(b.Partner) && len(b.Members) <= 64 && !slices.ContainsFunc(b.Members, bad), "got %+v", b)
		}
	})
}
