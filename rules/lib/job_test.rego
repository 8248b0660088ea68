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

test_gpus if {
	every l in [run({}), {"kind": "docker-run", "gpus": -1}] {
		job.gpus(l) == 2 with input as {"gpus": {"devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}]}}
	}
	not job.several({"kind": "docker-run", "gpus": -1}) with input as {}
}

test_ranks if {
	not job.ranks({"tensor_parallel": 16, "unknown": {"nodes": "$N"}})
	not job.ranks({"tensor_parallel": 16, "object": "RayService/llm/worker"})
}

undecided(part) := all if all := job.undecided({part}) with input as {"launches": [object.union(pod, {"unknown": {"shm_bytes": "${SHM}", "variables": "env.list"}})]}

test_undecided if {
	undecided("shm_bytes") == {"The size of /dev/shm of the pod train is ${SHM} (pod.yaml:3), whose value the file does not show"}
	count(undecided("variables[NCCL_NET]") | undecided("variables[*]")) == 1
}
