package gpudoctor.lib.conditions_job_test

import data.gpudoctor.lib.conditions_job

# Containers.

test_container_told if {
	"container_told" in conditions_job.holds with input as {"container": {"inside": true}}
	"container_told" in conditions_job.holds with input as {"launches": [{"kind": "docker-run"}]}
	not "container_told" in conditions_job.holds with input as {"launches": [{"kind": "slurm"}]}
}

# given are the conditions that hold for a launch of a container.
given(launch) := names if {
	names := conditions_job.holds with input as {"launches": [object.union({"kind": "docker-run", "name": "ds", "source": "run.txt", "line": 1}, launch)]}
}

test_container_without_rdma if {
	every launch in [{"devices": ["/dev/infiniband"]}, {"privileged": true}, {"resources": {"rdma/hca_shared": "1"}}, {"kind": "torchrun"}] {
		not "container_without_rdma" in given(launch)
	}
	"container_without_rdma" in given({"kind": "slurm", "image": "nvcr.io/x"})
	some ["container_without_rdma", fact] in conditions_job.shown with input as {"launches": [{"kind": "docker-run", "source": "run.txt", "line": 1}]}
	fact == {"fact": "launches[docker-run].devices", "value": "none", "source": "run.txt:1"}
}

test_container_without_imex if {
	"container_without_imex" in given({"gpus": 4})
	not "container_without_imex" in given({"devices": ["/dev/nvidia-caps-imex-channels/channel0"]})
	pod := {"launches": [{"kind": "kubernetes", "name": "w", "source": "pod.yaml", "line": 1}]}
	["container_without_imex", "the pod w"] in conditions_job.values with input as pod
	some ["container_without_imex", fact] in conditions_job.shown with input as pod
	fact.source == "pod.yaml:1"
}

test_platform if "platform_chosen" in conditions_job.holds with input as setting("JAX_PLATFORMS", "cpu")

# Which GPUs a program may use.

# setting is a variable in force.
setting(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]}}

# of are the conditions that hold for facts, and quoted the values.
of(facts) := names if names := conditions_job.holds with input as facts
quoted(facts) := object.union_n([{pair[0]: pair[1]} | some pair in pairs]) if pairs := conditions_job.values with input as facts
said(id, role) := {"logs": {"messages": [{"id": id, "role": role, "program": "x", "text": "said", "source": "a.log", "line": 1, "order": 0}]}}

test_gpus_hidden if {
	"gpus_hidden" in of(setting("CUDA_VISIBLE_DEVICES", "NoDevFiles,0"))
	not "gpus_hidden" in of(setting("CUDA_VISIBLE_DEVICES", "0,-1"))
}

test_ranks_outnumber_gpus if {
	crowded := object.union(setting("HIP_VISIBLE_DEVICES", "0,1,-1"), {"launches": [{"kind": "torchrun", "processes": 4}]})
	"ranks_outnumber_gpus" in of(crowded)
	[quoted(crowded).ranks, quoted(crowded).visible_gpus] == ["4", "2"]
	not "ranks_outnumber_gpus" in of(object.union(crowded, {"launches": [{"kind": "torchrun", "processes": 2}]}))
}

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

test_sandboxed if {
	boxed := {"launches": [{"kind": "docker-run", "runtime": "runsc", "source": "run.txt", "line": 1}]}
	"sandboxed" in of(boxed)
	contains(quoted(boxed).sandbox, "gVisor")
	some ["sandboxed", fact] in conditions_job.shown with input as boxed
	fact.value == "runsc"
	not "sandboxed" in of({"launches": [{"kind": "docker-run", "runtime": "nvidia"}]})
}

test_shm_small if {
	every document in [
		{"container": {"shm": {"size_bytes": 67108864}}},
		{"container": {"shm": {"size_bytes": 4294967296, "free_bytes": 0}}},
		{"launches": [{"kind": "docker-run", "gpus": -1, "source": "run.txt", "line": 1}]},
		said("ngc-shm-default", "setting"),
	] {
		"shm_small" in of(document)
	}
	not "shm_small" in of({"container": {"shm": {"size_bytes": 4294967296, "free_bytes": 4294967296}}})
	"system_error_explained" in of({"logs": {"messages": [{"id": "shm-no-space", "role": "cause", "program": "linux"}]}})
	not "system_error_explained" in of({"logs": {"messages": [{"id": "nccl-unhandled-system-error", "role": "category", "program": "nccl"}]}})
}

test_memlock if {
	{"memlock_low", "memlock_limit_known"} & of({"container": {"memlock_soft_bytes": 65536}}) == {"memlock_low", "memlock_limit_known"}
	not "memlock_low" in of({"container": {"memlock_soft_bytes": -1}})
	"memlock_unlimited" in of({"container": {"memlock_soft_bytes": -1}})
	"memlock_unlimited" in of({"launches": [{"memlock_bytes": -1}]})
}
