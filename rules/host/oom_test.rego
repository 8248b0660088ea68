package gpudoctor.rules.oom_test

import data.gpudoctor.rules.oom

message(id, role, order) := {"id": id, "program": "x", "role": role, "text": id, "source": "a.log", "line": order + 1, "order": order, "count": 1}

test_fires_for_a_gpu if {
	some f in oom.findings with input as {"logs": {"messages": [message("torch-out-of-memory", "cause", 0)]}}
	f.subject == "GPU memory"
}

# Below NCCL's transport by shared memory it is host memory that was asked for: rule cumem-host tells.
test_silent_for_host_memory_of_cumem if {
	failed := object.union(message("nccl-cuda-out-of-memory", "cause", 2), {"fields": {"file": "include/alloc.h"}})
	trace := message("nccl-shm-trace", "setting", 3)
	software := [{"name": "nccl", "version": "2.26.2", "manager": "log", "source": "a.log", "line": 1}]
	count(oom.findings) == 0 with input as {"software": software, "logs": {"messages": [failed, trace]}}
}
