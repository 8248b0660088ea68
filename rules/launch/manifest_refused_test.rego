package gpudoctor.rules.manifest_refused_test

import data.gpudoctor.rules.manifest_refused

found(l) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in manifest_refused.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(manifest_refused.missing) with input as {"profile": "launch", "launches": [l]}

pod(m) := object.union({"kind": "kubernetes", "name": "train", "source": "pod.yaml", "line": 3}, m)

asks(requests, limits) := pod({"requests": requests, "resources": limits})

gpu := "nvidia.com/gpu"

test_fires if {
	found(asks({gpu: "1"}, {})) == {[gpu, "high"]}
	found(pod({"requests": {gpu: "1"}})) == {[gpu, "high"]}
	found(asks({gpu: "1"}, {gpu: "2"})) == {[gpu, "high"]}
	found(pod({"requests": {"memory": "64Gi"}, "memory_bytes": 34359738368})) == {["memory", "high"]}
	found(pod({"requests": {"cpu": "8"}, "cpus": 4})) == {["cpu", "high"]}
	found(asks({}, {gpu: "0.5"})) == {[gpu, "high"]}
	found(asks({}, {gpu: "500m"})) == {[gpu, "high"]}
	found(pod({"undefined_volumes": ["shm"]})) == {["shm", "high"]}
	found(pod({"mounts": ["emptyDir:/dev/shm", "/dev/shm:/dev/shm"]})) == {["/dev/shm", "high"]}
}

test_silent if {
	found(asks({gpu: "8", "cpu": "500m", "memory": "32Gi"}, {gpu: "8", "cpu": "1", "memory": "32Gi"})) == set()
	found(asks({"cpu": "4"}, {gpu: "1"})) == set()
	found(asks({}, {gpu: "1k"})) == set()
	found(pod({"requests": {"memory": "x", "cpu": "500m"}, "memory_bytes": 1, "cpus": 0.5})) == set()
	found(pod({"undefined_volumes": ["data"], "object": "JobSet/train/workers/main"})) == set()
	found({"kind": "compose", "undefined_volumes": ["shm"], "source": "a.yaml", "line": 1}) == set()
}

test_unresolvable if {
	every part in ["resources", "requests", "resources[nvidia.com/gpu]"] {
		found(pod({"requests": {gpu: "1"}, "unknown": {part: "${X}"}})) == set()
	}
	open(pod({"unknown": {"resources": "${X}"}})) == 1
}
