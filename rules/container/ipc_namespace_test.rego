package gpudoctor.rules.ipc_namespace_test

import data.gpudoctor.rules.ipc_namespace

# pod is a container that was given so many of eight GPUs.
pod(given) := {
	"gpus": {"nvml": "ok", "devices": [
	{"address": sprintf("0000:%02x:00.0", [i]), "vendor": "nvidia", "in_pci": true, "in_nvml": i <= given} |
		some i in numbers.range(1, 8)
	]},
	"container": {"inside": true, "runtime": "kubernetes", "private_ipc": true},
}

said(id, fields) := {"logs": {"messages": [{
	"id": id, "program": "nccl", "role": "cause", "text": "x", "fields": fields, "source": "a.log", "line": 1, "order": 4, "count": 1,
}]}}

# ranks are two processes, and channel is how NCCL connects them.
ranks(pids) := {"processes": [{"host": "n1", "pid": pid, "device": i} | some i, pid in pids]}
channel(kind) := {"transports": [{"kind": kind, "a": 0, "b": 1, "source": "a.log", "line": 2}]}
broken(pids, kind) := {"logs": object.union_n([ranks(pids), channel(kind), said("nccl-cuda-invalid-argument", {}).logs])}

# counted are ranks on one host that NCCL takes for those of so many machines.
counted(nodes) := {"logs": {
	"communicators": [{"library": "nccl", "ranks": 2, "started": 2, "nodes": nodes, "hosts": ["n1"]}],
	"transports": [{"kind": "net", "network": "Socket", "same_host": true, "channels": 4, "a": 0, "b": 1, "source": "a.log", "line": 2}],
}}

env(name) := {"env": {"variables": [{"name": name, "value": "1", "source": "a.log", "effective": true}]}}

graded(document) := {[f.grade, object.get(f, "severity", ""), object.get(f, "confidence", "")] |
	some f in ipc_namespace.findings with input as object.union_n(document)
}

test_findings if {
	every row in [
		[[pod(1)], ["part", "", ""]],
		[[broken([1, 1], "p2p-ipc")], ["secluded", "", ""]],
		[[counted(2)], ["apart", "", ""]],
	] {
		graded(row[0]) == {row[1]}
	}
}

test_silent if {
	every document in [
		[pod(1), {"container": {"inside": false}}],
		[broken([1, 2], "p2p-ipc")],
		[counted(1)],
		[counted(2), env("NCCL_HOSTID")],
		[counted(2), {"env": {"variables": [{"name": "NCCL_HOSTID", "value": id, "effective": false} | some id in ["a", "b"]]}}],
		[counted(2), env("NCCL_SHM_DISABLE")],
		[broken([1, 1], "p2p-direct")],
		[{"logs": object.union(ranks([1, 1]), channel("p2p-ipc"))}],
	] {
		graded(document) == set()
	}
}

test_unresolvable if ipc_namespace.asks == {"gpus.devices"} with input as pod(1)
