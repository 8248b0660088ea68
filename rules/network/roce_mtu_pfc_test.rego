package gpudoctor.rules.roce_mtu_pfc_test

import data.gpudoctor.rules.roce_mtu_pfc

given_up := {"logs": {"messages": [{
	"id": "nccl-ib-completion-retry-exceeded", "program": "nccl", "role": "cause", "text": "Got completion with status=12",
	"source": "a.log", "line": 7, "order": 2, "count": 1, "ranks": 1,
}]}}

port(device, rest) := object.union({"device": device, "port": 1, "link_layer": "Ethernet", "state": "active", "source": "d", "line": 1}, rest)
ports(list) := {"nics": {"rdma": list}}

index := {"env": {"variables": [{"name": "NCCL_IB_GID_INDEX", "value": "3", "source": "a.log", "effective": true}]}}

only(subject, document) := f if {
	some f in roce_mtu_pfc.findings with input as document
	f.subject == subject
}

test_fires_different_mtus if {
	two := ports([port("mlx5_0", {"mtu": 4096}), port("mlx5_1", {"mtu": 1024})])
	only("MTU", two).severity == "low"
	only("MTU", object.union(two, given_up)).severity == "high"
}

test_fires_without_flow_control if {
	off := {"nics": {"qos": [{"interface": "ens1", "pfc": [], "source": "q", "line": 1}]}}
	only("PFC", off).severity == "info"
}

# The addresses are right: an index is set, or UCX chose the GID.
test_fires_given_up_with_the_right_gid if {
	roce := ports([port("mlx5_0", {})])
	ucx := {"logs": {"messages": [object.union(given_up.logs.messages[0], {"id": "rdma-retry-exceeded", "fields": {"ucx": "Transport retry count exceeded"}})]}}
	every document in [object.union(given_up, index), ucx] {
		only("loss", object.union(roce, document)).id == "given-up"
	}
	not only("loss", object.union(roce, given_up))
}

test_unresolvable if count(roce_mtu_pfc.findings) == 0 with input as {}

# The state of a port is not always shown.
test_ports_of_unknown_state_count if {
	stateless := {"device": "mlx5_0", "port": 1, "link_layer": "Ethernet", "counters": {"out_of_sequence": 12}, "source": "d", "line": 1}
	only("loss", ports([stateless])).severity == "low"
	not only("loss", ports([object.union(stateless, {"state": "down"})]))
	only("MTU", ports([object.union(stateless, {"mtu": 1024})])).grade == "small"
	not only("MTU", ports([object.union(stateless, {"mtu": 1024, "max_mtu": 1024})]))
}

# perftest is a table of ib_write_bw from host memory over a port of 400 Gb/s.
perftest(gbps) := {
	"tool": "perftest", "test": "RDMA_Write BW", "what": "network", "memory": "host", "source": "bw.txt", "line": 4, "complete": true,
	"points": [{"a": "mlx5_0", "bytes": 65536, "gbps": gbps, "expected_gbps": 50, "threshold": 0.8, "basis": "the port of mlx5_0", "line": 9}],
}

over_layer(gbps, layer) := {"benchmarks": [perftest(gbps)], "nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active", "link_layer": layer, "rate_gbps": 400, "mtu": 4096, "source": "i.txt", "line": 2}]}}

test_fires_slow_network if {
	some f in roce_mtu_pfc.findings with input as over_layer(20, "Ethernet")
	contains(f.about.words, "160 Gb/s")
}

test_silent_network_of_others if {
	count(roce_mtu_pfc.findings) == 0 with input as over_layer(20, "InfiniBand")
	count(roce_mtu_pfc.findings) == 0 with input as over_layer(48, "Ethernet")
}
