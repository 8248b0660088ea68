package gpudoctor.rules.gdr_topology_test

import data.gpudoctor.rules.gdr_topology

said(id, text) := {
	"id": id, "program": "nccl", "role": "setting", "text": text,
	"source": "a.log", "line": 7, "order": 2, "count": 1, "ranks": 1,
}

far := said("nccl-gdr-too-far", "GPU Direct RDMA Disabled for GPU ca000 / HCA 0 (distance 7 > 4)")

near := said("nccl-gdr-near", "GPU Direct RDMA Enabled for GPU ca000 / HCA 1 (distance 4 <= 4), read 1")

channel(gdr) := {"kind": "net", "network": "IB", "same_host": false, "gdr": gdr, "channels": 4, "source": "a.log", "line": 9}

level(value) := {"env": {"variables": [{"name": "NCCL_NET_GDR_LEVEL", "value": value, "source": "job.sh", "effective": true}]}}

nic(path) := {"a": "0000:3b:00.0", "b": "0000:5e:00.0", "kind": "gpu-nic", "path": path}

test_fires_too_far if {
	some f in gdr_topology.findings with input as {"logs": {"messages": [far]}}
	f.severity == "low"
	count(f.messages) == 1
	some g in gdr_topology.findings with input as {"logs": {"messages": [far], "communicators": [{"nodes": 2}]}}
	g.severity == "medium"
	some h in gdr_topology.findings with input as object.union(level("LOC"), {"logs": {"messages": [far]}})
	h.severity == "medium"
	contains(h.message, "NCCL_NET_GDR_LEVEL=LOC")
	some i in gdr_topology.findings with input as {"links": {"virtual_topology": true}, "logs": {"messages": [far]}}
	contains(i.message, "NCCL_TOPO_FILE")
}

test_fires_channels if {
	some f in gdr_topology.findings with input as {"logs": {"messages": [said("nccl-gdr-nic-enabled", "x")], "transports": [channel(false)]}}
	contains(f.message, "although the NICs support it")
	count(f.evidence) == 2
}

test_fires_topology if {
	links := {"links": {"pairs": [nic("SYS")]}, "nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active"}]}}
	some f in gdr_topology.findings with input as links
	f.severity == "info"
	f.affects == ["0000:3b:00.0"]
	some g in gdr_topology.findings with input as object.union(links, {"logs": {"transports": [channel(false)]}})
	g.severity == "low"
}

test_silent if {
	count(gdr_topology.findings) == 0 with input as {"logs": {"messages": [far, near]}}
	count(gdr_topology.findings) == 0 with input as {"logs": {"messages": [far], "transports": [channel(true)]}}
	count(gdr_topology.findings) == 0 with input as {"links": {"pairs": [nic("SYS"), nic("PIX")]}, "nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active"}]}}
	count(gdr_topology.findings) == 0 with input as {"links": {"pairs": [nic("SYS")]}}
	count(gdr_topology.missing) == 0 with input as {"links": {"pairs": [nic("PIX")]}}
}

test_unresolvable if {
	count(gdr_topology.findings) == 0 with input as {}
	count(gdr_topology.missing) == 1 with input as {}
}

across(path, modules) := {
	"links": {"pairs": [nic(path)]},
	"nics": {"modules": modules},
	"logs": {"transports": [channel(false)]},
}

test_fires_where_each_nic_is_behind_the_processor if {
	some f in gdr_topology.findings with input as across("NODE", ["nvidia_peermem"])
	f.severity == "medium"
	contains(f.message, "NODE")
	some g in gdr_topology.findings with input as across("SYS", ["nv_peer_mem"])
	g.severity == "medium"
}

test_silent_where_a_nic_is_near_or_the_module_is_missing if {
	count(gdr_topology.findings) == 0 with input as across("PXB", ["nvidia_peermem"])
	count(gdr_topology.findings) == 0 with input as across("NODE", ["mlx5_ib"])
}

test_names_the_topology_file if {
	virtual := object.union(across("NODE", ["nvidia_peermem"]), {"links": {"pairs": [nic("NODE")], "virtual_topology": true}})
	some f in gdr_topology.findings with input as virtual
	f.remedies[0] == "nccl-topo-file"
	contains(f.message, "NCCL_TOPO_FILE")
}

# What a table of ib_write_bw shows of a far path is said once.
test_info_of_a_far_path if {
	some f in gdr_topology.findings with input as {
		"links": {"pairs": [nic("SYS")]},
		"benchmarks": [object.union(perftest("gpu", 31), {"points": [object.union(perftest("gpu", 31).points[0], {"b": nic("SYS").a, "a": nic("SYS").b, "threshold": 0.38})]})],
	}
	f.severity == "info"
}

test_not_applicable_without_a_gpu if {
	none := {"gpus": {"devices": []}, "links": {"pairs": []}}
	count(gdr_topology.missing) == 0 with input as none
	count(gdr_topology.not_applicable) == 1 with input as none
}

# perftest is a table of ib_write_bw over a port of 400 Gb/s.
perftest(memory, gbps) := {
	"tool": "perftest", "test": "RDMA_Write BW", "what": "network", "memory": memory, "source": "bw.txt", "line": 4, "complete": true,
	"points": [{"a": "mlx5_0", "bytes": 65536, "gbps": gbps, "expected_gbps": 50, "threshold": 0.8, "basis": "the port of mlx5_0", "line": 9}],
}

test_fires_slow_from_gpu if {
	some f in gdr_topology.findings with input as {"benchmarks": [perftest("gpu", 12)]}
	f.confidence == "possible"
	contains(f.message, "96 Gb/s from a GPU's memory")
	f.evidence[0].source == "bw.txt:9"
}

test_fires_slow_from_gpu_only if {
	some f in gdr_topology.findings with input as {"benchmarks": [perftest("gpu", 12), perftest("host", 48)]}
	f.confidence == "likely"
}

# Slow from both is the network's or the slot's, not that of the way to the GPU.
test_silent_slow_from_both if {
	count(gdr_topology.findings) == 0 with input as {"benchmarks": [perftest("gpu", 12), perftest("host", 13)]}
	count(gdr_topology.findings) == 0 with input as {"benchmarks": [perftest("gpu", 47)]}
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
	some g in gdr_topology.findings with input as over("SYS")
	g.remedies == ["disable-acs", "iommu-pt", "nccl-topo-file"]
	some h in gdr_topology.findings with input as object.union(over("SYS"), level("SYS"))
	h.remedies == ["disable-acs", "iommu-pt", "set-net-gdr-level"]
	h.params.gdr_level == "PXB"
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
