package gpudoctor.lib.locked_memory_test

import data.gpudoctor.lib.locked_memory

process(changes) := {"container": object.union({"memlock_soft_bytes": 65536, "capabilities": [], "private_user": false}, changes)}

test_low if {
	locked_memory.low with input as process({})
	not locked_memory.low with input as process({"memlock_soft_bytes": -1})
	not locked_memory.low with input as process({"capabilities": ["IPC_LOCK"]})
	locked_memory.low with input as process({"capabilities": ["IPC_LOCK"], "private_user": true})
}

test_tried if {
	locked_memory.tried == [] with input as process({"mlock": "ok"})
	locked_memory.tried[0].fact == "container.mlock" with input as process({"mlock": "EPERM"})
	refused := {"attempts": {"locked_memory": {"outcome": "refused", "call": "mlock2", "errno": "ENOMEM", "bytes": 8388608}}}
	locked_memory.tried[0].fact == "container.attempts.locked_memory" with input as process(refused)
}

test_hard_remark if {
	contains(locked_memory.hard_remark, "unlimited") with input as process({"memlock_hard_bytes": -1})
	locked_memory.hard_remark == "" with input as process({})
}

control(bytes) := {"gpudirect": {"nics": [{"device": "mlx5_0", "host": {"outcome": "ok", "bytes": bytes}, "gpus": []}]}}

test_lifted_for_a_nic if {
	not locked_memory.low with input as object.union(process({}), control(2097152))
	locked_memory.low with input as object.union(process({}), control(65536))
}
