package gpudoctor.rules.memlock_limit_test

import data.gpudoctor.rules.memlock_limit

machine(changes) := {
	"gpus": {"nvml": "ok", "devices": [{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true}]},
	"container": object.union(
		{
			"inside": true, "memlock_soft_bytes": 8388608, "memlock_hard_bytes": 8388608, "capabilities": ["CHOWN"], "private_user": false,
			"device_nodes": [{"path": "/dev/nvidia0", "access": "rw"}, {"path": "/dev/infiniband/uverbs0", "access": "rw"}],
		},
		changes,
	),
}

attempt(errno, bytes) := {"attempts": {"locked_memory": {"outcome": "refused", "call": "mlock2", "errno": errno, "bytes": bytes}}}
graded(document) := {[f.grade, object.get(f, "severity", ""), object.get(f, "confidence", "")] | some f in memlock_limit.findings with input as document}

only(document) := f if {
	found := memlock_limit.findings with input as document
	count(found) == 1
	some f in found
}

test_limits if {
	every row in [
		[machine({"memlock_soft_bytes": 268435456}), ["limit", "medium", "possible"]],
		[object.union(machine({}), {"gpus": {"devices": []}}), ["limit", "low", "likely"]],
		# In a user namespace the capability does not lift the limit.
		[machine({"capabilities": ["IPC_LOCK"], "private_user": true}), ["limit", "high", "likely"]],
		[machine(attempt("ENOMEM", 67108864)), ["limit", "high", "confirmed"]],
	] {
		graded(row[0]) == {row[1]}
	}
	every document in [
		machine({"memlock_soft_bytes": 67108864000}),
	] {
		graded(document) == set()
	}
	f := only(machine({"mlock": "ENOMEM", "memlock_hard_bytes": -1}))
	[count(f.evidence), f.about.hard] == [2, ["unlimited"]]
	only(machine({"runtime": "enroot"})).remedies == ["raise-memlock-limits"]
	only(machine({"runtime": "kubernetes"})).remedies == ["add-ipc-lock", "raise-memlock"]
}

message(id, fields) := {"logs": {"messages": [{
	"id": id, "program": "openmpi", "role": "category", "text": "Cannot allocate memory", "fields": fields,
	"source": "app.log", "line": 3, "order": 1, "count": 1, "ranks": 1,
}]}}

limit(n) := {"container": {"memlock_soft_bytes": n}}

test_failures if {
	every row in [
		[message("ibv-no-memory", {}), limit(8388608), "confirmed", 8388608],
		[message("nccl-ib-register-no-memory", {}), limit(-1), "possible", -1],
		[message("ibv-no-memory", {}), {"launches": [{"memlock_bytes": -1}]}, "possible", ""],
	] {
		f := only(object.union(row[0], row[1]))
		[f.id, f.confidence, count(f.messages), object.get(f.about, "soft", "")] == ["refused", row[2], 1, row[3]]
	}
	every row in [
		[message("mpi-queue-refused", {}), {}, "likely"],
		[message("nccl-ib-create-failed", {}), limit(65536), "likely"],
		[message("ucx-worker-failed", {}), limit(65536), "likely"],
		[message("nccl-ib-register-failed", {}), limit(65536), "likely"],
	] {
		graded(object.union(row[0], row[1])) == {["refused", "critical", row[2]]}
	}
	every document in [
		message("nccl-ib-create-failed", {"error": "Invalid argument"}),
		message("ucx-worker-failed", {}),
		object.union(message("mpi-queue-refused", {}), limit(-1)),
	] {
		graded(document) == set()
	}
	only(object.union(message("ibv-no-memory", {}), {"container": {"inside": true, "runtime": "docker"}})).remedies == ["raise-memlock", "add-ipc-lock"]
}

registering(soft, call, errno) := object.union(machine({"memlock_soft_bytes": soft}), {"gpudirect": {"nics": [
	{"device": "mlx5_0", "host": {"outcome": "refused", "call": call, "errno": errno, "bytes": 2097152}, "gpus": []},
]}})

test_registration if {
	graded(registering(-1, "ibv_reg_mr", "ENOMEM")) == {["registration", "medium", "likely"]}
	graded(registering(65536, "ibv_reg_mr", "EPERM")) == {["limit", "high", "likely"]}
	graded(registering(65536, "ibv_open_device", "ENOMEM")) == {["limit", "high", "likely"]}
}
