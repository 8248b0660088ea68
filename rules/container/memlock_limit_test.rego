package gpudoctor.rules.memlock_limit_test

import data.gpudoctor.rules.memlock_limit

machine := {
	"gpus": {"nvml": "ok", "devices": [{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true}]},
	"container": {
		"inside": true,
		"memlock_soft_bytes": 8388608,
		"memlock_hard_bytes": 8388608,
		"capabilities": ["CHOWN", "KILL"],
		"private_user": false,
		"device_nodes": [
			{"path": "/dev/nvidia0", "access": "rw"},
			{"path": "/dev/infiniband/uverbs0", "access": "rw"},
		],
	},
}

with_container(changes) := object.union(machine, {"container": changes})

severities(document) := {f.severity | some f in memlock_limit.findings with input as document}

test_fires_with_rdma if {
	some f in memlock_limit.findings with input as machine
	f.severity == "high"
	f.confidence == "likely"
	contains(f.message, "8 MiB")
}

test_names_a_failed_trial if {
	some f in memlock_limit.findings with input as with_container({"mlock": "ENOMEM", "memlock_hard_bytes": -1})
	count(f.evidence) == 2
	contains(f.message, "the hard limit is unlimited")
}

test_tight_is_medium if {
	some f in memlock_limit.findings with input as with_container({"memlock_soft_bytes": 268435456})
	f.severity == "medium"
	f.confidence == "possible"
}

test_low_without_gpus if {
	severities(object.union(machine, {"gpus": {"devices": []}})) == {"low"}
}

test_silent_when_unlimited if severities(with_container({"memlock_soft_bytes": -1})) == set()

test_silent_when_large if severities(with_container({"memlock_soft_bytes": 67108864000})) == set()

test_silent_with_ipc_lock if severities(with_container({"capabilities": ["IPC_LOCK"]})) == set()

# In a user namespace the capability does not lift the limit.
test_fires_with_ipc_lock_of_a_user_namespace if {
	severities(with_container({"capabilities": ["IPC_LOCK"], "private_user": true})) == {"high"}
}

# NCCL on one machine without RDMA needs no locked memory.
test_silent_without_rdma if {
	document := with_container({"device_nodes": [{"path": "/dev/nvidia0", "access": "rw"}], "memlock_soft_bytes": 65536})
	severities(document) == set()
	count(memlock_limit.not_applicable) == 1 with input as document
}

test_unresolvable_without_container if {
	count(memlock_limit.missing) == 1 with input as {}
	count(memlock_limit.findings) == 0 with input as {}
}

test_unresolvable_without_nodes if {
	count(memlock_limit.missing) == 1 with input as json.remove(machine, ["container/device_nodes"])
	count(memlock_limit.missing) == 1 with input as json.remove(machine, ["container/memlock_soft_bytes"])
	enough := json.remove(with_container({"memlock_soft_bytes": -1}), ["container/device_nodes"])
	count(memlock_limit.missing) == 0 with input as enough
	large := json.remove(with_container({"memlock_soft_bytes": 67108864000}), ["container/device_nodes"])
	count(memlock_limit.missing) == 0 with input as large
}

remedies(document) := f.remedies if some f in memlock_limit.findings with input as document

test_advice_fits_the_place if {
	remedies(machine) == ["raise-memlock", "add-ipc-lock"]
	remedies(with_container({"inside": false})) == ["raise-memlock-limits"]
	remedies(with_container({"runtime": "enroot"})) == ["raise-memlock-limits"]
}
