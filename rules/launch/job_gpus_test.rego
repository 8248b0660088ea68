package gpudoctor.rules.job_gpus_test

import data.gpudoctor.rules.job_gpus

found(l) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_gpus.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(job_gpus.missing) with input as {"profile": "launch", "launches": [l]}

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "resources": {"nvidia.com/gpu": "8"}, "source": "pod.yaml", "line": 3}

setting(name, value) := object.union(pod, {"variables": {name: value}})

judged(ls) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_gpus.findings} with input as {"profile": "launch", "launches": ls}

test_fires_for_lists if {
	found(setting("CUDA_VISIBLE_DEVICES", "0")) == {["CUDA_VISIBLE_DEVICES", "high"]}
	found(setting("CUDA_VISIBLE_DEVICES", "0,1,2,9")) == {["CUDA_VISIBLE_DEVICES", "high"]}
	found(setting("CUDA_VISIBLE_DEVICES", "8")) == {["CUDA_VISIBLE_DEVICES", "critical"]}
	found(setting("HIP_VISIBLE_DEVICES", "")) == {["HIP_VISIBLE_DEVICES", "critical"]}
	found(setting("CUDA_VISIBLE_DEVICES", "none")) == {["CUDA_VISIBLE_DEVICES", "critical"]}
	found({"kind": "docker-run", "gpus": -1, "variables": {"CUDA_VISIBLE_DEVICES": "-1"}, "source": "run.sh", "line": 1}) == {["CUDA_VISIBLE_DEVICES", "critical"]}
}

test_fires_for_ranks if {
	found(object.union(pod, {"processes": 16})) == {["GPUs", "high"]}
	found(object.union(pod, {"tensor_parallel": 8, "pipeline_parallel": 2})) == {["GPUs", "high"]}
	found(object.union(setting("CUDA_VISIBLE_DEVICES", "0"), {"processes": 8})) == {["CUDA_VISIBLE_DEVICES", "high"]}
	found(object.union(pod, {"processes": 4, "command": ["torchrun"]})) == {["GPUs", "low"]}
	tasks := {"kind": "slurm", "gpus": 4, "processes": 8, "tasks": 8, "source": "job.sh", "line": 2}
	judged([tasks]) == {["GPUs", "medium"]}
	judged([tasks, {"kind": "slurm", "command": ["torchrun"], "processes": 8, "source": "job.sh", "line": 9}]) == {["GPUs", "high"]}
}

test_fires_for_a_target if {
	target := {"profile": "launch", "gpus": {"devices": [{"address": "0000:01:00.0", "vendor": "nvidia"}]}, "launches": [pod]}
	count(job_gpus.findings) == 1 with input as target
}

test_silent if {
	found(pod) == set()
	found(setting("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")) == set()
	found(setting("CUDA_VISIBLE_DEVICES", "all")) == set()
	found(object.union(pod, {"processes": 16, "cpu_only": true})) == set()
	found(object.union(pod, {"tensor_parallel": 16, "nodes": 2})) == set()
	found(object.union(pod, {"tensor_parallel": 8, "pipeline_parallel": 2, "command": ["vllm", "--distributed-executor-backend=ray"]})) == set()
	found(object.union(pod, {"tensor_parallel": 4, "data_parallel": 2, "command": ["vllm"]})) == set()
	found(object.union(pod, {"processes": 4, "command": ["bash", "-c"]})) == set()
	judged([
		{"kind": "slurm", "gpus": 4, "processes": 8, "tasks": 8, "source": "job.sh", "line": 2},
		{"kind": "slurm", "command": ["torchrun"], "unknown": {"processes": "$N"}, "source": "job.sh", "line": 9},
	]) == set()
}

test_unresolvable if {
	every part in ["processes", "tensor_parallel", "nodes"] {
		unknown := object.union(pod, {"tensor_parallel": 16, "unknown": {part: "${X}"}})
		found(unknown) == set()
		open(unknown) == 1
	}
}
