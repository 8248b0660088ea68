package gpudoctor.lib.rdma_test

import data.gpudoctor.lib.rdma

said(id, text) := {
	"id": id, "program": "nccl", "role": "cause", "text": text,
	"source": "a.log", "line": 1, "order": 0, "count": 1, "ranks": 1,
}

log(messages) := {"logs": {"messages": messages}}

test_unconnected if {
	texts := {
		"invalid": "Call to ibv_modify_qp failed with error Invalid argument errno 22",
		"unreachable": "Call to ibv_modify_qp failed with error Network is unreachable",
		"timeout": "Failed to modify QP to RTR, check mtu, gid: Connection timed out [110]",
		"no-memory": "ibv_modify_qp failed: Cannot allocate memory",
		"no-device": "ibv_modify_qp failed (errno 19)",
		"other": "ibv_modify_qp failed (errno 1)",
	}
	every reason, text in texts {
		count(rdma.unconnected[reason]) == 1 with input as log([said("rdma-modify-qp-failed", text)])
	}
	count(rdma.unconnected.timeout) == 1 with input as log([said("rdma-modify-qp-failed", "ibrc.cpp:418: non-zero status: 110 ibv_modify_qp failed")])
}

test_link if {
	rdma.link == "unknown" with input as {}
	rdma.link == "roce" with input as log([said("x-y", "NET/IB : Using [0]mlx5_0:1/RoCE ; OOB eno1")])
	rdma.link == "roce" with input as log([said("x-y", "localGid ::ffff:10.0.0.1 remoteGids::ffff:10.0.0.2")])
	rdma.link == "infiniband" with input as log([said("x-y", "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eno1")])
	rdma.link == "mixed" with input as {"nics": {"rdma": [{"link_layer": "Ethernet"}, {"link_layer": "InfiniBand"}]}}
}

test_versions if {
	old := {"software": [{"name": "nccl", "version": "2.14.3+cuda11.7"}]}
	new := {"software": [{"name": "nccl", "version": "2.27.3"}, {"name": "rccl", "version": "2.22.3"}]}
	rdma.takes_gid_0 with input as old
	not rdma.chooses_gid with input as old
	rdma.chooses_gid with input as new
	rdma.takes_gid_0 with input as log([said("nccl-ib-completion-retry-exceeded", "NET/IB : Got completion from peer x with error 12, opcode 0, len 0")])
	not rdma.chooses_gid with input as {}
	not rdma.takes_gid_0 with input as {}
}

test_gid_index if {
	rdma.gid_index == 3 with input as {"env": {"variables": [{"name": "NCCL_IB_GID_INDEX", "value": "3", "source": "x", "effective": true}]}}
	not rdma.gid_index with input as {"env": {"variables": [{"name": "NCCL_IB_GID_INDEX", "value": "-1", "source": "x", "effective": true}]}}
	not rdma.gid_index with input as {}
}

test_nodes if {
	rdma.several_nodes with input as {"logs": {"communicators": [{"nodes": 2}]}}
	rdma.several_nodes with input as {"logs": {"communicators": [{"hosts": ["a", "b"]}]}}
	rdma.several_nodes with input as {"logs": {"transports": [{"kind": "net", "same_host": false}]}}
	not rdma.several_nodes with input as {"logs": {"communicators": [{"nodes": 1, "hosts": ["a"]}]}}
}

test_channels if {
	channels := {"logs": {"transports": [
		{"kind": "net", "network": "IB", "same_host": false, "gdr": true},
		{"kind": "net", "network": "IBext_v8", "same_host": false},
		{"kind": "net", "network": "IB", "same_host": true},
		{"kind": "net", "network": "Socket", "same_host": false},
		{"kind": "shm"},
	]}}
	count(rdma.verbs_channels) == 2 with input as channels
	count(rdma.direct_channels) == 1 with input as channels
}

test_ports if {
	port := {"device": "mlx5_0", "port": 1, "host": "node1", "state": "active", "source": "a", "line": 3}
	count(rdma.active_ports) == 1 with input as {"nics": {"rdma": [port]}}
	rdma.port_name(port) == "mlx5_0:1 on node1"
	rdma.port_name({"device": "", "port": 1}) == "an RDMA port"
	rdma.place(port) == {"fact": "nics.rdma[mlx5_0:1]", "value": {"state": "active"}, "source": "a:3"}
}

test_sets if {
	count(rdma.retry_exceeded | rdma.port_errors) == 2 with input as log([
		said("nccl-ib-port-error", "Got async event : port error"),
		said("nccl-ib-completion-retry-exceeded", "Got completion with error 12"),
	])
	count(((rdma.port_returns | rdma.device_errors) | rdma.ports)) == 0 with input as {}
}
