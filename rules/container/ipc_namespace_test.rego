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

net(same_host) := {"logs": {"transports": [object.union(
	{"kind": "net", "network": "Socket", "channels": 4, "a": 0, "b": 1, "source": "a.log", "line": 7},
	same_host,
)]}}

run(name, rest) := object.union({"kind": "docker-run", "name": name, "gpus": 2, "network": "host", "source": "run.txt", "line": 1}, rest)
started(ls) := {"launches": ls}

one := started([run("w0", {"gpus": 1})])
refused := said("nccl-uds-send-failed", {"errno": "111"})

graded(document) := {[f.grade, object.get(f, "severity", ""), object.get(f, "confidence", "")] |
	some f in ipc_namespace.findings with input as object.union_n(document)
}

test_findings if {
	every row in [
		[[pod(1), env("LOCAL_WORLD_SIZE", "8")], ["part", "medium", ""]],
		[[pod(1), env("LOCAL_WORLD_SIZE", "1")], ["part", "low", ""]],
		[[net({"same_host": true})], ["over-network", "", ""]],
		[[net({}), started([run("w0", {}), run("w1", {"line": 2})])], ["over-network", "", ""]],
		[[said("nccl-diag-p2p-import", {"from": "0", "to": "1", "handle": "LEGACY_CUDA_IPC"})], ["walled", "", ""]],
		[[refused], ["unreached", "", "possible"]],
		[[refused, one], ["unreached", "", "likely"]],
		[[refused, {"container": {"inside": true}}], ["unreached", "", "likely"]],
	] {
		graded(row[0]) == {row[1]}
	}
}

test_silent if {
	every document in [
		[pod(1), {"container": {"inside": false}}],
		[net({"same_host": true}), env("NCCL_SHM_DISABLE", "1")],
		[net({"same_host": true}), env("NCCL_P2P_DISABLE", "1")],
		[net({}), started([run("w0", {"ipc": "host"}), run("w1", {"ipc": "host"})])],
		[net({}), started([run("w0", {"mounts": ["/dev/shm:/dev/shm"]}), run("w1", {"mounts": ["/dev/shm:/dev/shm"]})])],
		[net({}), started([run("w0", {})])],
		[net({}), started([run("w0", {"source": "node0.txt"}), run("w1", {"source": "node1.txt"})])],
		[said("nccl-diag-p2p-import", {"from": "0", "to": "1", "handle": "CUMEM_FABRIC"})],
		[said("nccl-uds-send-failed", {"errno": "104"})],
		# A rank that had failed before no longer listens.
		[{"logs": {"messages": array.concat(refused.logs.messages, [object.union(said("torch-out-of-memory", {}).logs.messages[0], {"order": 1})])}}],
	] {
		graded(document) == set()
	}
}

test_containers_of_one_gpu if {
	by_name := started([object.remove(run("w0", {"variables": {"NVIDIA_VISIBLE_DEVICES": "1"}}), ["gpus"])])
	every row in [
		[said("nccl-cuda-invalid-argument", {"file": "transport/p2p.cc"}), one, "NCCL"],
		[said("ucx-ipc-open-failed", {"error": "invalid argument"}), one, "UCX"],
		[said("nccl-ipc-open-failed", {}), by_name, "NCCL"],
	] {
		found := ipc_namespace.findings with input as object.union(row[0], row[1])
		{[f.id, f.about.opener, array.slice(f.remedies, 0, 2)] | some f in found} == {["one-gpu-each", row[2], ["share-ipc", "fix-visible-devices"]]}
	}
}

test_unresolvable if {
	every document in [
		{},
		json.remove(pod(1), ["container/private_ipc"]),
		json.remove(pod(1), ["gpus"]),
	] {
		count(ipc_namespace.missing) == 1 with input as document
	}
}
