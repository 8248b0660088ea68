package gpudoctor.rules.job_runtime_test

import data.gpudoctor.rules.job_runtime

found(ls) := all if all := {f.grade | some f in job_runtime.findings} with input as {"launches": ls}
pod(more) := object.union({"kind": "kubernetes", "image": "train:1", "source": "pod.yaml", "line": 3}, more)
gpus(n) := {"gpus": n, "resources": {"nvidia.com/gpu": format_int(n, 10)}}
visible(value, more) := found([object.union(pod(more), {"variables": {"NVIDIA_VISIBLE_DEVICES": value}})])
capable(value, more) := found([object.union(pod(more), {"variables": {"NVIDIA_DRIVER_CAPABILITIES": value}})])

job(value) := found([
	{"kind": "slurm", "gpus": 8, "source": "job.sh", "line": 2},
	{"kind": "slurm", "image": "train.sqsh", "command": ["python"], "variables": {"NVIDIA_VISIBLE_DEVICES": value}, "source": "job.sh", "line": 5},
])

test_fires if {
	visible("void", gpus(8)) == {"hidden"}
	visible("0", gpus(2)) | job("0") == {"chosen"}
	visible("all", {}) == {"all"}
	capable("compute", gpus(8)) == {"utility"}
	capable("utility", gpus(1)) == {"compute"}
}

test_silent if {
	every more in [gpus(8), {"privileged": true}, {"object": "DaemonSet/dcgm/exporter"}, {"resources": {"nvidia.com/mig-1g.10gb": "1"}}] {
		visible("all", more) == set()
	}
	visible("0", {"kind": "docker-run", "gpus": 2}) | job("0,1,2,3,4,5,6,7") == set()
	capable("compute", gpus(1)) | capable("compute,utility", gpus(8)) == set()
	capable("utility", object.union(gpus(1), {"image": "nvcr.io/nvidia/k8s/dcgm-exporter:4.2"})) == set()
}

test_unresolvable if count(job_runtime.missing) == 1 with input as {"launches": [pod({"unknown": {"gpus": "${X}"}})]}
