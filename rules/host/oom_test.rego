package gpudoctor.rules.oom_test

import data.gpudoctor.rules.oom

message(id, role, order) := {"id": id, "program": "x", "role": role, "text": id, "source": "a.log", "line": order + 1, "order": order, "count": 1}

given(messages) := {"logs": {"messages": messages}}

found(messages) := {[f.subject, f.severity, f.confidence] | some f in oom.findings with input as given(messages)}

test_fires_for_a_gpu if {
	found([message("torch-out-of-memory", "cause", 0)]) == {["GPU memory", "critical", "confirmed"]}
}

test_fires_for_the_host if {
	found([message("slurm-out-of-memory", "cause", 0), message("kernel-out-of-memory", "cause", 1), message("process-killed", "category", 2)]) == {["host memory", "critical", "confirmed"]}
}

# What the kernel wrote may be of another day.
test_fires_for_the_kernel if {
	found([message("kernel-out-of-memory", "cause", 0)]) == {["host memory", "medium", "likely"]}
	found([message("kernel-out-of-memory", "cause", 0), message("exit-killed", "category", 1)]) == {["host memory", "critical", "confirmed"]}
}

test_fires_for_killed if {
	found([message("process-killed", "category", 0)]) == {["host memory", "medium", "possible"]}
}

test_order if {
	some f in oom.findings with input as given([message("torch-out-of-memory", "cause", 3)])
	f.order == 3
}

test_silent_for_others if {
	found([message("nccl-shm-no-space", "cause", 0)]) == set()
}

test_unresolvable_without_logs if {
	count(oom.missing) == 1 with input as {}
	count(oom.findings) == 0 with input as {}
}

# Below NCCL's transport by shared memory it is host memory that was asked for:
# rule cumem-host tells.
test_silent_for_host_memory_of_cumem if {
	failed := object.union(message("nccl-cuda-out-of-memory", "cause", 2), {"fields": {"file": "include/alloc.h"}})
	trace := message("nccl-shm-trace", "setting", 3)
	software := [{"name": "nccl", "version": "2.26.2", "manager": "log", "source": "a.log", "line": 1}]
	count(oom.findings) == 0 with input as {"software": software, "logs": {"messages": [failed, trace]}}
	count(oom.findings) == 1 with input as {"software": software, "logs": {"messages": [failed]}}
}

# PyTorch repeats NCCL's last warning without CUDA's reason.
test_fires_for_memory_that_nccl_did_not_get if {
	found([message("nccl-gpu-alloc-failed", "category", 1)]) == {["GPU memory", "high", "likely"]}
	found([message("nccl-gpu-alloc-failed", "category", 1), message("nccl-cuda-illegal-address", "cause", 0)]) == set()
}
