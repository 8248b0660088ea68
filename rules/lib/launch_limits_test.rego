package gpudoctor.lib.launch_limits_test

import data.gpudoctor.lib.launch_limits as limits

pod := {"kind": "kubernetes", "name": "train", "gpus": 8, "source": "pod.yaml", "line": 3}

rdma := object.union(pod, {"resources": {"rdma/hca": "1"}})

job(ls) := {"profile": "launch", "launches": ls}

shm(l) := all if all := {f.severity | some f in limits.shm} with input as job([l])

memlock(ls) := all if all := {f.severity | some f in limits.memlock} with input as job(ls)

devices(l) := all if all := {f.severity | some f in limits.devices} with input as job([l])

test_shm if {
	shm(pod) == {"high"}
	shm(object.union(pod, {"gpus": 1})) == set()
	shm(object.union(pod, {"shm_bytes": 67108864})) == {"high"}
	shm(object.union(pod, {"shm_mounted": true})) == set()
	shm(object.union(pod, {"shm_mounted": true, "mounts": ["emptyDir:/dev/shm"]})) == {"medium"}
	linked := {
		"gpus": {"devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}]},
		"links": {"pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "kind": "gpu-gpu", "nvlinks": 18}]},
	}
	{f.severity | some f in limits.shm} == {"medium"} with input as object.union(job([pod]), linked)
}

test_ipc_lock if {
	memlock([rdma]) == {"high"}
	memlock([object.union(rdma, {"cap_add": ["IPC_LOCK"]})]) == set()
	memlock([object.union(rdma, {"privileged": true})]) == set()
	memlock([pod]) == set()
	memlock([object.union(rdma, {"cap_add": ["IPC_LOCK"], "user": "1000"})]) == {"medium"}
	memlock([object.union(rdma, {"cap_add": ["IPC_LOCK"], "user": "0"})]) == set()
	memlock([object.union(rdma, {"kind": "docker-run"})]) == {"high"}
	memlock([object.union(rdma, {"kind": "docker-run", "memlock_bytes": -1})]) == set()
}

test_stated_limit if {
	low := object.union(pod, {"kind": "compose", "memlock_bytes": 65536})
	memlock([low]) == set()
	memlock([object.union(low, {"nodes": 2})]) == {"high"}
	memlock([object.union(low, {"devices": ["/dev/infiniband"]})]) == {"high"}
	{f.severity | some f in limits.memlock} == {"high"} with input as object.union(job([low]), {"pci": {"devices": [{"class": "0x020700"}]}})
}

test_script if {
	limit := {"kind": "shell", "memlock_bytes": 65536, "source": "job.sh", "line": 5}
	memlock([limit]) == {"low"}
	memlock([limit, {"kind": "slurm", "nodes": 2, "source": "job.sh", "line": 1}]) == {"high"}
	memlock([object.union(limit, {"memlock_bytes": -1})]) == set()
}

test_devices if {
	devices(object.union(pod, {"variables": {"NCCL_NET": "IB"}})) == {"high"}
	devices(object.union(pod, {"variables": {"NCCL_IB_HCA": "mlx5"}})) == {"medium"}
	devices(object.union(pod, {"variables": {"NCCL_NET": "Socket", "NCCL_IB_HCA": ""}})) == set()
	devices(object.union(rdma, {"variables": {"NCCL_NET": "IB"}})) == set()
	devices(object.union(pod, {"privileged": true, "variables": {"NCCL_NET": "IB"}})) == set()
	devices(object.union(pod, {"resources": {"vpc.amazonaws.com/efa": "4"}, "variables": {"NCCL_NET": "IB"}})) == set()
}

test_target if {
	count(limits.devices) == 1 with input as on_rdma(object.union(pod, {"nodes": 2}))
	count(limits.devices) == 1 with input as on_rdma(object.union(pod, {"nodes": 2, "gpus": -1}))
	count(limits.devices) == 0 with input as on_rdma(pod)
	count(limits.devices) == 0 with input as on_rdma(object.union(rdma, {"nodes": 2}))
}

test_enroot if {
	devices(settings("yes")) == {"low"}
	devices(settings("no")) == set()
}

on_rdma(l) := object.union(job([l]), {"pci": {"devices": [{"class": "0x020700"}]}})

settings(value) := {"kind": "enroot-conf", "variables": {"ENROOT_RESTRICT_DEV": value}, "source": "enroot.conf", "line": 1}
