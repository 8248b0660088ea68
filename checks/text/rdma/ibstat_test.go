package rdma_test

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

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
		{Device: "mlx5_0", Port: 1, LinkLayer: "InfiniBand", State: "down", PhysicalState: "Polling", RateGbps: 10, LID: new(65535), SMLID: new(0), Firmware: "20.31.1014", Model: "MT4123"},
		{Device: "mlx5_1", Port: 1, LinkLayer: "InfiniBand", State: "active", PhysicalState: "LinkUp", RateGbps: 200, LID: new(12), SMLID: new(3), Model: "MT4123"},
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

func TestIBStatGUIDsTellNothing(t *testing.T) {
	f := texttest.Parse("ibstat.txt", "VM_hostname node1\n0aaabbbbccccdddd\n0aaabbbbccccddde\nVM_hostname node2\n0aaabbbbccccdddf\n\n")
	expect.That(t, f.NICs == nil && len(f.Texts[0].Kinds) == 1 && f.Texts[0].Kinds[0].Lines == 5, "got %+v, %+v", f.NICs, f.Texts[0])
}

func FuzzIBStat(f *testing.F) {
	f.Add(ibstatSample)
	f.Add(strings.Repeat("CA 'a'\nPort 1:\nState: Down\n", 3))
	f.Fuzz(bounded)
}
