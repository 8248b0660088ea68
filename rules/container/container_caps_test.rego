package gpudoctor.rules.container_caps_test

import data.gpudoctor.rules.container_caps

nodes(names) := [{"path": sprintf("/dev/%s", [name]), "access": "rw"} | some name in names]

# machine is a container with two GPUs of a vendor that works.
machine(vendor, given) := {
	"gpus": {"nvml": {"nvidia": "ok", "amd": "not-found"}[vendor], "devices": [
	{"address": address, "vendor": vendor, "in_pci": true, "in_nvml": vendor == "nvidia"} |
		some address in ["0000:01:00.0", "0000:02:00.0"]
	]},
	"container": {
		"inside": true, "seccomp": "filter", "get_mempolicy": "ok", "device_nodes": nodes(given),
		"driver_devices": [{"address": sprintf("0000:0%d:00.0", [i + 1]), "minor": i} | some i in [0, 1]; vendor == "nvidia"],
	},
	"libraries": {"files": []},
}

whole := machine("nvidia", ["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"])
no_uvm := machine("nvidia", ["nvidia0", "nvidiactl"])
outside := {"container": {"inside": false}}

closed(paths) := {"container": {"device_nodes": [{"path": path, "access": "none"} | some path in paths]}}
env(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]}}

said(id) := logged([id])

logged(ids) := {"logs": {"messages": [{
	"id": id, "program": "x", "role": "category", "text": "said", "fields": {}, "source": "a.log", "line": 3, "order": 2, "count": 1, "ranks": 1,
} |
	some id in ids
]}}

launched(l) := {"launches": [object.union({"image": "x", "source": "a.txt", "line": 1}, l)]}
grades(document) := {object.get(f, "grade", object.get(f, "id", "")) | some f in container_caps.findings with input as document}

only(document) := f if {
	found := container_caps.findings with input as document
	count(found) == 1
	some f in found
}

active := {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active", "source": "host.txt", "line": 1}]}}
none_given := object.union(machine("nvidia", []), {"gpus": {"nvml": "not-found"}})

test_findings if {
	every row in [
		[[no_uvm, {"transfers": {"outcome": "ok", "devices": [{"address": "0000:01:00.0"}]}}], ""],
		# On a bare machine the driver makes the nodes when they are first needed.
		[[no_uvm, outside, said("cuda-unknown-error")], "unlisted"],
		[[whole, outside, said("cuda-unknown-error")], ""],
		[[whole, closed(["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"])], "closed"],
		[[machine("amd", []), closed(["/dev/kfd", "/dev/dri/renderD128"])], "closed"],
		[[closed(["/dev/kfd"]), said("hip-no-device")], "closed"],
		[[closed(["/dev/kfd"])], ""],
		[[machine("amd", ["dri/renderD128"])], "half"],
		[[none_given, env("NVIDIA_VISIBLE_DEVICES", "void")], ""],
		[[whole, {"pci": {"devices": [{"address": "0000:81:00.0", "class": "0x020700", "kind": "nic", "vendor": "0x15b3"}]}}], "infiniband"],
		# What the description of a start says.
		[[said("cuda-insufficient-driver"), launched({"kind": "docker-run"})], "without-gpus"],
		[[said("nccl-ib-no-device"), env("NCCL_IB_HCA", "mlx5_0"), launched({"kind": "docker-run", "gpus": -1})], "rdma-not-passed"],
		[[said("nccl-ib-no-device"), active, launched({"kind": "docker-run", "gpus": -1})], ""],
		[[logged(["nccl-ib-no-device", "rdma-nodes-not-listed"]), active, env("NCCL_IB_HCA", "mlx5_0")], "rdma-not-passed"],
		[[logged(["nccl-ib-no-device", "rdma-nodes-not-listed"]), env("NCCL_IB_HCA", "mlx5_0")], ""],
		[[said("nccl-ib-no-device"), active, launched({"kind": "slurm", "nodes": 2, "mounts": ["/lustre:/data"]})], "rdma-not-passed"],
		[[said("nccl-ib-no-device"), active, launched({"kind": "slurm", "nodes": 2, "mounts": ["/dev/infiniband:/dev/infiniband"]})], ""],
	] {
		grades(object.union_n(row[0])) == {g | some g in [row[1]]; g != ""}
	}
	only(object.union(no_uvm, {"transfers": {"outcome": "error", "error_code": 999}})).accounts_for == [{"probe": true}]
	only(machine("amd", ["kfd"])).params.nodes == ["/dev/dri"]
	only(object.union_n([whole, outside, closed(["/dev/nvidia0"])])).remedies == ["grant-device-access"]
	only(object.union_n([whole, closed(["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"])])).remedies == ["pass-device-nodes"]
	only(object.union_n([machine("amd", []), closed(["/dev/kfd", "/dev/dri/renderD128"])])).remedies == ["pass-amd-devices"]
}

nccl(version) := {"libraries": {"files": [{"kind": "libnccl", "path": "/x/libnccl.so.2", "version": version, "found_by": "python"}]}}
blocked(version) := object.union_n([whole, {"container": {"get_mempolicy": "EPERM"}}, nccl(version)])

# tried is a container whose seccomp filter denies NUMA calls, with so many GPUs.
tried(gpus, errno) := {
	"gpus": {"nvml": "ok", "devices": [g | some i, g in whole.gpus.devices; i < gpus]},
	"container": object.union(whole.container, {
		"get_mempolicy": errno,
		"attempts": {},
	}),
}

test_numa_calls if {
	every row in [
		[[blocked("2.23.4")], set()],
		[[blocked("2.26.2"), env("NCCL_CUMEM_HOST_ENABLE", "0")], set()],
		[[blocked("2.26.2"), env("NCCL_CUMEM_ENABLE", "0")], set()],
		[[tried(2, "SIGSYS")], {"numa"}],
		# A kernel without NUMA.
		[[tried(2, "ENOSYS")], set()],
	] {
		grades(object.union_n(row[0])) == row[1]
	}
	f := only(tried(1, "EPERM"))
	[f.about.blocked, count(f.evidence)] == ["get_mempolicy: EPERM", 1]
}

test_unresolvable if {
	count(container_caps.findings) == 0 with input as {}
	container_caps.asks == {"libraries"} with input as json.remove(blocked("2.26.2"), ["libraries"])
	count(container_caps.missing) == 1 with input as json.remove(blocked("2.26.2"), ["libraries/files/0/version"])
}
