package gpudoctor.rules.job_resources_test

import data.gpudoctor.rules.job_resources

found(more) := all if all := {f.subject | some f in job_resources.findings} with input as {"launches": [pod(more)]}

pod(more) := object.union(
	{
		"kind": "kubernetes", "gpus": 8, "cpus": 2, "memory_bytes": 8589934592, "shm_bytes": 17179869184,
		"lines": {"cpus": 9, "requests[cpu]": 12, "memory_bytes": 10, "requests[memory]": 13},
		"source": "pod.yaml", "line": 3,
	},
	more,
)

test_fires if found({}) == {"cpu", "memory"}

# A pod may use more than it requests.
test_silent if found({"lines": {"cpus": 12, "memory_bytes": 13}}) == set()
test_unresolvable if count(job_resources.missing) == 1 with input as {"launches": [pod({"unknown": {"cpus": "${X}"}})]}
