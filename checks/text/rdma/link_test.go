package rdma_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

const linkSample = `link mlx5_7/1 subnet_prefix fe80:0000:0000:0000 lid 3403 sm_lid 1 lmc 0 state DOWN physical_state POLLING
1/1: mlx5_1/1: state ACTIVE physical_state LINK_UP netdev ens3f1
link rocep1s0/1 state ACTIVE physical_state LINK_UP
link mlx5_2/1 rx_write_requests 7 out_of_sequence 12 local_ack_timeout_err 3
`

func TestRDMALink(t *testing.T) {
	want(t, linkSample, []facts.RDMAPort{
		{Device: "mlx5_7", Port: 1, LinkLayer: "InfiniBand", State: "down", PhysicalState: "Polling", LID: new(3403), SMLID: new(1)},
		{Device: "mlx5_1", Port: 1, LinkLayer: "Ethernet", State: "active", PhysicalState: "LinkUp", Netdev: "ens3f1"},
		{Device: "rocep1s0", Port: 1, State: "active", PhysicalState: "LinkUp"},
		{Device: "mlx5_2", Port: 1, Counters: map[string]int64{"out_of_sequence": 12, "local_ack_timeout_err": 3}},
	})
}

func FuzzRDMALink(f *testing.F) {
	f.Add(linkSample)
	f.Add("link a/999999999999 state\nlink b/1 out_of_sequence 99999999999999999999\n")
	f.Fuzz(bounded)
}
