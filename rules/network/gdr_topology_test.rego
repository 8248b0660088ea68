package gpudoctor.rules.gdr_topology_test

import data.gpudoctor.rules.gdr_topology

said(id, text) := {"logs": {"messages": [{
	"id": id, "program": "nccl", "role": "setting", "text": text, "source": "a.log", "line": 7, "order": 2, "count": 1, "ranks": 1,
}]}}

far := said("nccl-gdr-too-far", "GPU Direct RDMA Disabled for GPU ca000 / HCA 0 (distance 7 > 4)")
channel := {"logs": {"transports": [{
	"kind": "net", "network": "IB", "same_host": false, "gdr": false, "channels": 4, "source": "a.log", "line": 9,
}]}}

level(value) := {"env": {"variables": [{"name": "NCCL_NET_GDR_LEVEL", "value": value, "source": "job.sh", "effective": true}]}}
pair(gpu, nic, path) := {"a": gpu, "b": nic, "kind": "gpu-nic", "path": path, "bridges": []}
path(type) := {"links": {"pairs": [pair("GPU0", "NIC0", type)]}}
modules(names) := {"nics": {"modules": names}}
peermem := modules(["nvidia_peermem"])
port(more) := {"nics": {"rdma": [object.union({"device": "mlx5_0", "port": 1, "state": "active"}, more)]}}

# perftest is a table of ib_write_bw over a port of 400 Gb/s.
perftest(memory, point) := {
	"tool": "perftest", "test": "RDMA_Write BW", "what": "network", "memory": memory, "source": "bw.txt", "line": 4, "complete": true,
	"points": [object.union({"a": "mlx5_0", "bytes": 65536, "expected_gbps": 50, "threshold": 0.8, "basis": "the port of mlx5_0", "line": 9}, point)],
}

# over is one from a GPU's memory that is slow, over a path of some type.
over(type) := object.union(path(type), {"benchmarks": [perftest("gpu", {"a": "NIC0", "b": "GPU0", "gbps": 6, "threshold": 0.38})]})

test_findings if {
	every row in [
		[[said("nccl-gdr-nic-enabled", "x"), channel], {["unused", "medium"]}],
		[[said("nccl-gdr-nic-enabled", "x"), channel, level("PIX")], {["limited", "medium"]}],
		[[far], {["unused", "low"]}],
		# Slow from both is the network's or the slot's, not that of the way to the GPU.
		[[{"benchmarks": [perftest("gpu", {"gbps": 12}), perftest("host", {"gbps": 13})]}], set()],
	] {
		found := gdr_topology.findings with input as object.union_n(row[0])
		{[f.grade, f.severity] | some f in found} == row[1]
	}
}

test_names_the_level_that_suffices if {
	every row in [
		[[over("PIX")], "LOC"],
		[[path("SYS"), peermem, channel], "SYS"],
		[[level("LOC"), far], "PXB"],
	] {
		some f in gdr_topology.findings with input as object.union_n(row[0])
		f.params.gdr_level == row[1]
	}
}

# That every NIC is far is a fault where a job uses one, and if the module is not the reason.
test_unresolvable if {
	every row in [
		[[path("NODE")], {"links.pairs", "logs.transports"}],
		[[path("NODE"), channel], {"links.pairs", "logs.transports", "nics.modules"}],
		[[path("PIX")], {"links.pairs"}],
		[[far], set()],
	] {
		gdr_topology.asks == row[1] with input as object.union_n(row[0])
	}
	count(gdr_topology.findings) == 0 with input as {}
}
