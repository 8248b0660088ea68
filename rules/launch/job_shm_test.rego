package gpudoctor.rules.job_shm_test

import data.gpudoctor.rules.job_shm

found(more) := all if all := {f.severity | some f in job_shm.findings} with input as {"launches": [pod(more)]}
pod(more) := object.union({"kind": "kubernetes", "gpus": 8, "source": "pod.yaml", "line": 3}, more)

test_fires if {
	found({"shm_mounted": true, "mounts": ["emptyDir:/dev/shm"]}) == {"medium"}
	found({"variables": {"NCCL_FASTRAK_CTRL_DEV": "eth0"}}) == {"low"}
	nvlinks := {
		"gpus": {"devices": [{"address": a, "vendor": "nvidia"} | some a in ["0000:01:00.0", "0000:02:00.0"]]},
		"links": {"pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "kind": "gpu-gpu", "nvlinks": 12}]},
	}
	some f in job_shm.findings with input as object.union(nvlinks, {"launches": [pod({})]})
	f.severity == "medium"
}

test_unresolvable if count(job_shm.missing) == 1 with input as {"launches": [pod({"unknown": {"ipc": "${X}"}})]}
