package gpudoctor.lib.conditions_job_test

import data.gpudoctor.lib.conditions_job

# Containers.

test_container_told if {
	"container_told" in conditions_job.holds with input as {"container": {"inside": true}}
	"container_told" in conditions_job.holds with input as {"launches": [{"kind": "docker-run"}]}
	not "container_told" in conditions_job.holds with input as {"launches": [{"kind": "slurm"}]}
}

test_platform if "platform_chosen" in conditions_job.holds with input as setting("JAX_PLATFORMS", "cpu")

# CPUs near a GPU.

heard(rows) := {"logs": {"messages": [object.union({"role": "setting", "source": "a.log"}, row) | some row in rows]}}

near(cpus) := heard([{"id": "nccl-affinity-empty", "line": 1, "fields": {"near": cpus, "allowed": "0-7"}}])

test_affinity if {
	"affinity_set_before" in of(heard([{"id": "python-sets-affinity", "line": 4}, {"id": "python-invalid-argument", "line": 5}]))
	not "affinity_set_before" in of(heard([{"id": "python-sets-affinity", "line": 40}, {"id": "python-invalid-argument", "line": 4}]))
	"cpus_near_gpu_known" in of(near("48-95"))
	not "cpus_near_gpu_known" in of(near(" "))
	"gpu_job" in of({"benchmarks": [{"tool": "nccl-tests"}]})
}

# Which GPUs a program may use.

# setting is a variable in force.
setting(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]}}

# of are the conditions that hold for facts.
of(facts) := names if names := conditions_job.holds with input as facts
said(id, role) := {"logs": {"messages": [{"id": id, "role": role, "program": "x", "text": "said", "source": "a.log", "line": 1, "order": 0}]}}

test_several_mig_instances if {
	"several_mig_instances" in of(setting("CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b"))
	"several_mig_instances" in of({"gpus": {"devices": [{"address": "GPU0", "vendor": "nvidia", "mig": true}]}})
	not "several_mig_instances" in of(setting("CUDA_VISIBLE_DEVICES", "MIG-a"))
}

test_cause_stated if {
	"cause_stated" in of(said("kfd-not-accessible", "cause"))
	not "cause_stated" in of(said("rocblas-no-kernels", "cause"))
	not "cause_stated" in of(said("cuda-no-device", "category"))
}

test_network_named if {
	"network_named" in of(setting("NCCL_NET_PLUGIN", "aws-ofi"))
	not "network_named" in of(setting("NCCL_NET_GDR_LEVEL", "PIX"))
}

# The limits and the memory of processes.

test_shm_small if {
	every document in [
		{"container": {"shm": {"size_bytes": 67108864}}},
		{"container": {"shm": {"size_bytes": 4294967296, "free_bytes": 0}}},
		{"launches": [{"kind": "docker-run", "gpus": -1, "source": "run.txt", "line": 1}]},
		said("ngc-shm-default", "setting"),
	] {
		"shm_small" in of(document)
	}
	"shm_full" in of({"container": {"shm": {"size_bytes": 4294967296, "free_bytes": 0}}})
	not "shm_small" in of({"container": {"shm": {"size_bytes": 4294967296, "free_bytes": 4294967296}}})
	"system_error_explained" in of({"logs": {"messages": [{"id": "shm-no-space", "role": "cause", "program": "linux"}]}})
	not "system_error_explained" in of({"logs": {"messages": [{"id": "nccl-unhandled-system-error", "role": "category", "program": "nccl"}]}})
}

test_memlock if {
	{"memlock_low", "memlock_limit_known"} & of({"container": {"memlock_soft_bytes": 65536}}) == {"memlock_low", "memlock_limit_known"}
	not "memlock_low" in of({"container": {"memlock_soft_bytes": -1}})
	"memlock_low" in of(heard([{"id": "ibv-no-memory", "fields": {"kbytes": "8192"}}]))
	not "memlock_low" in of(heard([{"id": "ibv-no-memory", "fields": {"kbytes": "8388608"}}]))
	"memlock_unlimited" in of({"container": {"memlock_soft_bytes": -1}})
	"memlock_unlimited" in of({"launches": [{"memlock_bytes": -1}]})
}

test_python_killed if {
	killed := {"id": "kernel-out-of-memory", "role": "cause", "fields": {"task": "python3"}, "text": "x", "order": 0}
	waited := {"id": "torch-watchdog-timeout", "role": "category", "fields": {}, "text": "x", "order": 1}
	"python_killed" in of({"logs": {"messages": [killed, waited]}})
	not "python_killed" in of({"logs": {"messages": [object.union(killed, {"fields": {"task": "rsync"}}), waited]}})
}
