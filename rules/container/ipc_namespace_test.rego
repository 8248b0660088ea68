package gpudoctor.rules.ipc_namespace_test

import data.gpudoctor.rules.ipc_namespace

# pod is a container that was given so many of eight GPUs.
pod(given) := {
	"gpus": {"nvml": "ok", "devices": [g |
		some i in numbers.range(1, 8)
		g := {"address": sprintf("0000:%02x:00.0", [i]), "vendor": "nvidia", "in_pci": true, "in_nvml": i <= given}
	]},
	"container": {"inside": true, "runtime": "kubernetes", "private_ipc": true},
	"env": {"variables": []},
}

with_variable(document, name, value) := object.union(document, {"env": {"variables": [{
	"name": name,
	"value": value,
	"source": "environment",
	"effective": true,
}]}})

test_fires_for_one_of_eight if {
	some f in ipc_namespace.findings with input as pod(1)
	f.severity == "low"
	contains(f.message, "1 of the machine's 8 GPUs")
}

test_medium_when_the_job_has_more_ranks if {
	some f in ipc_namespace.findings with input as with_variable(pod(1), "LOCAL_WORLD_SIZE", "8")
	f.severity == "medium"
	some g in ipc_namespace.findings with input as with_variable(pod(1), "NCCL_HOSTID", "node7")
	g.severity == "medium"
	contains(g.message, "NCCL_HOSTID=node7")
	some h in ipc_namespace.findings with input as with_variable(pod(1), "LOCAL_WORLD_SIZE", "1")
	h.severity == "low"
}

test_silent_with_all_gpus if {
	count(ipc_namespace.findings) == 0 with input as pod(8)
	count(ipc_namespace.not_applicable) == 1 with input as pod(8)
	count(ipc_namespace.missing) == 0 with input as pod(8)
}

test_silent_when_shared if {
	count(ipc_namespace.findings) == 0 with input as object.union(pod(1), {"container": {"private_ipc": false}})
}

test_silent_outside if {
	document := object.union(pod(1), {"container": {"inside": false}})
	count(ipc_namespace.findings) == 0 with input as document
	count(ipc_namespace.not_applicable) == 1 with input as document
}

test_unresolvable_without_container if {
	count(ipc_namespace.missing) == 1 with input as {}
	count(ipc_namespace.missing) == 1 with input as json.remove(pod(1), ["container/private_ipc"])
	count(ipc_namespace.missing) == 1 with input as json.remove(pod(1), ["container/inside"])
	count(ipc_namespace.missing) == 1 with input as json.remove(pod(1), ["gpus"])
}

over_network := {"logs": {"messages": [], "transports": [{"kind": "net", "network": "Socket", "same_host": true, "channels": 4, "a": 0, "b": 1, "source": "a.log", "line": 7}]}}

test_fires_for_the_network_inside_a_host if {
	some f in ipc_namespace.findings with input as over_network
	f.severity == "medium"
	contains(f.message, "4 channels")
	contains(f.message, "Socket")
}

test_silent_where_shm_is_off if {
	count(ipc_namespace.findings) == 0 with input as with_variable(over_network, "NCCL_SHM_DISABLE", "1")
	count(ipc_namespace.findings) == 0 with input as with_variable(over_network, "NCCL_P2P_DISABLE", "1")
}

# Containers side by side, and channels of which the log does not name the hosts.

run(name, rest) := object.union({"kind": "docker-run", "name": name, "gpus": 2, "network": "host", "source": "run.txt", "line": 1}, rest)

side_by_side(launches) := {
	"launches": launches,
	"logs": {"messages": [], "transports": [{"kind": "net", "network": "Socket", "channels": 2, "a": 0, "b": 1, "source": "a.log", "line": 3}]},
}

test_fires_for_containers_side_by_side if {
	some f in ipc_namespace.findings with input as side_by_side([run("w0", {}), run("w1", {"line": 2})])
	f.severity == "medium"
	f.confidence == "likely"
	contains(f.message, "Socket")
	count(f.evidence) == 3
}

