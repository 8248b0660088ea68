package gpudoctor.rules.job_runtime_test

import data.gpudoctor.rules.job_runtime

found(l) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_runtime.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(job_runtime.missing) with input as {"profile": "launch", "launches": [l]}

pod := {"kind": "kubernetes", "name": "train", "source": "pod.yaml", "line": 3}

setting(name, value, more) := object.union(pod, object.union({"variables": {name: value}}, more))

gpus(n) := {"gpus": n, "resources": {"nvidia.com/gpu": format_int(n, 10)}}

visible(value, more) := found(setting("NVIDIA_VISIBLE_DEVICES", value, more))

capable(value, more) := found(setting("NVIDIA_DRIVER_CAPABILITIES", value, more))

job(value) := all if all := {f.severity | some f in job_runtime.findings} with input as {
	"profile": "launch",
	"env": {"variables": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": value, "source": "job.sh", "line": 4, "effective": true}]},
	"launches": [
		{"kind": "slurm", "gpus": 8, "source": "job.sh", "line": 2},
		{"kind": "slurm", "image": "train.sqsh", "command": ["python"], "source": "job.sh", "line": 5},
	],
}

test_fires if {
	visible("void", gpus(8)) == {["NVIDIA_VISIBLE_DEVICES", "critical"]}
	visible("0", gpus(2)) == {["NVIDIA_VISIBLE_DEVICES", "high"]}
	visible("all", {}) == {["NVIDIA_VISIBLE_DEVICES", "medium"]}
	visible("none", {"kind": "compose", "runtime": "nvidia", "gpus": -1}) == {["NVIDIA_VISIBLE_DEVICES", "critical"]}
	job("0") == {"high"}
	capable("compute", gpus(8)) == {["NVIDIA_DRIVER_CAPABILITIES", "high"]}
	capable("utility", gpus(1)) == {["NVIDIA_DRIVER_CAPABILITIES", "high"]}
}

test_silent if {
	visible("all", gpus(8)) == set()
	visible("all", {"privileged": true}) == set()
	visible("all", {"object": "DaemonSet/dcgm/exporter"}) == set()
	visible("all", {"image": "nvcr.io/nvidia/k8s-device-plugin:v0.17"}) == set()
	visible("all", {"resources": {"nvidia.com/mig-1g.10gb": "1"}}) == set()
	visible("0", {"kind": "docker-run", "gpus": 2}) == set()
	job("0,1,2,3,4,5,6,7") == set()
	capable("compute", gpus(1)) == set()
	capable("utility", object.union(gpus(1), {"image": "nvcr.io/nvidia/k8s/dcgm-exporter:4.2"})) == set()
	capable("compute,utility", gpus(8)) == set()
	capable("video", gpus(1)) == set()
}

test_unresolvable if {
	every part in ["gpus", "resources"] {
		unknown := setting("NVIDIA_VISIBLE_DEVICES", "all", {"unknown": {part: "${X}"}})
		found(unknown) == set()
		open(unknown) == 1
	}
}
