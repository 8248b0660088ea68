package rdma_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

func TestIBDev2Netdev(t *testing.T) {
	want(t, `mlx5_0 port 1 ==> ib0 (Down)
0000:3B:00.0 mlx5_4 (MT4129 - MCX75310AAS-NEAT) ConnectX-7 HHHL adapter card fw 28.39.1002 port 1 (ACTIVE) ==> enp59s0 (Up)
a ==> b (c)
`, []facts.RDMAPort{
		{Device: "mlx5_0", Port: 1, Netdev: "ib0", NetdevUp: new(false), LinkLayer: "InfiniBand"},
		{
			Device: "mlx5_4", Port: 1, Netdev: "enp59s0", NetdevUp: new(true), LinkLayer: "Ethernet", State: "active",
			Address: "0000:3b:00.0", Model: "MT4129", Firmware: "28.39.1002",
		},
	})
}

func FuzzIBDev2Netdev(f *testing.F) {
	f.Add("mlx5_0 port 1 ==> ib0 (Down)\n")
	f.Add("0000:3b:00.0 mlx5_4 (MT4129 - M) x fw 1.2 port 1 (DOWN  ) ==> e (Up)\n")
	f.Fuzz(bounded)
}
