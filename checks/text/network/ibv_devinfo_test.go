package network_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

const ibvDevinfoSample = `hca_id:	mlx5_2
	transport:			InfiniBand (0)
	fw_ver:				28.39.1002
	node_guid:			aaaa:bbbb:0000:0001
	sys_image_guid:			aaaa:bbbb:0000:0001
	vendor_id:			0x02c9
	vendor_part_id:			4129
	hw_ver:				0x0
	board_id:			MT_0000000838
	phys_port_cnt:			1
	max_mr_size:			0xffffffffffffffff
	device_cap_flags:		0x25321c36
					BAD_PKEY_CNTR
					Unknown flags: 0x25320000
	completion_timestamp_mask not supported
		port:	1
			state:			PORT_INIT (2)
			max_mtu:		4096 (5)
			active_mtu:		4096 (5)
			sm_lid:			0
			port_lid:		65535
			port_lmc:		0x00
			link_layer:		InfiniBand
			max_msg_sz:		0x40000000
			active_width:		4X (2)
			active_speed:		100.0 Gbps (128)
			phys_state:		LINK_UP (5)
			GID[  0]:		fe80:0000:0000:0000:aaaa:bbbb:0000:0001

hca_id:	mlx5_3
	transport:			InfiniBand (0)
	vendor_id:			0x02c9
	vendor_part_id:			4125
		port:	1
			state:			PORT_ACTIVE (4)
			active_mtu:		1024 (3)
			link_layer:		Ethernet
			GID[  0]:		fe80::1, RoCE v1
			GID[  3]:		::ffff:10.1.2.3, RoCE v2
`

func TestIBVDevinfo(t *testing.T) {
	want(t, ibvDevinfoSample, []facts.RDMAPort{
		{
			Device: "mlx5_2", Port: 1, LinkLayer: "InfiniBand", State: "init", PhysicalState: "LinkUp", RateGbps: 400, MTU: 4096, MaxMTU: 4096,
			SMLID: new(0), Firmware: "28.39.1002", Model: "MT4129",
			GIDs: []facts.GID{{Index: 0, GID: "fe80:0000:0000:0000:aaaa:bbbb:0000:0001", Type: "IB"}},
		},
		{
			Device: "mlx5_3", Port: 1, LinkLayer: "Ethernet", State: "active", MTU: 1024, Model: "MT4125",
			GIDs: []facts.GID{{Index: 0, GID: "fe80::1", Type: "RoCE v1"}, {Index: 3, GID: "::ffff:10.1.2.3", Type: "RoCE v2"}},
		},
	})
}

// A forum's post often has lost its tabs, and grep the heads.
func TestIBVDevinfoFragments(t *testing.T) {
	want(t, "$ ibv_devinfo | grep -E 'hca_id|state'\nhca_id: mlx5_0\nstate: PORT_DOWN (1)\nhca_id: mlx5_1\nstate: PORT_ACTIVE (4)\nother: line\n", []facts.RDMAPort{
		{Device: "mlx5_0", Port: 1, State: "down"}, {Device: "mlx5_1", Port: 1, State: "active"},
	})
	want(t, "$ ibv_devinfo -d mlx5_4 | grep link_layer\n            link_layer:     Ethernet\n", []facts.RDMAPort{
		{Device: "mlx5_4", Port: 1, LinkLayer: "Ethernet"},
	})
	want(t, "my ports:\n   state:   PORT_DOWN (1)\n   state:   PORT_ACTIVE (4)\n", []facts.RDMAPort{{Port: 1, State: "down"}, {Port: 1, State: "active"}})
}
