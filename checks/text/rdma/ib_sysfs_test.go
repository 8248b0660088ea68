package rdma_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

const ibSysfsSample = `/sys/class/infiniband/mlx5_0/ports/1/state:1: DOWN
/sys/class/infiniband/mlx5_0/ports/1/phys_state:3: Disabled
/sys/class/infiniband/mlx5_0/ports/1/rate:100 Gb/sec (4X EDR)
/sys/class/infiniband/mlx5_0/ports/1/link_layer:Ethernet
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3:RoCE v2
/sys/class/infiniband/mlx5_0/ports/1/gids/3:0000:0000:0000:0000:0000:ffff:0a01:0203
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/3:ens1
/sys/class/infiniband/mlx5_0/ports/1/hw_counters/packet_seq_err:44
/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data:123456789
`

func TestIBSysfs(t *testing.T) {
	want(t, ibSysfsSample, []facts.RDMAPort{{
		Device: "mlx5_0", Port: 1, State: "down", PhysicalState: "Disabled", RateGbps: 100, LinkLayer: "Ethernet",
		GIDs:     []facts.GID{{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:0a01:0203", Type: "RoCE v2", Netdev: "ens1", IPv4: "10.1.2.3"}},
		Counters: map[string]int64{"packet_seq_err": 44},
	}})
}

func TestIBSysfsCat(t *testing.T) {
	want(t, "$ cat /sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/3\nRoCE v2\n$ cma_roce_mode -d mlx5_1 -p 1\nIB/RoCE v1\n", []facts.RDMAPort{{
		Device: "mlx5_1", Port: 1, LinkLayer: "Ethernet", GIDs: []facts.GID{{Index: 3, Type: "RoCE v2"}}, DefaultRoCE: "RoCE v1",
	}})
}

// A port that has counted notifications of congestion is of RoCE.
func TestIBSysfsCongestion(t *testing.T) {
	want(t, "/sys/class/infiniband/mlx5_2/ports/1/hw_counters/np_cnp_sent:1333\n/sys/class/infiniband/mlx5_2/ports/1/hw_counters/out_of_sequence:9\n", []facts.RDMAPort{{
		Device: "mlx5_2", Port: 1, LinkLayer: "Ethernet", Counters: map[string]int64{"out_of_sequence": 9},
	}})
	want(t, "/sys/class/infiniband/mlx5_2/ports/1/hw_counters/np_cnp_sent:0\n/sys/class/infiniband/mlx5_2/ports/1/hw_counters/out_of_sequence:9\n", []facts.RDMAPort{{
		Device: "mlx5_2", Port: 1, Counters: map[string]int64{"out_of_sequence": 9},
	}})
}

func FuzzIBSysfs(f *testing.F) {
	f.Add(ibSysfsSample)
	f.Add("$ cat /sys/class/infiniband/a/ports/1/gids/9\n::\n$ cma_roce_mode -d x\nRoCE v2\n")
	f.Fuzz(bounded)
}
