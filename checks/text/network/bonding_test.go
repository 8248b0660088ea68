package network_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const bondingSample = `Ethernet Channel Bonding Driver: v5.15.0

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
Transmit Hash Policy: layer3+4 (1)
MII Status: up
MII Polling Interval (ms): 100

802.3ad info
LACP active: on
Aggregator selection policy (ad_select): stable
Active Aggregator Info:
	Aggregator ID: 1
	Number of ports: 1
	Partner Key: 190
	Partner Mac Address: 02:00:00:00:00:07

Slave Interface: eth2
MII Status: up
Speed: 100000 Mbps
details actor lacp pdu:
    system priority: 65535

Slave Interface: eth3
MII Status: down
Speed: Unknown
`

func TestBonding(t *testing.T) {
	want := facts.Bond{
		Mode: "802.3ad", HashPolicy: "layer3+4", Members: []string{"eth2", "eth3"}, Down: []string{"eth3"},
		Partner: "02:00:00:00:00:07", Aggregated: new(1), Source: "x.txt", Line: 1,
	}
	for name, tt := range map[string]struct {
		name, text string
		change     func(*facts.Bond)
	}{
		"no name":           {name: "x.txt", text: bondingSample, change: func(*facts.Bond) {}},
		"named by prompt":   {name: "x.txt", text: "root@n1:~# cat /proc/net/bonding/bond1\n" + bondingSample, change: func(b *facts.Bond) { b.Name, b.Host, b.Line = "bond1", "n1", 2 }},
		"named by file":     {name: "proc/bond7.txt", text: bondingSample, change: func(b *facts.Bond) { b.Name, b.Source = "bond7", "proc/bond7.txt" }},
		"first line is cut": {name: "x.txt", text: bondingSample[len("Ethernet Channel Bonding Driver: v5.15.0\n\n"):], change: func(*facts.Bond) {}},
	} {
		expected := want
		tt.change(&expected)
		f := texttest.Parse(tt.name, tt.text)
		expect.NoDiff(t, []facts.Bond{expected}, f.NICs.Bonds, "%s", name)
		got := expect.Map(f.NICs.Interfaces, show)
		expect.That(t, len(got) == 2 && f.NICs.Interfaces[1].Carrier != nil && !*f.NICs.Interfaces[1].Carrier, "%s: members = %q, want eth2 and eth3 without a carrier", name, got)
	}
}
