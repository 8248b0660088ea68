package rdma_test

import (
	"encoding/json"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/rdma"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// want compares the ports that a text gives with those that are expected, leaving out where they stand.
func want(t *testing.T, text string, want []facts.RDMAPort) {
	t.Helper()
	f := texttest.Parse("x.txt", text)
	var got []facts.RDMAPort
	if f.NICs != nil {
		got = f.NICs.RDMA
	}
	for i := range got {
		expect.That(t, got[i].Source == "x.txt" && got[i].Line >= 1, "port %s has no place: %+v", got[i].Device, got[i])
		got[i].Source, got[i].Line = "", 0
	}
	a, _ := json.MarshalIndent(got, "", " ")
	b, _ := json.MarshalIndent(want, "", " ")
	expect.That(t, string(a) == string(b), "%q:\ngot %s\nwant %s", text, a, b)
}

// bounded fails when a text gives more than the facts may hold.
func bounded(t *testing.T, text string) {
	t.Helper()
	f := texttest.Parse("fuzz", text)
	if f.NICs == nil {
		return
	}
	if len(f.NICs.RDMA) > parse.MaxEntries || len(f.NICs.QoS) > parse.MaxEntries || len(f.NICs.Modules) > len(network.Modules) {
		t.Errorf("too much: %d ports, %d QoS, %d modules", len(f.NICs.RDMA), len(f.NICs.QoS), len(f.NICs.Modules))
	}
	for _, p := range f.NICs.RDMA {
		expect.That(t, len(p.GIDs) <= rdma.MaxGIDs && p.Port >= 0 && p.RateGbps >= 0, "port %+v", p)
	}
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
		GIDs: []facts.GID{{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "RoCE v2", Netdev: "ens3f0", IPv4: "10.1.2.3"}}, Netdev: "ens3f0",
	}})
}

// Two machines whose prompts give no name both have a mlx5_0.
func TestPortsThatContradictStay(t *testing.T) {
	want(t, "mlx5_0 port 1 ==> ens1 (Up)\nmlx5_0 port 1 ==> ens1 (Up)\nmlx5_0 port 1 ==> ens1 (Down)\n", []facts.RDMAPort{
		{Device: "mlx5_0", Port: 1, Netdev: "ens1", NetdevUp: new(true), LinkLayer: "Ethernet"},
		{Device: "mlx5_0", Port: 1, Netdev: "ens1", NetdevUp: new(false), LinkLayer: "Ethernet"},
	})
}
