package gpudoctor.lib.networks_test

import data.gpudoctor.lib.networks

says(order, host, text) := {
	"id": "x", "program": "nccl", "role": "setting", "text": text, "host": host,
	"source": "nccl.log", "line": order + 1, "order": order, "count": 1, "ranks": 1,
}

document(texts) := {"logs": {"messages": [says(i, row[0], row[1]) | some i, row in texts]}}

first(fields) := {"logs": {"messages": [{"id": "torch-first-failure", "fields": fields}]}}

test_counts_machines if {
	networks.multi_node with input as document([["a", "x"], ["b", "y"]])
	not networks.multi_node with input as document([["a", "x"], ["a", "y"]])
	networks.multi_node with input as {"logs": {"messages": [], "communicators": [{"nodes": 2}]}}
	networks.multi_node with input as {"logs": {"messages": [], "communicators": [{"hosts": ["a", "b"]}]}}
	networks.multi_node with input as {"logs": {"messages": [], "networks": [{"host": "a"}, {"host": "b"}]}}
	networks.multi_node with input as {"logs": {"messages": [], "transports": [{"kind": "net", "same_host": false}]}}
	not networks.multi_node with input as {"logs": {"messages": [], "transports": [{"kind": "net", "same_host": true}]}}
	not networks.multi_node with input as {"logs": {"messages": [], "communicators": [{"nodes": 1, "hosts": ["a"]}]}}
	networks.multi_node with input as {"launches": [{"nodes": 4}]}
	networks.multi_node with input as document([["", "(RayWorkerWrapper pid=248, ip=10.1.160.68) x"]])
	networks.multi_node with input as {"benchmarks": [{"nodes": 2}]}
	networks.multi_node with input as first({"rank": "1", "local_rank": "0"})
	not networks.multi_node with input as first({"rank": "1", "local_rank": "1"})
	not networks.multi_node with input as first({"rank": "1"})
	networks.single_node with input as {"logs": {"messages": [], "communicators": [{"nodes": 1}]}}
	not networks.single_node with input as {"logs": {"messages": []}}
	networks.met with input as {"logs": {"messages": [], "communicators": [{"nodes": 2}]}}
}

test_sees_trouble if {
	networks.troubled with input as {"logs": {"messages": [], "communicators": [{"started": 2, "completed": 1}]}}
	networks.troubled with input as {"logs": {"messages": [object.union(says(0, "a", "x"), {"role": "category"})]}}
	not networks.troubled with input as document([["a", "x"]])
	networks.troubled with input as {"logs": {"messages": [object.union(says(0, "a", "x"), {"id": "nccl-connect-retried-often"})]}}
}

test_reads_patterns if {
	networks.selects("eth", "eth7")
	networks.selects("=eth0", "eth0")
	not networks.selects("=eth0", "eth01")
	not networks.selects("^docker,lo", "lo")
	networks.selects("^docker,lo", "eth0")
	networks.selects("mlx5_0:1,mlx5_1:1", "mlx5_1")
	not networks.selects("ib", "eth0")
	networks.asked == "ib0" with input as {"env": {"variables": [{"name": "NCCL_SOCKET_IFNAME", "value": "ib0", "effective": true}]}}
}

test_reads_lists_of_interfaces if {
	lo := {"name": "lo", "kind": "loopback", "state": "up"}
	eth := {"name": "eth0", "kind": "ethernet", "state": "down", "host": "n1"}
	object.keys(networks.listed) == {"n1"} with input as {"nics": {"interfaces": [object.union(lo, {"host": "n1"}), eth]}}
	count(object.keys(networks.listed)) == 0 with input as {"nics": {"interfaces": [eth]}}
	networks.unusable(eth)
	networks.unusable({"state": "up", "carrier": false})
	not networks.unusable(lo)
}
