package gpudoctor.rules.job_devices_test

import data.gpudoctor.rules.job_devices

found(l) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_devices.findings} with input as {"launches": [l]}
pod(more) := object.union({"kind": "kubernetes", "gpus": 8, "source": "pod.yaml", "line": 3}, more)
bare(more) := object.union({"kind": "kubernetes", "command": ["torchrun"], "processes": 8, "source": "a.yaml", "line": 1}, more)
given(devices) := {"kind": "docker-run", "devices": devices, "source": "run.sh", "line": 1}

test_fires if {
	found(bare({"processes": 1, "image": "nvcr.io/nvidia/pytorch:25.09-py3"})) == {["/dev/nvidia*", "medium"]}
	found(given(["/dev/kfd"])) == {["/dev/dri", "high"]}
	found(pod({"kind": "enroot-conf", "variables": {"ENROOT_RESTRICT_DEV": "yes"}})) == {["/dev/infiniband", "low"]}
	found(pod({"variables": {"NCCL_IB_HCA": "mlx5_0"}})) == {["/dev/infiniband", "medium"]}
	count(job_devices.findings) == 1 with input as {"pci": {"devices": [{"class": "0x020700"}]}, "launches": [pod({"nodes": 2})]}
}

test_silent if {
	every more in [{"processes": 1}, {"image": "vllm-cpu:1"}, {"command": ["mpirun"]}, {"resources": {"google.com/tpu": "4"}}, {"requests": {"nvidia.com/gpu": "4"}}] {
		found(bare(more)) == set()
	}
	found(given(["/dev/kfd", "/dev/dri"])) | found(given(["/dev/dri"])) == set()
	found(pod({"variables": {"NCCL_NET": "IB"}, "networks": ["ib-net"]})) == set()
}

test_unresolvable if count(job_devices.missing) == 1 with input as {"launches": [pod({"unknown": {"devices": "${X}"}})]}
