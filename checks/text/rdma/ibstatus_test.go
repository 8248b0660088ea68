package rdma_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

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
			Device: "mlx5_0", Port: 1, LinkLayer: "InfiniBand", State: "active", PhysicalState: "LinkUp", RateGbps: 400, LID: new(31), SMLID: new(1),
			GIDs: []facts.GID{{Index: 0, GID: "fe80:0000:0000:0000:0000:0000:0000:0001", Type: "IB"}},
		},
		{Device: "mlx5_bond_0", Port: 1, LinkLayer: "Ethernet", State: "down", PhysicalState: "Disabled", RateGbps: 40},
	})
}

func FuzzIBStatus(f *testing.F) {
	f.Add(ibstatusSample)
	f.Add("Infiniband device 'x' port 9999999999999 status:\n\n\nstate: 1: DOWN")
	f.Fuzz(bounded)
}
