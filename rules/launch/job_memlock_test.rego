package gpudoctor.rules.job_memlock_test

import data.gpudoctor.rules.job_memlock

found(ls) := all if all := {f.grade | some f in job_memlock.findings} with input as {"launches": ls}
pod(more) := object.union({"kind": "kubernetes", "resources": {"rdma/hca": "1"}, "source": "pod.yaml", "line": 3}, more)
script(bytes, nodes) := found([{"kind": "shell", "memlock_bytes": bytes, "source": "a", "line": 3}, {"kind": "slurm", "nodes": nodes, "source": "a", "line": 2}])

test_fires if {
	found([pod({"cap_add": ["IPC_LOCK"], "user": "1000"})]) == {"user"}
	script(65536, 4) == {"limit"}
}

test_silent if {
	every more in [{"cap_add": ["IPC_LOCK"]}, {"cap_add": ["ALL"]}, {"privileged": true}, {"memlock_bytes": -1}, {"resources": {"rdma/ib": "1"}}] {
		found([pod(more)]) == set()
	}
	script(67108864, 1) | script(4294967296, 4) == set()
}

test_unresolvable if count(job_memlock.missing) == 1 with input as {"launches": [pod({"unknown": {"cap_add": "${X}"}})]}
