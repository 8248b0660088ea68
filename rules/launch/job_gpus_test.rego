package gpudoctor.rules.job_gpus_test

import data.gpudoctor.rules.job_gpus

found(ls) := all if all := {f.grade | some f in job_gpus.findings} with input as {"launches": ls}
pod(more) := object.union({"kind": "kubernetes", "name": "train", "gpus": 8, "source": "pod.yaml", "line": 3}, more)

tasks := {"kind": "slurm", "gpus": 4, "processes": 8, "tasks": 8, "source": "job.sh", "line": 2}

test_fires if {
	found([pod({"kind": "docker-run", "gpus": -1, "variables": {"CUDA_VISIBLE_DEVICES": "none"}})]) == {"none"}
	found([pod({"tensor_parallel": 8, "pipeline_parallel": 2})]) == {"ranks"}
	found([pod({"variables": {"CUDA_VISIBLE_DEVICES": "0"}, "processes": 8})]) == {"few"}
	found([tasks, {"kind": "slurm", "command": ["torchrun"], "processes": 8, "source": "job.sh", "line": 9}]) == {"ranks"}
	count(job_gpus.findings) == 1 with input as {"gpus": {"devices": [{"address": "0000:01:00.0"}]}, "launches": [pod({})]}
}

test_silent if found([tasks]) == set()

test_unresolvable if count(job_gpus.missing) == 1 with input as {"launches": [pod({"unknown": {"processes": "${X}"}})]}
