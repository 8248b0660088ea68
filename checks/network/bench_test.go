package network_test

import (
	"fmt"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/checktest"
	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
	"github.com/gpudoctor/gpudoctor/checks/internal/netlink"
	"github.com/gpudoctor/gpudoctor/checks/network"
)

// node is a node of Kubernetes with ten RoCE NICs, each with a table of 256 GIDs of which eight are used, and a
// thousand ends of pairs.
func node() *machine.Memory {
	m := &machine.Memory{}
	for n := range 10 {
		name := fmt.Sprintf("ens%d", n)
		add(m, name, true, files("speed", "400000", "mtu", "9000"))
		port := fmt.Sprintf("/sys/class/infiniband/mlx5_%d/ports/1/", n)
		for file, text := range map[string]string{
			"link_layer": "Ethernet", "state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)",
			"counters/symbol_error": "0", "counters/link_downed": "1", "hw_counters/out_of_sequence": "7", "hw_counters/packet_seq_err": "0",
		} {
			m.AddFile(port+file, []byte(text+"\n"))
		}
		for i := range 256 {
			gid := "0000:0000:0000:0000:0000:0000:0000:0000"
			if i < 8 {
				gid = fmt.Sprintf("0000:0000:0000:0000:0000:ffff:0a%02x:02%02x", n, i)
				m.AddFile(fmt.Sprintf("%sgid_attrs/types/%d", port, i), []byte("RoCE v2\n"))
				m.AddFile(fmt.Sprintf("%sgid_attrs/ndevs/%d", port, i), []byte(name+"\n"))
			}
			m.AddFile(fmt.Sprintf("%sgids/%d", port, i), []byte(gid+"\n"))
		}
		m.Answer(netlink.AskFlowControl+name, netlink.FlowControl{Priorities: []int{3}})
	}
	for i := range 1000 {
		add(m, fmt.Sprintf("veth%d", i), false, files())
	}
	m.AddDir("/sys/module")
	m.Answer(netlink.AskAddresses, map[string][]string{"ens0": {"10.0.0.5/24"}})
	return m
}

func BenchmarkNode(b *testing.B) {
	m := node()
	b.ReportAllocs()
	for b.Loop() {
		f := &facts.Facts{}
		if err := network.Check.Gather(b.Context(), checktest.On(m, f)); err != nil {
			b.Fatal(err)
		}
		if len(f.NICs.RDMA) != 10 || len(f.NICs.RDMA[9].GIDs) != 8 {
			b.Fatalf("got %+v", f.NICs.RDMA)
		}
	}
}
