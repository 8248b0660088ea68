package gpudoctor.lib.job_test

import data.gpudoctor.lib.job

unit(ls) := {"profile": "launch", "launches": ls}

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "source": "pod.yaml", "line": 3}

header := {"kind": "slurm", "gpus": 8, "source": "job.sh", "line": 2}

run(more) := object.union({"kind": "slurm", "command": ["torchrun"], "source": "job.sh", "line": 6}, more)

# What a container runs is a part of it.
test_parts if {
	job.parts == {pod} with input as unit([pod, {"kind": "torchrun", "command": ["torchrun"], "source": "pod.yaml", "line": 5}])
	job.parts == {header, run({})} with input as unit([header, run({}), {"kind": "slurm-node", "source": "slurm.conf", "line": 1}])
	job.parts == set() with input as unit([header, run({"cpu_only": true})])
	job.parts == {header, run({})} with input as unit([header, run({}), run({"cpu_only": true, "line": 7})])
	job.parts == set() with input as unit([object.union(pod, {"cpu_only": true})])
}

gpus_of(l, ls) := n if n := job.gpus(l) with input as unit(ls)

test_gpus if {
	gpus_of(pod, [pod]) == 8
	gpus_of(run({}), [header, run({})]) == 8
	gpus_of(run({"gpus": 2}), [header, run({"gpus": 2})]) == 2
	not gpus_of(run({}), [object.union(object.remove(header, ["gpus"]), {"unknown": {"gpus": "$N"}}), run({})])
	target := {"gpus": {"devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}]}}
	job.gpus(run({})) == 2 with input as object.union(target, unit([run({})]))
	job.gpus({"kind": "docker-run", "gpus": -1}) == 2 with input as object.union(target, unit([]))
	not job.gpus({"kind": "docker-run", "gpus": -1}) with input as unit([])
}

test_several if {
	not job.several({"kind": "docker-run", "gpus": -1}) with input as unit([])
	job.several({"kind": "docker-run", "gpus": -1, "processes": 2}) with input as unit([])
	job.several({"kind": "torchrun", "processes": 4}) with input as unit([])
	not job.several({"kind": "kubernetes", "processes": 4}) with input as unit([])
}

test_ranks if {
	job.ranks({"processes": 4, "tensor_parallel": 8}) == 4
	job.ranks({"tensor_parallel": 16, "nodes": 2}) == 8
	job.ranks({"tensor_parallel": 4, "pipeline_parallel": 2}) == 8
	not job.ranks({"tensor_parallel": 16, "unknown": {"nodes": "$N"}})
	not job.ranks({"tensor_parallel": 16, "object": "RayService/llm/worker"})
}

test_titles if {
	job.opening(pod) == "The pod train"
	job.title(header) == "the batch job"
	job.title(object.union(header, {"name": "gpt"})) == "the batch job gpt"
	job.title({"kind": "command"}) == "the command"
}

test_rdma if {
	job.rdma_words(object.union(pod, {"resources": {"rdma/hca": "1", "nvidia.com/gpu": "8"}})) == "rdma/hca"
	[f.value | some f in job.rdma(object.union(pod, {"devices": ["/dev/infiniband/uverbs0"], "mounts": ["/dev:/dev", "/data:/data"]}))] == ["/dev/infiniband/uverbs0", "/dev:/dev"]
	job.target_rdma with input as {"nics": {"rdma": [{"state": "active"}]}}
	job.target_rdma with input as {"pci": {"devices": [{"class": "0x020700"}]}}
}

test_undecided if {
	unknown := object.union(pod, {"unknown": {"shm_bytes": "${SHM}", "variables": "env.list"}})
	job.undecided({"shm_bytes"}) == {"The size of /dev/shm of the pod train is ${SHM} (pod.yaml:3), whose value the file does not show"} with input as unit([unknown])
	count(job.undecided({"variables[NCCL_NET]"})) == 1 with input as unit([unknown])
	count(job.undecided({"variables[*]"})) == 1 with input as unit([unknown])
	count(job.undecided({"gpus"})) == 0 with input as unit([unknown])
}
