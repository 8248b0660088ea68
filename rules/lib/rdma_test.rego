package gpudoctor.lib.rdma_test

import data.gpudoctor.lib.rdma

said(id, text) := {
	"id": id, "program": "nccl", "role": "cause", "text": text,
	"source": "a.log", "line": 1, "order": 0, "count": 1, "ranks": 1,
}

log(messages) := {"logs": {"messages": messages}}
with_fields(m, fields) := object.union(m, {"fields": fields})

test_link if {
	rdma.link == "roce" with input as log([with_fields(said("rdma-retry-exceeded", "x"), {"link": "RoCE"})])
	rdma.link == "infiniband" with input as log([with_fields(said("rdma-retry-exceeded", "x"), {"link": "IB"})])
	rdma.link == "roce" with input as log([with_fields(said("nccl-ib-completion-failed", "x"), {"local_gid": "::ffff:10.0.0.1"})])
	rdma.link == "mixed" with input as {"nics": {"rdma": [{"link_layer": "Ethernet"}, {"link_layer": "InfiniBand"}]}}
}

test_versions if {
	old := {"software": [{"name": "nccl", "version": "2.14.3+cuda11.7"}]}
	new := {"software": [{"name": "nccl", "version": "2.27.3"}, {"name": "rccl", "version": "2.22.3"}]}
	not rdma.chooses_gid with input as old
	rdma.chooses_gid with input as new
	not rdma.chooses_gid with input as {}
}

test_gid_index if {
	rdma.gid_index == 3 with input as {"env": {"variables": [{"name": "NCCL_IB_GID_INDEX", "value": "3", "source": "x", "effective": true}]}}
	not rdma.gid_index with input as {"env": {"variables": [{"name": "NCCL_IB_GID_INDEX", "value": "-1", "source": "x", "effective": true}]}}
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
}

test_ports if {
	port := {"device": "mlx5_0", "port": 1, "host": "node1", "state": "active", "source": "a", "line": 3}
	rdma.port_name(port) == "mlx5_0:1 on node1"
	rdma.port_name({"device": "", "port": 1}) == "an RDMA port"
}
