package gpudoctor.rules.job_nodes_test

import data.gpudoctor.rules.job_nodes

found(l) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_nodes.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(job_nodes.missing) with input as {"profile": "launch", "launches": [l]}

judged(ls) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_nodes.findings} with input as {"profile": "launch", "launches": ls}

batch := {"kind": "slurm", "nodes": 2, "tasks": 1, "gpus": 8, "source": "job.sh", "line": 2}

run(command) := {"kind": "slurm", "command": array.concat(["/usr/bin/torchrun"], command), "processes": 8, "source": "job.sh", "line": 6}

pod := {"kind": "kubernetes", "name": "train", "nodes": 2, "command": ["torchrun", "--nnodes", "4"], "source": "a.yaml", "line": 1}

node(gpus, source) := {"kind": "slurm-node", "name": "a[1-4]", "gpus": gpus, "source": source, "line": 1}

test_fires if {
	judged([batch, run(["--nnodes=4"])]) == {["nodes", "high"]}
	judged([batch, run(["--nnodes", "3:4"])]) == {["nodes", "high"]}
	found(pod) == {["nodes", "high"]}
	judged([object.union(batch, {"tasks": 8}), run([])]) == {["ranks", "high"]}
	judged([node(8, "slurm.conf"), node(4, "gres.conf")]) == {["a[1-4]", "high"]}
	judged([batch, node(4, "slurm.conf")]) == {["GPUs", "high"]}
}

test_silent if {
	judged([batch, run(["--nnodes=2"])]) == set()
	judged([batch, run(["--nnodes=1:4"])]) == set()
	judged([batch, run(["--nnodes=$N"])]) == set()
	judged([object.union(batch, {"tasks": 8}), object.union(run([]), {"tasks": 1})]) == set()
	judged([node(8, "slurm.conf"), node(8, "gres.conf"), batch]) == set()
	found(object.union(pod, {"cpu_only": true})) == set()
}

test_unresolvable if {
	unknown := object.union(pod, {"unknown": {"nodes": "${X}"}})
	found(unknown) == set()
	open(unknown) == 1
}
