package rdma_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

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
				{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "RoCE v2", Netdev: "ens1f0", IPv4: "10.1.2.3"},
			},
		},
		{
			Device: "mlx5_1", Port: 1, LinkLayer: "InfiniBand", Netdev: "ib0",
			GIDs: []facts.GID{{Index: 0, GID: "fe80:0000:0000:0000:0202:03ff:fe04:0507", Type: "IB", Netdev: "ib0"}},
		},
	})
}

// In a container the interface is hidden and its column empty.
func TestShowGIDsFragment(t *testing.T) {
	want(t, "mlx5_0  1       5       0000:0000:0000:0000:0000:ffff:0a01:0203 10.1.2.3        v2\n", []facts.RDMAPort{{
		Device: "mlx5_0", Port: 1,
		GIDs: []facts.GID{{Index: 5, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "RoCE v2", IPv4: "10.1.2.3"}},
	}})
}

func FuzzShowGIDs(f *testing.F) {
	f.Add(showGIDsSample)
	f.Add("mlx5_0 1 99999999999999999999 0000:0000:0000:0000:0000:ffff:0a01:0203 v2\n")
	f.Fuzz(bounded)
}
