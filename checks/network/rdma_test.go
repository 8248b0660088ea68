package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// device adds a device with one port to a machine.
func device(m *host.Memory, name, address string, files map[string]string) {
	at := "/sys/devices/pci0000:00/" + address + "/infiniband/" + name
	m.AddLink("/sys/class/infiniband/"+name, "../../devices/pci0000:00/"+address+"/infiniband/"+name)
	m.AddFile(at+"/fw_ver", []byte("28.39.1002\n"))
	m.AddFile(at+"/hca_type", []byte("MT4129\n"))
	for file, text := range files {
		m.AddFile(at+"/ports/1/"+file, []byte(text+"\n"))
	}
}

// table adds a table of GIDs of 256 entries, all others zero.
func table(files map[string]string, gids map[int][3]string) map[string]string {
	for i := range 256 {
		files[fmt.Sprintf("gids/%d", i)] = "0000:0000:0000:0000:0000:0000:0000:0000"
	}
	for i, g := range gids {
		files[fmt.Sprintf("gids/%d", i)] = g[0]
		files[fmt.Sprintf("gid_attrs/types/%d", i)] = g[1]
		files[fmt.Sprintf("gid_attrs/ndevs/%d", i)] = g[2]
	}
	return files
}

func ports(t *testing.T, m *host.Memory) ([]facts.RDMAPort, []string) {
	t.Helper()
	f := &facts.Facts{}
	g := checktest.On(m, f)
	p := expect.Value(readPorts(g))(t)
	f.Unknown = g.Unknowns()
	return p, checktest.UnknownOf(f, "nics")
}

func TestPorts(t *testing.T) {
	var m host.Memory
	device(&m, "mlx5_0", "0000:1c:00.0", map[string]string{
		"link_layer": "InfiniBand", "state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "sm_lid": "0x1",
		"gids/0": "fe80:0000:0000:0000:0200:0000:0000:0001", "gids/1": "0000:0000:0000:0000:0000:0000:0000:0000", "counters/symbol_error": "3",
		"counters/link_downed": "1", "counters/port_xmit_data": "99", "hw_counters/out_of_sequence": "0", "counters/port_rcv_errors": "N/A (no PMA)",
	})
	device(&m, "mlx5_bond_0", "0000:3e:00.0", table(map[string]string{
		"link_layer": "Ethernet", "state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "200 Gb/sec (4X HDR)",
	}, map[int][3]string{
		0:  {"fe80:0000:0000:0000:0200:00ff:fe00:0001", "IB/RoCE v1", "bond0.7"},
		3:  {"0000:0000:0000:0000:0000:ffff:0a01:0203", "RoCE v2", "bond0"},
		31: {"0000:0000:0000:0000:0000:ffff:0a01:0204", "RoCE v2", "bond0"},
	}))
	device(&m, "rdmap16s27", "0000:10:1b.0", map[string]string{"link_layer": "Unknown", "state": "4: ACTIVE", "gids/0": "fe80:0000:0000:0000:0200:00ff:fe00:0002"})
	device(&m, "mlx5_2", "0000:4e:00.0", table(map[string]string{"link_layer": "Ethernet", "state": "1: DOWN", "phys_state": "3: Disabled", "device": ""}, nil))
	m.AddDir("/sys/devices/pci0000:00/0000:4e:00.0/infiniband/mlx5_2/device/net/ens9")
	got, unknown := ports(t, &m)
	base := func(name, address string) facts.RDMAPort {
		return facts.RDMAPort{
			Device: name, Port: 1, Address: address, Firmware: "28.39.1002", Model: "MT4129", State: "active",
			Source: "/sys/class/infiniband/" + name + "/ports/1",
		}
	}
	ib, roce, efa, off := base("mlx5_0", "0000:1c:00.0"), base("mlx5_bond_0", "0000:3e:00.0"), base("rdmap16s27", "0000:10:1b.0"), base("mlx5_2", "0000:4e:00.0")
	ib.LinkLayer, ib.PhysicalState, ib.RateGbps, ib.SMLID = "InfiniBand", "LinkUp", 400, new(1)
	ib.GIDs = []facts.GID{{GID: "fe80:0000:0000:0000:0200:0000:0000:0001", Type: "IB"}}
	ib.Counters = map[string]int64{"symbol_error": 3, "link_downed": 1, "out_of_sequence": 0}
	roce.LinkLayer, roce.PhysicalState, roce.RateGbps, roce.Netdev = "Ethernet", "LinkUp", 200, "bond0"
	roce.GIDs = []facts.GID{
		{Index: 0, GID: "fe80:0000:0000:0000:0200:00ff:fe00:0001", Type: "RoCE v1", Netdev: "bond0.7"},
		{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "RoCE v2", Netdev: "bond0"},
		{Index: 31, GID: "0000:0000:0000:0000:0000:ffff:0a01:0204", Type: "RoCE v2", Netdev: "bond0"},
	}
	efa.GIDs = []facts.GID{{GID: "fe80:0000:0000:0000:0200:00ff:fe00:0002"}}
	off.LinkLayer, off.State, off.PhysicalState, off.Netdev, off.GIDs = "Ethernet", "down", "Disabled", "ens9", []facts.GID{}
	expect.NoDiff(t, []facts.RDMAPort{ib, off, roce, efa}, got, "ports")
	expect.Len(t, 0, unknown, "unknown")
}

