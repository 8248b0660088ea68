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

env(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]}}

said(id, fields) := {"logs": {"messages": [{
	"id": id, "program": "nccl", "role": "cause", "text": "x", "fields": fields, "source": "a.log", "line": 1, "order": 4, "count": 1,
}]}}

run(name, rest) := object.union({"kind": "docker-run", "name": name, "gpus": 2, "network": "host", "source": "run.txt", "line": 1}, rest)
started(ls) := {"launches": ls}

one := started([run("w0", {"gpus": 1})])
refused := said("nccl-uds-send-failed", {"errno": "111"})

# ranks are two processes, and channel is how NCCL connects them.
ranks(pids) := {"processes": [{"host": "n1", "pid": pid, "device": i} | some i, pid in pids]}
channel(kind) := {"transports": [{"kind": kind, "a": 0, "b": 1, "source": "a.log", "line": 2}]}
broken(pids, kind) := {"logs": object.union_n([ranks(pids), channel(kind), said("nccl-cuda-invalid-argument", {}).logs])}

graded(document) := {[f.grade, object.get(f, "severity", ""), object.get(f, "confidence", "")] |
	some f in ipc_namespace.findings with input as object.union_n(document)
}

test_findings if {
	every row in [
		[[pod(1), env("LOCAL_WORLD_SIZE", "8")], ["part", "medium", ""]],
		[[pod(1), env("LOCAL_WORLD_SIZE", "1")], ["part", "low", ""]],
		[[said("nccl-diag-p2p-import", {"from": "0", "to": "1", "handle": "LEGACY_CUDA_IPC"})], ["walled", "", ""]],
		[[refused], ["unreached", "", "possible"]],
		[[broken([1, 1], "p2p-ipc")], ["secluded", "", ""]],
		[[refused, one], ["unreached", "", "likely"]],
		[[refused, {"container": {"inside": true}}], ["unreached", "", "likely"]],
	] {
		graded(row[0]) == {row[1]}
	}
}

test_silent if {
	every document in [
		[pod(1), {"container": {"inside": false}}],
		[said("nccl-diag-p2p-import", {"from": "0", "to": "1", "handle": "CUMEM_FABRIC"})],
		[said("nccl-uds-send-failed", {"errno": "104"})],
		[broken([1, 2], "p2p-ipc")],
		[broken([1, 1], "p2p-direct")],
		[{"logs": object.union(ranks([1, 1]), channel("p2p-ipc"))}],
		# A rank that had failed before no longer listens.
		[{"logs": {"messages": array.concat(refused.logs.messages, [object.union(said("torch-out-of-memory", {}).logs.messages[0], {"order": 1})])}}],
	] {
		graded(document) == set()
	}
}

test_unresolvable if ipc_namespace.asks == {"gpus.devices"} with input as pod(1)
