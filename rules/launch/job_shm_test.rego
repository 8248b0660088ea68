package gpudoctor.rules.job_shm_test

import data.gpudoctor.rules.job_shm

found(l) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_shm.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(job_shm.missing) with input as {"profile": "launch", "launches": [l]}

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "resources": {"nvidia.com/gpu": "8"}, "source": "pod.yaml", "line": 3}

shm := {["/dev/shm", "high"]}

test_fires if {
	found(pod) == shm
	found(object.union(pod, {"shm_bytes": 67108864})) == shm
	found(object.union(pod, {"variables": {"NCCL_FASTRAK_CTRL_DEV": "eth0"}})) == {["/dev/shm", "low"]}
	found(object.union(pod, {"shm_mounted": true, "mounts": ["emptyDir:/dev/shm"]})) == {["/dev/shm", "medium"]}
	nvlinks := {"gpus": {"devices": [{"address": a, "vendor": "nvidia"} | some a in ["0000:01:00.0", "0000:02:00.0"]]}, "links": {"pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "kind": "gpu-gpu", "nvlinks": 12}]}}
	some f in job_shm.findings with input as object.union(nvlinks, {"profile": "launch", "launches": [pod]})
	f.severity == "medium"
}

test_silent if {
	found(object.union(pod, {"shm_mounted": true, "shm_bytes": 17179869184})) == set()
	found(object.union(pod, {"gpus": 1})) == set()
	found(object.union(pod, {"cpu_only": true})) == set()
	found(object.union(pod, {"image": "ollama/ollama:0.12"})) == set()
	found(object.union(pod, {"command": ["sh", "-c", "nvidia-smi -L"]})) == set()
	found({"kind": "docker-run", "gpus": -1, "source": "run.sh", "line": 1}) == set()
}

test_unresolvable if {
	every part in ["shm_bytes", "ipc", "mounts"] {
		unknown := object.union(pod, {"unknown": {part: "${X}"}})
		found(unknown) == set()
		open(unknown) == 1
	}
}
