package gpudoctor.rules.job_devices_test

import data.gpudoctor.rules.job_devices

found(l) := all if all := {f.subject | some f in job_devices.findings} with input as {"launches": [l]}
pod(more) := object.union({"kind": "kubernetes", "gpus": 8, "source": "pod.yaml", "line": 3}, more)
bare(more) := object.union({"kind": "kubernetes", "command": ["torchrun"], "processes": 8, "source": "a.yaml", "line": 1}, more)
given(devices) := {"kind": "docker-run", "devices": devices, "source": "run.sh", "line": 1}

test_fires if {
	found(bare({})) == {"/dev/nvidia*"}
	found(given(["/dev/kfd"])) == {"/dev/dri"}
}

test_silent if {
	every more in [{"processes": 1}, {"image": "vllm-cpu:1"}, {"command": ["mpirun"]}, {"resources": {"google.com/tpu": "4"}}, {"requests": {"nvidia.com/gpu": "4"}}] {
		found(bare(more)) == set()
	}
	found(given(["/dev/kfd", "/dev/dri"])) == set()
	found(pod({"variables": {"NCCL_NET": "IB"}, "networks": ["ib-net"]})) == set()
}

test_unresolvable if count(job_devices.missing) == 1 with input as {"launches": [pod({"unknown": {"devices": "${X}"}})]}
