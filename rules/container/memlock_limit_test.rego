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
	document := with_container({"device_nodes": [{"path": "/dev/nvidia0", "access": "rw"}]})
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

refusal(id, fields) := {"logs": {"messages": [{
	"id": id, "program": "libibverbs", "role": "cause", "text": "ibv_create_cq: Cannot allocate memory", "fields": fields,
	"source": "app.log", "line": 3, "order": 1, "count": 1, "ranks": 1,
}]}}

limit(n) := {"container": {"memlock_soft_bytes": n}}

test_fires_refused if {
	some f in memlock_limit.findings with input as refusal("ibv-no-memory", {})
	f.severity == "critical"
	f.confidence == "likely"
	f.order == 1
	some g in memlock_limit.findings with input as object.union(refusal("ibv-no-memory", {}), limit(8388608))
	g.confidence == "confirmed"
	count(g.evidence) == 2
	some h in memlock_limit.findings with input as object.union(refusal("nccl-ib-register-no-memory", {}), limit(-1))
	h.confidence == "possible"
	some i in memlock_limit.findings with input as object.union(refusal("ibv-no-memory", {}), {"launches": [{"memlock_bytes": -1}]})
	i.confidence == "possible"
	some j in memlock_limit.findings with input as refusal("ibv-no-memory", {"kbytes": "64"})
	contains(j.message, "64 KiB")
	j.confidence == "confirmed"
	some k in memlock_limit.findings with input as refusal("ibv-memlock-warning", {})
	k.confidence == "confirmed"
	count(memlock_limit.missing) == 0 with input as refusal("ibv-no-memory", {})
}

test_fires_refused_in_container if {
	some f in memlock_limit.findings with input as object.union(refusal("ibv-no-memory", {}), {"container": {"inside": true, "runtime": "docker"}})
	f.remedies == ["raise-memlock", "add-ipc-lock"]
}

test_fires_limit_in_a_text if {
	some f in memlock_limit.findings with input as object.union(limit(65536), {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active"}]}})
	f.severity == "medium"
	some g in memlock_limit.findings with input as object.union(limit(268435456), {"logs": {"networks": [{"name": "IB"}]}})
	g.severity == "low"
	count(memlock_limit.findings) == 0 with input as limit(65536)
	count(memlock_limit.findings) == 0 with input as object.union(limit(65536), {"logs": {"networks": [{"name": "Socket"}]}})
}

# Lines that do not give the kernel's reason.

unexplained(id, fields) := {"logs": {"messages": [{
	"id": id, "program": "openmpi", "role": "category", "text": "Failed to create a completion queue (CQ):", "fields": fields,
	"source": "a.log", "line": 3, "order": 1, "count": 1, "ranks": 1,
}]}}

test_possible_without_a_reason if {
	some f in memlock_limit.findings with input as unexplained("mpi-queue-refused", {"what": "completion queue"})
	f.severity == "high"
	f.confidence == "possible"
	f.order == 1
	some g in memlock_limit.findings with input as object.union(unexplained("nccl-ib-create-failed", {"call": "ibv_create_qp"}), {"container": {"memlock_soft_bytes": 65536}})
	g.confidence == "likely"
	some h in memlock_limit.findings with input as object.union(unexplained("ucx-worker-failed", {}), {"container": {"memlock_soft_bytes": 65536}})
	h.confidence == "likely"
}

test_a_buffer_without_a_reason if {
	some f in memlock_limit.findings with input as object.union(unexplained("nccl-ib-register-failed", {"call": "ibv_reg_mr"}), {"container": {"memlock_soft_bytes": 65536}})
	f.confidence == "likely"
	count(memlock_limit.findings) == 0 with input as unexplained("nccl-ib-register-failed", {"call": "ibv_reg_mr"})
}

test_silent_with_another_reason if {
	count(memlock_limit.findings) == 0 with input as unexplained("nccl-ib-create-failed", {"call": "ibv_create_qp", "error": "Invalid argument"})
	count(memlock_limit.findings) == 0 with input as unexplained("ucx-worker-failed", {})
	count(memlock_limit.findings) == 0 with input as object.union(unexplained("mpi-queue-refused", {}), {"container": {"memlock_soft_bytes": -1}})
}

without_rdma(changes) := with_container(object.union({"device_nodes": [{"path": "/dev/nvidia0", "access": "rw"}], "memlock_soft_bytes": 65536}, changes))

test_a_container_without_rdma_is_noted if {
	some f in memlock_limit.findings with input as without_rdma({})
	f.severity == "info"
	f.confidence == "likely"
	f.remedies == ["raise-memlock", "add-ipc-lock"]
	contains(f.message, "64 KiB in this container")
}

test_the_default_without_rdma_is_silent if severities(without_rdma({"memlock_soft_bytes": 8388608})) == set()

test_a_host_without_rdma_is_silent if severities(without_rdma({"inside": false})) == set()

test_an_attempt_confirms if {
	refused := {"attempts": {"locked_memory": {"outcome": "refused", "call": "mlock2", "errno": "ENOMEM", "bytes": 67108864}}}
	some f in memlock_limit.findings with input as with_container(refused)
	f.confidence == "confirmed"
	some e in f.evidence
	e.fact == "container.attempts.locked_memory"
}

test_refused_within_the_limit if {
	some f in memlock_limit.findings with input as with_container({
		"memlock_soft_bytes": -1,
		"attempts": {"locked_memory": {"outcome": "refused", "call": "mlock2", "errno": "EPERM", "bytes": 65536}},
	})
	f.severity == "medium"
	contains(f.message, "mlock2 gives EPERM")
}

test_a_pod_has_no_field_for_the_limit if {
	some f in memlock_limit.findings with input as with_container({"runtime": "kubernetes"})
	f.remedies == ["add-ipc-lock", "raise-memlock"]
}

registering(host) := {"gpudirect": {"nics": [{"device": "mlx5_0", "host": host, "gpus": []}]}}

denied_host := {"outcome": "refused", "call": "ibv_reg_mr", "errno": "ENOMEM", "bytes": 2097152}

beside_nic(soft) := {
	"container": {"memlock_soft_bytes": soft, "capabilities": [], "private_user": false, "device_nodes": [{"path": "/dev/infiniband/uverbs0", "access": "rw"}]},
	"transfers": {"devices": [{"address": "0000:19:00.0"}]},
}

test_registration_refused if {
	found := memlock_limit.findings with input as object.union(beside_nic(65536), registering(denied_host))
	{[f.id, f.severity, f.confidence] | some f in found} == {["registration", "high", "confirmed"]}
	unlimited := memlock_limit.findings with input as object.union(beside_nic(-1), registering(denied_host))
	{[f.id, f.severity, f.confidence] | some f in unlimited} == {["registration", "medium", "likely"]}
}

test_registration_elsewhere if {
	every host in [object.union(denied_host, {"errno": "EPERM"}), object.union(denied_host, {"call": "ibv_open_device"})] {
		found := memlock_limit.findings with input as object.union(beside_nic(65536), registering(host))
		count({f | some f in found; f.id == "registration"}) == 0
		count(found) == 1
	}
	count(memlock_limit.findings) == 0 with input as object.union(beside_nic(65536), registering({"outcome": "ok", "bytes": 2097152}))
}
