package gpudoctor.rules.job_resources_test

import data.gpudoctor.rules.job_resources

found(l) := all if all := {[f.subject, object.get(f, "severity", "medium")] | some f in job_resources.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(job_resources.missing) with input as {"profile": "launch", "launches": [l]}

pod := {
	"kind": "kubernetes", "name": "train", "gpus": 8, "cpus": 2, "memory_bytes": 8589934592, "shm_bytes": 17179869184,
	"resources": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "2", "memory": "8Gi"},
	"lines": {"cpus": 9, "requests[cpu]": 12, "memory_bytes": 10, "requests[memory]": 13},
	"source": "pod.yaml", "line": 3,
}

test_fires if {
	found(pod) == {["cpu", "medium"], ["memory", "medium"]}
	found({"kind": "docker-run", "gpus": 8, "cpus": 2, "source": "run.sh", "line": 1}) == {["cpu", "medium"]}
}

# A pod may use more than it requests.
test_silent if {
	found(object.union(pod, {"lines": {"cpus": 12, "memory_bytes": 13}})) == set()
	found(object.union(pod, {"cpus": 64, "memory_bytes": 68719476736})) == set()
	found(object.union(pod, {"cpu_only": true})) == set()
}

test_unresolvable if {
	unknown := object.union(pod, {"unknown": {"requests": "${X}"}})
	found(unknown) == set()
	open(object.union(pod, {"unknown": {"cpus": "${X}"}})) == 1
}
