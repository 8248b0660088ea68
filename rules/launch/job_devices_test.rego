package gpudoctor.rules.job_devices_test

import data.gpudoctor.rules.job_devices

found(l) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_devices.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(job_devices.missing) with input as {"profile": "launch", "launches": [l]}

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "resources": {"nvidia.com/gpu": "8"}, "source": "pod.yaml", "line": 3}

more(m) := object.union(pod, m)

bare(kind) := {"kind": kind, "name": "train", "command": ["torchrun"], "processes": 8, "source": "a.yaml", "line": 1}

test_fires if {
	every kind in ["kubernetes", "docker-run", "compose"] {
		found(bare(kind)) == {["/dev/nvidia*", "medium"]}
	}
	found(object.union(bare("kubernetes"), {"processes": 1, "image": "nvcr.io/nvidia/pytorch:25.09-py3"})) == {["/dev/nvidia*", "medium"]}
	found({"kind": "docker-run", "devices": ["/dev/kfd"], "source": "run.sh", "line": 1}) == {["/dev/dri", "high"]}
	found(more({"variables": {"NCCL_NET": "IB"}})) == {["/dev/infiniband", "high"]}
	found(more({"variables": {"NCCL_IB_HCA": "mlx5_0"}})) == {["/dev/infiniband", "medium"]}
	found({"kind": "enroot-conf", "variables": {"ENROOT_RESTRICT_DEV": "yes"}, "source": "enroot.conf", "line": 1}) == {["/dev/infiniband", "low"]}
}

test_fires_for_a_target if {
	target := {"profile": "launch", "pci": {"devices": [{"address": "0000:03:00.0", "class": "0x020700"}]}, "launches": [more({"nodes": 2})]}
	count(job_devices.findings) == 1 with input as target
}

test_silent if {
	found(pod) == set()
	found(object.union(bare("kubernetes"), {"processes": 1})) == set()
	found(object.union(bare("kubernetes"), {"cpu_only": true})) == set()
	found(object.union(bare("kubernetes"), {"image": "vllm-cpu:1"})) == set()
	found(object.union(bare("kubernetes"), {"command": ["mpirun"]})) == set()
	found(object.union(bare("kubernetes"), {"resources": {"google.com/tpu": "4"}})) == set()
	found(object.union(bare("kubernetes"), {"requests": {"nvidia.com/gpu": "4"}})) == set()
	found({"kind": "docker-run", "devices": ["/dev/kfd", "/dev/dri"], "source": "run.sh", "line": 1}) == set()
	found({"kind": "compose", "devices": ["/dev/dri"], "image": "jellyfin:10", "source": "a.yaml", "line": 1}) == set()
	found(more({"variables": {"NCCL_NET": "IB"}, "networks": ["ib-net"]})) == set()
	found(more({"variables": {"NCCL_NET": "IB", "NCCL_IB_HCA": ""}, "devices": ["/dev/infiniband"]})) == set()
}

test_unresolvable if {
	every part in ["privileged", "devices", "mounts", "resources"] {
		unknown := more({"variables": {"NCCL_NET": "IB"}, "unknown": {part: "${X}"}})
		found(unknown) == set()
		open(unknown) == 1
	}
}
