package gpudoctor.lib.launch_gpus_test

import data.gpudoctor.lib.launch_gpus as gpus

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "resources": {"nvidia.com/gpu": "8"}, "source": "pod.yaml", "line": 3}

job(ls) := {"profile": "launch", "launches": ls}

found(ls) := all if all := {[f.subject, f.severity] | some f in gpus.found} with input as job(ls)

setting(name, value) := object.union(pod, {"variables": {name: value}})

test_lists if {
	found([setting("CUDA_VISIBLE_DEVICES", "0")]) == {["CUDA_VISIBLE_DEVICES", "high"]}
	found([setting("CUDA_VISIBLE_DEVICES", "0,1,2,9")]) == {["CUDA_VISIBLE_DEVICES", "high"]}
	found([setting("CUDA_VISIBLE_DEVICES", "8")]) == {["CUDA_VISIBLE_DEVICES", "critical"]}
	found([setting("HIP_VISIBLE_DEVICES", "")]) == {["HIP_VISIBLE_DEVICES", "critical"]}
	found([setting("CUDA_VISIBLE_DEVICES", "none")]) == {["CUDA_VISIBLE_DEVICES", "critical"]}
	found([setting("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")]) == set()
	found([setting("CUDA_VISIBLE_DEVICES", "all")]) == set()
}

test_list_of_all if {
	all := {"kind": "docker-run", "gpus": -1, "variables": {"CUDA_VISIBLE_DEVICES": "0"}, "source": "run.sh", "line": 1}
	found([all]) == set()
	found([object.union(all, {"variables": {"CUDA_VISIBLE_DEVICES": "-1"}})]) == {["CUDA_VISIBLE_DEVICES", "critical"]}
	found([object.union(all, {"processes": 2})]) == {["CUDA_VISIBLE_DEVICES", "high"]}
}

test_ranks if {
	found([object.union(pod, {"gpus": 4, "processes": 8})]) == {["GPUs", "high"]}
	found([object.union(pod, {"processes": 8})]) == set()
	tasks := {"kind": "slurm", "gpus": 4, "processes": 8, "tasks": 8, "source": "job.sh", "line": 2}
	found([tasks]) == {["GPUs", "medium"]}
	run := {"kind": "torchrun", "command": ["torchrun"], "processes": 4, "source": "job.sh", "line": 9}
	found([tasks, run]) == set()
}

test_launcher_per_task if {
	batch := {"kind": "slurm", "gpus": 8, "processes": 8, "tasks": 8, "source": "job.sh", "line": 2}
	run := {"kind": "slurm", "command": ["torchrun"], "processes": 8, "source": "job.sh", "line": 9}
	found([batch, run]) == {["ranks", "high"]}
	found([batch, object.union(run, {"tasks": 1})]) == set()
	found([object.union(batch, {"tasks": 1, "processes": 1}), run]) == set()
}

test_target if {
	{f.subject | some f in gpus.found} == {"GPUs"} with input as document(pod)
	count(gpus.found) == 0 with input as document(object.union(pod, {"gpus": 2}))
}

test_slurm_nodes if {
	found([node(8, "slurm.conf"), node(4, "gres.conf")]) == {["n1", "high"]}
	found([node(8, "slurm.conf"), node(8, "gres.conf")]) == set()
	found([node(8, "slurm.conf"), {"kind": "slurm", "gpus": 16, "source": "job.sh", "line": 2}]) == {["GPUs", "high"]}
}

test_nvidia_variables if {
	found([setting("NVIDIA_VISIBLE_DEVICES", "void")]) == {["NVIDIA_VISIBLE_DEVICES", "critical"]}
	found([setting("NVIDIA_VISIBLE_DEVICES", "all")]) == set()
	found([{"kind": "compose", "runtime": "nvidia", "gpus": 1, "variables": {"NVIDIA_VISIBLE_DEVICES": "none"}, "source": "c.yaml", "line": 1}]) == {["NVIDIA_VISIBLE_DEVICES", "critical"]}
	found([setting("NVIDIA_DRIVER_CAPABILITIES", "utility")]) == {["NVIDIA_DRIVER_CAPABILITIES", "high"]}
	found([setting("NVIDIA_DRIVER_CAPABILITIES", "compute")]) == {["NVIDIA_DRIVER_CAPABILITIES", "high"]}
	found([setting("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")]) == set()
	found([setting("NVIDIA_DRIVER_CAPABILITIES", "all")]) == set()
}

document(l) := object.union(job([l]), {"gpus": {"devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}]}})

node(n, file) := {"kind": "slurm-node", "name": "n1", "gpus": n, "source": file, "line": 1}
