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

graded(document) := {[f.grade, object.get(f, "severity", ""), object.get(f, "confidence", "")] | some f in memlock_limit.findings with input as document}

only(document) := f if {
	found := memlock_limit.findings with input as document
	count(found) == 1
	some f in found
}

test_limits if {
	every row in [
		[machine({"memlock_soft_bytes": 268435456}), ["limit", "medium", "possible"]],
		# In a user namespace the capability does not lift the limit.
		[machine({"capabilities": ["IPC_LOCK"], "private_user": true}), ["limit", "high", "likely"]],
	] {
		graded(row[0]) == {row[1]}
	}
	every document in [
		machine({"memlock_soft_bytes": 67108864000}),
		object.union(machine({}), {"gpus": {"devices": []}}),
	] {
		graded(document) == set()
	}
	f := only(machine({"mlock": "ENOMEM", "memlock_hard_bytes": -1}))
	[count(f.evidence), f.about.hard] == [2, ["unlimited"]]
	only(machine({"runtime": "enroot"})).remedies == ["raise-memlock-limits"]
}

registering(soft, call, errno) := object.union(machine({"memlock_soft_bytes": soft}), {"gpudirect": {"nics": [
	{"device": "mlx5_0", "host": {"outcome": "refused", "call": call, "errno": errno, "bytes": 2097152}, "gpus": []},
]}})

test_registration if {
	graded(registering(-1, "ibv_reg_mr", "ENOMEM")) == {["registration", "medium", "likely"]}
	graded(registering(65536, "ibv_reg_mr", "EPERM")) == {["limit", "high", "likely"]}
	graded(registering(65536, "ibv_open_device", "ENOMEM")) == {["limit", "high", "likely"]}
}
