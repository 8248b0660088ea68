package gpudoctor.rules.manifest_refused_test

import data.gpudoctor.rules.manifest_refused

found(more) := all if all := {f.subject | some f in manifest_refused.findings} with input as {"launches": [pod(more)]}
pod(more) := object.union({"kind": "kubernetes", "source": "pod.yaml", "line": 3}, more)

gpu := "nvidia.com/gpu"

test_fires if {
	every more in [{"requests": {gpu: "1"}, "resources": {gpu: "2"}}] {
		found(more) == {gpu}
	}
	found({"requests": {"memory": "64Gi", "cpu": "8"}, "memory_bytes": 34359738368, "cpus": 4}) == {"cpu", "memory"}
	found({"mounts": ["emptyDir:/dev/shm", "/dev/shm:/dev/shm"]}) == {"/dev/shm"}
}

test_silent if {
	every more in [{"undefined_volumes": ["data"], "object": "JobSet/train/workers/main"}] {
		found(more) == set()
	}
}

test_unresolvable if count(manifest_refused.missing) == 1 with input as {"launches": [pod({"unknown": {"resources": "${X}"}})]}
