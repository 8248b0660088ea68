package gpudoctor.rules.job_memlock_test

import data.gpudoctor.rules.job_memlock

found(l) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_memlock.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(job_memlock.missing) with input as {"profile": "launch", "launches": [l]}

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "resources": {"nvidia.com/gpu": "8", "rdma/hca": "1"}, "source": "pod.yaml", "line": 3}

run := {"kind": "docker-run", "name": "train", "gpus": -1, "devices": ["/dev/infiniband"], "source": "run.sh", "line": 1}

with_shell(kib, nodes) := all if all := {f.severity | some f in job_memlock.findings} with input as {"profile": "launch", "launches": [
	{"kind": "shell", "memlock_bytes": kib * 1024, "source": "job.sh", "line": 3},
	{"kind": "slurm", "nodes": nodes, "gpus": 8, "source": "job.sh", "line": 2},
]}

test_fires if {
	found(pod) == {["RLIMIT_MEMLOCK", "high"]}
	found(object.union(pod, {"cap_add": ["IPC_LOCK"], "user": "1000"})) == {["RLIMIT_MEMLOCK", "medium"]}
	found(run) == {["RLIMIT_MEMLOCK", "high"]}
	found(object.union(run, {"memlock_bytes": 65536})) == {["RLIMIT_MEMLOCK", "high"]}
	with_shell(65536, 4) == {"high"}
	with_shell(524288, 4) == {"medium"}
}

test_fires_for_a_target if {
	target := {"profile": "launch", "nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active"}]}, "launches": [object.union(object.remove(run, ["devices"]), {"memlock_bytes": 65536, "processes": 2})]}
	count(job_memlock.findings) == 1 with input as target
}

test_silent if {
	found(object.union(pod, {"cap_add": ["IPC_LOCK"]})) == set()
	found(object.union(pod, {"privileged": true})) == set()
	found(object.union(object.remove(pod, ["resources"]), {"resources": {"rdma/ib": "1"}})) == set()
	found(object.union(run, {"memlock_bytes": -1})) == set()
	found(object.union(run, {"cap_add": ["ALL"]})) == set()
	with_shell(65536, 1) == set()
	with_shell(4194304, 4) == set()
}

test_unresolvable if {
	every part in ["privileged", "cap_add", "memlock_bytes"] {
		unknown := object.union(pod, {"unknown": {part: "${X}"}})
		found(unknown) == set()
		open(unknown) == 1
	}
}
