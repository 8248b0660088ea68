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
