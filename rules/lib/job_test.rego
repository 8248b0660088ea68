package gpudoctor.lib.job_test

import data.gpudoctor.lib.job

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "source": "pod.yaml", "line": 3}

header := {"kind": "slurm", "gpus": 8, "source": "job.sh", "line": 2}

run(more) := object.union({"kind": "slurm", "command": ["torchrun"], "source": "job.sh", "line": 6}, more)

parts(ls) := all if all := job.parts with input as {"launches": ls}

# What a container runs is a part of it.
test_parts if {
	parts([pod, {"kind": "torchrun", "command": ["torchrun"], "source": "pod.yaml", "line": 5}]) == {pod}
	parts([header, run({}), run({"cpu_only": true}), {"kind": "slurm-node", "source": "slurm.conf", "line": 1}]) == {header, run({})}
	parts([header, run({"cpu_only": true})]) | parts([object.union(pod, {"cpu_only": true})]) == set()
}

gpus(l, ls) := n if n := job.gpus(l) with input as {"launches": ls}

test_gpus if {
	gpus(pod, [pod]) == 8
	gpus(run({}), [header]) == 8
	not gpus(run({}), [{"kind": "slurm", "unknown": {"gpus": "$N"}}])
	not gpus({"kind": "docker-run", "gpus": -1}, [])
	every l in [run({}), {"kind": "docker-run", "gpus": -1}] {
		job.gpus(l) == 2 with input as {"gpus": {"devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}]}}
	}
	not job.several({"kind": "docker-run", "gpus": -1}) with input as {}
	job.several({"kind": "docker-run", "gpus": -1, "processes": 2}) with input as {}
}

test_ranks if {
	job.ranks({"processes": 4, "tensor_parallel": 8}) == 4
	job.ranks({"tensor_parallel": 16, "pipeline_parallel": 2, "nodes": 2}) == 16
	not job.ranks({"tensor_parallel": 16, "unknown": {"nodes": "$N"}})
	not job.ranks({"tensor_parallel": 16, "object": "RayService/llm/worker"})
}

test_titles if {
	job.opening(pod) == "The pod train"
	job.title(object.union(header, {"name": "gpt"})) == "the batch job gpt"
	job.title({"kind": "command"}) == "the command"
}

undecided(part) := all if all := job.undecided({part}) with input as {"launches": [object.union(pod, {"unknown": {"shm_bytes": "${SHM}", "variables": "env.list"}})]}

test_undecided if {
	undecided("shm_bytes") == {"The size of /dev/shm of the pod train is ${SHM} (pod.yaml:3), whose value the file does not show"}
	count(undecided("variables[NCCL_NET]") | undecided("variables[*]")) == 1
	undecided("gpus") == set()
}