// A file that cannot be read leaves its fact unknown, with the reason, and all others are read. One that
// a driver does not offer is no gap.
func TestPortsUnreadable(t *testing.T) {
	files := func() map[string]string {
		return map[string]string{
			"link_layer": "Ethernet", "state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "200 Gb/sec",
			"gids/0": "0000:0000:0000:0000:0000:ffff:0a01:0203", "counters/link_downed": "7", "hw_counters/out_of_sequence": "3",
		}
	}
	for file := range files() {
		for _, failure := range []error{syscall.EINVAL, host.ErrSlow, fs.ErrPermission, fs.ErrNotExist} {
			var m host.Memory
			device(&m, "mlx5_0", "0000:1c:00.0", files())
			name := "/sys/devices/pci0000:00/0000:1c:00.0/infiniband/mlx5_0/ports/1/" + file
			m.AddError(name, failure)
			got, unknown := ports(t, &m)
			expect.Must(t, len(got) == 1, "%s: %v: got %d ports", file, failure, len(got))
			p := got[0]
			for other, ok := range map[string]bool{
				"link_layer": p.LinkLayer != "", "state": p.State != "", "phys_state": p.PhysicalState != "", "rate": p.RateGbps != 0,
				"gids/0": p.GIDs != nil, "counters/link_downed": p.Counters["link_downed"] != 0, "hw_counters/out_of_sequence": p.Counters["out_of_sequence"] != 0,
			} {
				expect.That(t, ok != (other == file), "%s: %v: %s is known: %v", file, failure, other, ok)
			}
			expect.That(t, !errors.Is(failure, fs.ErrNotExist) == (len(unknown) == 1), "%s: %v: unknown %q", file, failure, unknown)
		}
	}
}

func TestNoDevices(t *testing.T) {
	var m host.Memory
	m.AddDir("/sys/class/net")
	expect.Fails(readPorts(checktest.On(&m, &facts.Facts{})))(t, nil, "a kernel without RDMA")
	m.AddDir("/sys/class/infiniband")
	got, unknown := ports(t, &m)
	expect.That(t, got != nil && len(got) == 0 && len(unknown) == 0, "an empty folder gives %v, unknown %q", got, unknown)
}

// What is read is bounded, whatever the files hold: names, ports, GIDs and values.
func FuzzPorts(f *testing.F) {
	f.Add("mlx5_0", "4: ACTIVE", "fe80::1", "Ethernet", "7")
	f.Add("mlx5_0", "", "fe80::1%\x1b", "Ethernet", "")
	f.Add("..", "\x1b[31mDOWN", "::", "InfiniBand", "-1")
	f.Fuzz(func(t *testing.T, name, state, gid, layer, count string) {
		if strings.ContainsAny(name, "/\x00") || name == "" || name == "." || name == ".." {
			return
		}
		var m host.Memory
		files := map[string]string{
			"state": state, "phys_state": state, "link_layer": layer, "rate": count, "sm_lid": count, "counters/link_downed": count,
			"gid_attrs/types/0": state, "gid_attrs/ndevs/0": state,
		}
		for i := range 300 {
			files[fmt.Sprintf("gids/%d", i)] = gid
		}
		device(&m, name, "0000:1c:00.0", files)
		got := expect.Value(readPorts(checktest.On(&m, &facts.Facts{})))(t)
		for _, p := range got {
			expect.That(t, len(p.GIDs) <= 256 && len(p.Netdev) <= gather.MaxShown && !strings.ContainsAny(p.Device+p.Netdev, "\x1b\n") && p.RateGbps >= 0, "got %+v", p)
			for _, g := range p.GIDs {
				a, err := netip.ParseAddr(g.GID)
				expect.That(t, err == nil && !a.IsUnspecified() && !strings.ContainsAny(g.GID, "\x1b%"), "GID %q", g.GID)
			}
			for name, n := range p.Counters {
				expect.That(t, n >= 0, "counter %s is %d", name, n)
			}
		}
	})
}

func TestRDMAWords(t *testing.T) {
	for text, want := range map[string]string{
		"PORT_ACTIVE (4)": "active", "Initializing": "init", "1: DOWN": "down", "PORT_ARMED (3)": "armed", "Active": "active", "": "", "x": "",
	} {
		expect.Equal(t, want, PortState(text), "state %q", text)
	}
	for text, want := range map[string]string{
		"LINK_UP (5)": "LinkUp", "5: LinkUp": "LinkUp", "POLLING": "Polling", "3: Disabled": "Disabled",
		"PORT_CONFIGURATION_TRAINNING (4)": "PortConfigurationTraining", "LINK_ERROR_RECOVERY (6)": "LinkErrorRecovery", "?": "",
	} {
		expect.Equal(t, want, PhysicalState(text), "physical state %q", text)
	}
}

// The path MTU is the largest power of two that leaves room for the headers of RoCE: 1024 with
// Ethernet's 1500, 4096 with jumbo frames.
func TestPathMTU(t *testing.T) {
	for mtu := range 70000 {
		got := pathMTU(mtu)
		switch {
		case got == 0 && mtu < 256+96:
		case got == 4096 && mtu >= 4096+96:
		case got >= 256 && got < 4096 && got&(got-1) == 0 && got+96 <= mtu && 2*got+96 > mtu:
		default:
			t.Errorf("an Ethernet MTU of %d gives the path MTU %d", mtu, got)
		}
	}
	for mtu, want := range map[int]int{1500: 1024, 4200: 4096, 9000: 4096, 2148: 2048, -1: 0} {
		expect.Equal(t, want, pathMTU(mtu), "an Ethernet MTU of %d gives the path MTU", mtu)
	}
}