test_silent_for_containers_that_share if {
	count(ipc_namespace.findings) == 0 with input as side_by_side([run("w0", {"ipc": "host"}), run("w1", {"ipc": "host", "line": 2})])
	count(ipc_namespace.findings) == 0 with input as side_by_side([run("w0", {"mounts": ["/dev/shm:/dev/shm"]}), run("w1", {"mounts": ["/dev/shm:/dev/shm"]})])
	count(ipc_namespace.findings) == 0 with input as side_by_side([run("w0", {})])
	count(ipc_namespace.findings) == 0 with input as side_by_side([run("w0", {"source": "node0.txt"}), run("w1", {"source": "node1.txt"})])
}

said(id, fields) := {"id": id, "program": "nccl", "role": "cause", "text": "x", "fields": fields, "source": "a.log", "line": 1, "order": 4, "count": 1}

one := {"kind": "docker-run", "name": "w0", "gpus": 1, "source": "a.txt", "line": 1}

test_fires_for_containers_of_one_gpu if {
	every m in [said("nccl-ipc-open-failed", {"error": "101"}), said("nccl-cuda-invalid-argument", {"file": "transport/p2p.cc"})] {
		some f in ipc_namespace.findings with input as {"logs": {"messages": [m]}, "launches": [one]}
		f.severity == "critical"
		contains(f.message, "w0")
		count(ipc_namespace.findings) == 0 with input as {"logs": {"messages": [m]}, "launches": [object.union(one, {"gpus": -1})]}
	}
	count(ipc_namespace.findings) == 0 with input as {"logs": {"messages": [said("nccl-cuda-invalid-argument", {"file": "transport/nvls.cc"})]}, "launches": [one]}
	some ucx in ipc_namespace.findings with input as {"logs": {"messages": [said("ucx-ipc-open-failed", {"error": "invalid argument"})]}, "launches": [one]}
	[ucx.severity, ucx.confidence, ucx.remedies] == ["critical", "likely", ["share-ipc", "fix-visible-devices"]]
	contains(ucx.message, "UCX opens")
	by_name := object.union(object.remove(one, ["gpus"]), {"variables": {"NVIDIA_VISIBLE_DEVICES": "1"}})
	count(ipc_namespace.findings) == 1 with input as {"logs": {"messages": [said("nccl-ipc-open-failed", {})]}, "launches": [by_name]}
}

test_fires_own_check_of_nccl if {
	some handle in ["LEGACY_CUDA_IPC", "CUMEM_POSIX_FD"]
	some f in ipc_namespace.findings with input as {"logs": {"messages": [said("nccl-diag-p2p-import", {"from": "0", "to": "1", "handle": handle})]}}
	contains(f.message, "GPU 0 to 1")
}

test_silent_own_check_of_nccl if {
	count(ipc_namespace.findings) == 0 with input as {"logs": {"messages": [said("nccl-diag-p2p-import", {"from": "0", "to": "1", "handle": "CUMEM_FABRIC"})]}}
}

refused := object.union(said("nccl-uds-send-failed", {"path": "/tmp/nccl-socket-3-5f1a", "error": "Connection refused", "errno": "111"}), {"text": "UDS: Sending data over socket failed : Connection refused (111)"})

test_fires_for_a_unix_socket if {
	some f in ipc_namespace.findings with input as {"logs": {"messages": [refused]}}
	f.subject == "network namespace"
	f.confidence == "possible"
	f.params.network == "host"
	some g in ipc_namespace.findings with input as {"logs": {"messages": [refused]}, "launches": [one]}
	g.confidence == "likely"
	some h in ipc_namespace.findings with input as {"logs": {"messages": [refused]}, "container": {"inside": true}}
	h.confidence == "likely"
}

test_silent_for_a_unix_socket_of_a_rank_that_failed if {
	earlier := object.union(said("torch-out-of-memory", {}), {"order": 1})
	count(ipc_namespace.findings) == 0 with input as {"logs": {"messages": [earlier, refused]}}
	count(ipc_namespace.findings) == 0 with input as {"logs": {"messages": [said("nccl-uds-send-failed", {"errno": "104"})]}}
}
