package gpudoctor.rules.job_nodes_test

import data.gpudoctor.rules.job_nodes

found(ls) := all if all := {f.subject | some f in job_nodes.findings} with input as {"launches": ls}
batch(more) := object.union({"kind": "slurm", "nodes": 2, "gpus": 8, "source": "job.sh", "line": 2}, more)
run(option, tasks) := {"kind": "slurm", "command": ["/usr/bin/torchrun", option, "4"], "processes": 8, "tasks": tasks, "source": "job.sh", "line": 6}

pod := {"kind": "kubernetes", "nodes": 2, "command": ["torchrun", "--nnodes", "4"], "source": "a.yaml", "line": 1}

node(gpus, source) := {"kind": "slurm-node", "name": "a[1-4]", "gpus": gpus, "source": source, "line": 1}

test_fires if {
	found([batch({"tasks": 8}), run("-q", 8)]) == {"ranks"}
	found([node(8, "slurm.conf"), node(4, "gres.conf")]) == {"a[1-4]"}
	found([batch({}), node(4, "slurm.conf")]) == {"GPUs"}
	found([batch({}), run("--nnodes=3:4", 8)]) == {"nodes"}
}

test_silent if found([batch({}), run("--nnodes=1:4", 1), node(8, "slurm.conf"), node(8, "gres.conf")]) == set()
test_unresolvable if count(job_nodes.missing) == 1 with input as {"launches": [object.union(pod, {"unknown": {"nodes": "${X}"}})]}
