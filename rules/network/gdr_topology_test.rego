package gpudoctor.rules.gdr_topology_test

import data.gpudoctor.rules.gdr_topology

said(id, text) := {
	"id": id, "program": "nccl", "role": "setting", "text": text,
	"source": "a.log", "line": 7, "order": 2, "count": 1, "ranks": 1,
}

far := said("nccl-gdr-too-far", "GPU Direct RDMA Disabled for GPU ca000 / HCA 0 (distance 7 > 4)")

channel(gdr) := {"kind": "net", "network": "IB", "same_host": false, "gdr": gdr, "channels": 4, "source": "a.log", "line": 9}
level(value) := {"env": {"variables": [{"name": "NCCL_NET_GDR_LEVEL", "value": value, "source": "job.sh", "effective": true}]}}
nic(path) := {"a": "0000:3b:00.0", "b": "0000:5e:00.0", "kind": "gpu-nic", "path": path}

test_fires_channels if {
	some f in gdr_topology.findings with input as {"logs": {"messages": [said("nccl-gdr-nic-enabled", "x")], "transports": [channel(false)]}}
	count(f.evidence) == 2
}

test_fires_topology if {
	links := {"links": {"pairs": [nic("SYS")]}, "nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active"}]}}
	some f in gdr_topology.findings with input as links
	f.severity == "info"
	some g in gdr_topology.findings with input as object.union(links, {"logs": {"transports": [channel(false)]}})
	g.severity == "low"
}

test_unresolvable if count(gdr_topology.findings) == 0 with input as {}

across(path, modules) := {
	"links": {"pairs": [nic(path)]},
	"nics": {"modules": modules},
	"logs": {"transports": [channel(false)]},
}

# perftest is a table of ib_write_bw over a port of 400 Gb/s.
perftest(memory, gbps) := {
	"tool": "perftest", "test": "RDMA_Write BW", "what": "network", "memory": memory, "source": "bw.txt", "line": 4, "complete": true,
	"points": [{"a": "mlx5_0", "bytes": 65536, "gbps": gbps, "expected_gbps": 50, "threshold": 0.8, "basis": "the port of mlx5_0", "line": 9}],
}

# Slow from both is the network's or the slot's, not that of the way to the GPU.
test_silent_slow_from_both if {
	count(gdr_topology.findings) == 0 with input as {"benchmarks": [perftest("gpu", 12), perftest("host", 13)]}
}

# over is a table of ib_write_bw from a GPU's memory that is slow, over a path of some type.
over(path) := {
	"links": {"pairs": [nic(path)]},
	"benchmarks": [object.union(perftest("gpu", 6), {"points": [object.union(perftest("gpu", 6).points[0], {"b": nic(path).a, "a": nic(path).b, "threshold": 0.38})]})],
}

# NCCL takes a path up to PXB unless it is told not to, and one beyond only where it is told to.
test_keeps_nccl_from_a_slow_path if {
	some f in gdr_topology.findings with input as over("PIX")
	f.remedies == ["disable-acs", "iommu-pt", "set-net-gdr-level"]
	f.params.gdr_level == "LOC"
	some h in gdr_topology.findings with input as object.union(over("SYS"), level("SYS"))
	h.remedies == ["disable-acs", "iommu-pt", "set-net-gdr-level"]
}

test_names_the_level_that_suffices if {
	some f in gdr_topology.findings with input as across("NODE", ["nvidia_peermem"])
	f.params.gdr_level == "PHB"
	some g in gdr_topology.findings with input as across("SYS", ["nvidia_peermem"])
	g.params.gdr_level == "SYS"
	some h in gdr_topology.findings with input as object.union(level("LOC"), {"logs": {"messages": [far]}})
	h.params.gdr_level == "PXB"
}

# That every NIC is far is a fault where a job uses one, and if the module is not the reason.
test_unresolvable_where_all_are_far if {
	some m in gdr_topology.missing with input as {"links": {"pairs": [nic("NODE")]}}
	m.fact == "logs"
	some n in gdr_topology.missing with input as object.remove(across("NODE", []), ["nics"])
	n.fact == "nics.modules"
	count(gdr_topology.missing) == 0 with input as across("NODE", ["mlx5_ib"])
	count(gdr_topology.missing) == 0 with input as across("NODE", ["nvidia_peermem"])
	count(gdr_topology.missing) == 0 with input as {"links": {"pairs": [nic("PIX")]}}
}

pair(gpu, nic, path) := {"a": gpu, "b": nic, "kind": "gpu-nic", "path": path, "bridges": []}

machine := {
	"links": {"pairs": [
		pair("GPU1", "mlx5_0", "PIX"), pair("GPU1", "mlx5_1", "SYS"),
		pair("GPU4", "mlx5_0", "SYS"), pair("GPU4", "mlx5_1", "PXB"), pair("GPU5", "eth9", ""),
	]},
	"nics": {"rdma": [{"device": "mlx5_0", "port": 1}, {"device": "mlx5_1", "port": 1}]},
}

table(gpu, gbps, threshold) := {
	"tool": "perftest", "test": "RDMA_Write BW", "what": "network", "memory": "gpu", "source": "bw.txt", "line": 4, "complete": true,
	"points": [{"a": "mlx5_0", "b": gpu, "bytes": 65536, "gbps": gbps, "expected_gbps": 25, "threshold": threshold, "basis": "the port of mlx5_0", "line": 9}],
}

# Addresses are named by their RDMA device, and NICs without one are left out.
test_nearest_by_address if {
	gdr_topology.nearest == {"0000:18:00.0": {"mlx5_0"}} with input as {
		"links": {"pairs": [pair("0000:18:00.0", "0000:1a:00.0", "PXB"), pair("0000:18:00.0", "0000:1b:00.0", "PXB")]},
		"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "address": "0000:1a:00.0"}]},
	}
	gdr_topology.nearest == {"0000:18:00.0": {"0000:1b:00.0"}} with input as {"links": {"pairs": [pair("0000:18:00.0", "0000:1b:00.0", "PXB")]}}
}

test_far if {
	found := gdr_topology.far_findings with input as object.union(machine, {"benchmarks": [table("GPU4", 15.5, 0.38), table("GPU1", 24.4, 0.8)]})
	some f in found
	f.message == "mlx5_0: 124 of 200 Gb/s from the memory of GPU4, whose path to it crosses the link between the processors: normal for such a path; nearer to GPU4: mlx5_1"
}

# What is slower than its path allows is a fault, and what reaches the port's rate is none.
test_not_far if {
	count(gdr_topology.far_findings) == 0 with input as object.union(machine, {"benchmarks": [table("GPU4", 5, 0.38), table("GPU4", 24, 0.38), table("GPU1", 15, 0.8)]})
}
