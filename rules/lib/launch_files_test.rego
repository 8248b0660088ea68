package gpudoctor.lib.launch_files_test

import data.gpudoctor.lib.launch_files as lf

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "source": "pod.yaml", "line": 3}

job(ls) := {"profile": "launch", "launches": ls}

# two is a target with two GPUs.
two := {"devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}]}

with_gpus(l) := object.union(job([l]), {"gpus": two})

test_only_in_its_profile if {
	lf.files == {pod} with input as job([pod])
	count(lf.files) == 0 with input as {"launches": [pod], "profile": "training"}
	count(lf.files) == 0 with input as {"launches": [pod]}
}

test_command_of_a_manifest_is_a_part_of_it if {
	inner := {"kind": "torchrun", "processes": 8, "source": "pod.yaml", "line": 5}
	lf.files == {pod} with input as job([pod, inner])
	count(lf.files) == 2 with input as job([pod, object.union(inner, {"source": "run.sh"})])
}

test_titles if {
	lf.title(pod) == "the pod train"
	lf.title({"kind": "slurm"}) == "the batch job"
	lf.title({"kind": "slurm", "name": "x"}) == "the batch job x"
	lf.title({"kind": "dockerfile"}) == "the Dockerfile"
	lf.title({"kind": "torchrun"}) == "the command"
}

variable(value) := {"name": "NCCL_DEBUG", "value": value, "source": "job.sh", "line": 4}

test_settings if {
	own := object.union(pod, {"variables": {"NCCL_DEBUG": "INFO"}, "lines": {"variables[NCCL_DEBUG]": 7}})
	lf.settings(own) == {"NCCL_DEBUG": {"value": "INFO", "place": "pod.yaml:7"}} with input as job([own])
	batch := {"kind": "slurm", "source": "job.sh", "line": 1}
	lf.settings(batch).NCCL_DEBUG == {"value": "WARN", "place": "job.sh:4"} with input as {"env": {"variables": [variable("WARN")]}}
	lf.settings(batch) == {} with input as {"env": {"variables": [variable("WARN"), variable("INFO")]}}
	lf.setting_fact(own, "NCCL_DEBUG").source == "pod.yaml:7"
}

test_undecided if {
	open := object.union(pod, {"unknown": {"shm_bytes": "${SHM}", "variables[NCCL_DEBUG]": "$D"}, "lines": {"shm_bytes": 9}})
	lf.undecided({"shm_bytes", "ipc"}) == {"The size of /dev/shm of the pod train is ${SHM} (pod.yaml:9), whose value the file does not show"} with input as job([open])
	count(lf.undecided({"variables[*]"})) == 1 with input as job([open])
	count(lf.undecided({"variables[NCCL_DEBUG]"})) == 1 with input as job([open])
	count(lf.undecided({"variables[NCCL_NET]"})) == 0 with input as job([open])
	count(lf.undecided({"ipc"})) == 0 with input as job([open])
	any_variable := object.union(pod, {"unknown": {"variables": "{{ .env }}"}})
	count(lf.undecided({"variables[NCCL_NET]"})) == 1 with input as job([any_variable])
}

test_open_variables if {
	batch := {"kind": "slurm", "source": "job.sh", "line": 1}
	shell := {"kind": "shell", "source": "job.sh", "line": 6, "unknown": {"variables[NCCL_DEBUG]": "$D"}}
	lf.settings(batch) == {} with input as object.union(job([batch, shell]), {"env": {"variables": [variable("WARN")]}})
}

test_open_counts if {
	run := {"kind": "torchrun", "source": "job.sh", "line": 9, "processes": 8, "tensor_parallel": 8}
	lf.ranks(run) == 8 with input as job([run])
	every part in ["processes", "tensor_parallel", "nodes"] {
		not lf.ranks(object.union(run, {"unknown": {part: "$N"}})) with input as job([run])
	}
	lf.ranks({"processes": 8, "unknown": {"nodes": "$N"}}) == 8
	batch := {"kind": "slurm", "source": "job.sh", "line": 1, "unknown": {"gpus": "$N"}}
	not lf.asked(run) with input as with_gpus(batch)
	not lf.several({"kind": "docker-run", "processes": 8, "unknown": {"gpus": "$N"}}) with input as job([run])
}

test_asked if {
	lf.asked(pod) == 8
	lf.asked(object.union(pod, {"gpus": -1})) == 2 with input as with_gpus(pod)
	not lf.asked(object.union(pod, {"gpus": -1})) with input as job([pod])
	run := {"kind": "torchrun", "source": "job.sh", "line": 9}
	lf.asked(run) == 4 with input as job([{"kind": "slurm", "gpus": 4, "source": "job.sh", "line": 1}, run])
	lf.asked(run) == 2 with input as with_gpus(run)
	not lf.asked(run) with input as job([run])
}

test_ranks if {
	lf.ranks({"processes": 8}) == 8
	lf.ranks({"tensor_parallel": 16, "nodes": 2}) == 8
	not lf.ranks({"tensor_parallel": 16, "command": ["ray"]})
	not lf.ranks({})
}

test_several if {
	lf.several(pod)
	not lf.several(object.union(pod, {"gpus": 1}))
	lf.several({"kind": "docker-run", "gpus": -1}) with input as job([])
	not lf.several({"kind": "docker-run", "gpus": -1, "processes": 1}) with input as job([])
	lf.several({"kind": "compose", "processes": 2})
	not lf.several({"kind": "kubernetes", "processes": 16})
}

test_rdma if {
	ask({"resources": {"rdma/hca": "1"}}) == {"rdma/hca"}
	ask({"devices": ["/dev/infiniband"]}) == {"/dev/infiniband"}
	ask({"mounts": ["/dev/infiniband:/dev/infiniband"]}) == {"/dev/infiniband:/dev/infiniband"}
	ask({"resources": {"rdma/hca": "0", "vpc.amazonaws.com/efa": "4"}, "mounts": ["/data:/data"]}) == set()
	l := object.union(pod, {"resources": {"rdma/hca": "1"}})
	lf.rdma_facts(l)[0].source == "pod.yaml:3" with input as job([l])
}

test_target_rdma if {
	lf.target_rdma with input as {"pci": {"devices": [{"class": "0x020700"}]}}
	lf.target_rdma with input as {"nics": {"rdma": [{"state": "active"}]}}
	not lf.target_rdma with input as {"pci": {"devices": [{"class": "0x020000"}]}}
}

test_nodes if {
	lf.multi_node({"nodes": 2})
	not lf.multi_node({"nodes": 1})
}

test_contained if lf.contained == {pod} with input as job([pod, {"kind": "slurm", "source": "job.sh", "line": 1}])

ask(more) := all if all := {r.value | some r in lf.rdma[object.union(pod, more)]} with input as job([object.union(pod, more)])
