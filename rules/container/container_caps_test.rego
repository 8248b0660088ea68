package gpudoctor.rules.container_caps_test

import data.gpudoctor.rules.container_caps

nodes(paths) := [{"path": p, "access": "rw"} | some p in paths]

gpus(vendor) := [
	{"address": "0000:01:00.0", "vendor": vendor, "in_pci": true, "in_nvml": true},
	{"address": "0000:02:00.0", "vendor": vendor, "in_pci": true, "in_nvml": true},
]

whole := ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"]

# machine is a container with two GPUs that works.
machine := {
	"gpus": {"nvml": "ok", "devices": gpus("nvidia")},
	"container": {
		"inside": true,
		"seccomp": "filter",
		"get_mempolicy": "ok",
		"device_nodes": nodes(whole),
		"driver_devices": [{"address": "0000:01:00.0", "minor": 0}, {"address": "0000:02:00.0", "minor": 1}],
	},
	"env": {"variables": []},
	"libraries": {"files": []},
}

with_container(changes) := object.union(machine, {"container": changes})

with_variable(document, name, value) := object.union(document, {"env": {"variables": [{
	"name": name,
	"value": value,
	"source": "environment",
	"effective": true,
}]}})

amd(paths) := object.union(machine, {
	"gpus": {"nvml": "not-found", "devices": gpus("amd")},
	"container": {"device_nodes": nodes(paths), "driver_devices": []},
})

subjects(document) := {f.subject | some f in container_caps.findings with input as document}

test_silent_when_whole if {
	subjects(machine) == set()
	count(container_caps.missing) == 0 with input as machine
	subjects(amd(["/dev/kfd", "/dev/dri/renderD128"])) == set()
}

test_fires_without_uvm if {
	document := with_container({"device_nodes": nodes(["/dev/nvidia0", "/dev/nvidiactl"])})
	some f in container_caps.findings with input as document
	f.subject == "/dev/nvidia-uvm"
	f.confidence == "likely"
	f.remedies == ["pass-device-nodes"]
	some g in container_caps.findings with input as object.union(document, {"transfers": {"outcome": "error", "error_code": 999}})
	g.confidence == "confirmed"
}

test_silent_when_cuda_started if {
	document := with_container({"device_nodes": nodes(["/dev/nvidia0", "/dev/nvidiactl"])})
	subjects(object.union(document, {"transfers": {"outcome": "ok", "devices": [{"address": "0000:01:00.0"}]}})) == set()
}

# On a bare machine the driver makes the nodes when they are first needed.
test_silent_outside_without_uvm if {
	subjects(with_container({"inside": false, "device_nodes": nodes(["/dev/nvidia0", "/dev/nvidiactl"])})) == set()
}

test_fires_on_closed_nodes if {
	closed := array.concat(nodes(["/dev/nvidiactl", "/dev/nvidia-uvm"]), [{"path": "/dev/nvidia0", "access": "none"}])
	some f in container_caps.findings with input as with_container({"device_nodes": closed})
	f.subject == "/dev"
	contains(f.message, "a device cgroup")
	document := object.union(amd([]), {"container": {"inside": false, "device_nodes": [
		{"path": "/dev/kfd", "access": "none"},
		{"path": "/dev/dri/renderD128", "access": "none"},
	]}})
	some g in container_caps.findings with input as document
	contains(g.message, "groups render and video")
	g.remedies == ["grant-device-access"]
	some h in container_caps.findings with input as object.union(document, {"container": {"inside": true}})
	h.remedies == ["pass-amd-devices"]
	contains(g.message, "/dev/dri/renderD128 and /dev/kfd")
}

test_fires_on_half_of_amd if {
	subjects(amd(["/dev/kfd"])) == {"/dev/dri/renderD*"}
	some f in container_caps.findings with input as amd(["/dev/kfd"])
	f.params.nodes == ["/dev/dri"]
	subjects(amd(["/dev/dri/renderD128"])) == {"/dev/kfd"}
}

test_fires_when_none_was_passed if {
	document := object.union(with_container({"device_nodes": []}), {"gpus": {"nvml": "not-found"}})
	some f in container_caps.findings with input as document
	f.subject == "/dev/nvidia*"
	f.confidence == "possible"
	f.params.nodes == ["/dev/nvidia0", "/dev/nvidia1"]

	# An explicit none is for gpu-visibility to say.
	subjects(with_variable(document, "NVIDIA_VISIBLE_DEVICES", "void")) == set()
}

test_fires_when_one_of_all_is_absent if {
	document := with_container({"missing_nodes": ["/dev/nvidia1"]})
	subjects(with_variable(document, "NVIDIA_VISIBLE_DEVICES", "all")) == {"/dev/nvidia*"}
	subjects(with_variable(document, "NVIDIA_VISIBLE_DEVICES", "0")) == set()
	subjects(document) == set()
}

test_infiniband_without_nodes_is_low if {
	document := object.union(machine, {"pci": {"devices": [{
		"address": "0000:81:00.0",
		"class": "0x020700",
		"kind": "nic",
		"vendor": "0x15b3",
	}]}})
	some f in container_caps.findings with input as document
	f.subject == "/dev/infiniband"
	f.severity == "low"
}

nccl(version) := {"libraries": {"files": [{"kind": "libnccl", "path": "/x/libnccl.so.2", "version": version, "found_by": "python"}]}}

blocked(version) := object.union(with_container({"get_mempolicy": "EPERM"}), nccl(version))

test_fires_for_nccl_without_fallback if {
	some f in container_caps.findings with input as blocked("2.26.2")
	f.subject == "SYS_NICE"
	f.severity == "high"
	f.remedies[0] == "add-sys-nice"
	contains(f.message, "NCCL 2.26.2")
}

# Where GPUs reach each other directly, host memory is the exception.
test_medium_with_nvlink if {
	document := object.union(blocked("2.25.1"), {"links": {"pairs": [{
		"a": "0000:01:00.0",
		"b": "0000:02:00.0",
		"kind": "gpu-gpu",
		"nvlinks": 18,
	}]}})
	some f in container_caps.findings with input as document
	f.severity == "medium"
	proven := object.union(blocked("2.25.1"), {"transfers": {"outcome": "ok", "devices": [{"address": "0000:01:00.0"}, {"address": "0000:02:00.0"}], "transfers": [{"test": "copy", "source": "0000:01:00.0", "destination": "0000:02:00.0", "outcome": "ok", "gbps": 50}]}})
	some g in container_caps.findings with input as proven
	g.severity == "medium"
}

test_silent_for_nccl_with_fallback if {
	subjects(blocked("2.27.3")) == set()
	subjects(blocked("2.23.4")) == set()
	subjects(with_variable(blocked("2.26.2"), "NCCL_CUMEM_HOST_ENABLE", "0")) == set()
	subjects(with_variable(blocked("2.26.2"), "NCCL_CUMEM_ENABLE", "0")) == set()
}

test_info_with_several_nodes if {
	document := object.union(blocked("2.27.3"), {"numa": {"nodes": [{"id": 0, "cpus": "0-15"}, {"id": 1, "cpus": "16-31"}]}})
	some f in container_caps.findings with input as document
	f.severity == "info"
	f.remedies == ["add-sys-nice"]
}

test_unresolvable_without_container if {
	count(container_caps.missing) == 1 with input as {}
	count(container_caps.findings) == 0 with input as {}
	count(container_caps.missing) == 1 with input as json.remove(machine, ["container/device_nodes"])
}

test_unresolvable_without_libraries if {
	document := json.remove(with_container({"get_mempolicy": "EPERM"}), ["libraries"])
	count(container_caps.missing) == 1 with input as document
}

test_not_applicable_without_gpus if {
	document := {"gpus": {"nvml": "not-found", "devices": []}, "container": {"inside": false, "device_nodes": []}}
	count(container_caps.not_applicable) == 1 with input as document
	subjects(document) == set()
}

message(id, fields) := {"id": id, "program": "x", "role": "cause", "text": id, "fields": fields, "source": "a.log", "line": 1, "order": 5, "count": 1}

judged(document) := {[f.subject, f.severity, f.confidence] | some f in container_caps.findings with input as document}

told(m) := {"logs": {"messages": [m]}}

# A listing that does not tell what a user may do is no refusal.
test_silent_for_unknown_access if {
	judged({
		"container": {"inside": true, "device_nodes": [{"path": "/dev/nvidia0", "access": ""}, {"path": "/dev/nvidiactl", "access": ""}, {"path": "/dev/nvidia-uvm", "access": ""}]},
		"gpus": {"devices": [{"address": "0000:01:00.0", "vendor": "nvidia"}]},
	}) == set()
}

test_a_container_without_gpus if {
	document := object.union(told(message("cuda-insufficient-driver", {})), {"launches": [{"kind": "docker-run", "image": "x", "source": "a.txt", "line": 1}]})
	judged(document) == {["/dev/nvidia*", "critical", "likely"]}
	judged(told(message("cuda-insufficient-driver", {}))) == set()
}

remark(id, fields) := {"id": id, "program": "x", "role": "category", "text": "said", "fields": fields, "source": "a.log", "line": 3, "order": 2, "count": 1, "ranks": 1}

test_a_listing_without_uvm if {
	document := {
		"container": {"device_nodes": [{"path": "/dev/nvidia0", "access": "rw"}, {"path": "/dev/nvidiactl", "access": "rw"}]},
		"logs": {"messages": [remark("cuda-unknown-error", {})]},
	}
	some f in container_caps.findings with input as document
	f.subject == "/dev/nvidia-uvm"
	f.remedies[0] == "pass-device-nodes"
	count(container_caps.findings) == 0 with input as object.remove(document, ["logs"])
	whole_listing := {"container": {"device_nodes": [{"path": path, "access": "rw"} | some path in ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"]]}}
	count(container_caps.findings) == 0 with input as object.union(document, whole_listing)
}

test_a_container_without_the_machines_rdma_devices if {
	document := {
		"launches": [{"kind": "docker-run", "name": "node", "gpus": -1, "network": "host", "source": "run.sh", "line": 1}],
		"env": {"variables": [{"name": "NCCL_IB_HCA", "value": "mlx5_0", "source": "run.sh", "effective": true}]},
		"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active", "source": "host.txt", "line": 1}]},
		"logs": {"messages": [remark("nccl-ib-no-device", {})]},
	}
	some f in container_caps.findings with input as document
	f.subject == "/dev/infiniband"
	f.severity == "high"
	f.remedies[0] == "pass-rdma-devices"

	# A job that asks for none, and a container that was given them.
	count(container_caps.findings) == 0 with input as object.remove(document, ["env"])
	count(container_caps.findings) == 0 with input as object.union(document, {"launches": [{"kind": "docker-run", "name": "node", "gpus": -1, "devices": ["/dev/infiniband"], "source": "run.sh", "line": 1}]})
}

empty_list := {"logs": {"messages": [{
	"id": "ofi-fi-info-empty", "program": "libfabric", "role": "setting", "text": "fi_getinfo: -61 (No data available)",
	"source": "in.txt", "line": 2, "order": 0, "count": 1, "ranks": 1,
}]}}

test_efa_outside_of_the_container_alone if {
	run := {"launches": [{"kind": "docker-run", "image": "x", "gpus": -1, "source": "run.txt", "line": 1}]}
	outside := {"nics": {"providers": ["efa"]}}
	judged(object.union(object.union(empty_list, run), outside)) == {["/dev/infiniband", "high", "likely"]}
	judged(object.union(object.union(empty_list, run), {"env": {"variables": [{"name": "FI_PROVIDER", "value": "efa", "effective": true}]}})) == {["/dev/infiniband", "high", "likely"]}
	judged(object.union(empty_list, run)) == set()
	judged(object.union(empty_list, outside)) == set()
	passed := {"launches": [object.union(run.launches[0], {"devices": ["/dev/infiniband/uverbs0"]})]}
	judged(object.union(object.union(empty_list, passed), outside)) == set()
}

test_kfd_of_another_group if {
	nodes := {"container": {"device_nodes": [{"path": "/dev/kfd", "access": "none"}]}}
	blind := {"logs": {"messages": [remark("hip-no-device", {})]}}
	some f in container_caps.findings with input as object.union(nodes, blind)
	[f.subject, f.remedies] == ["/dev", ["grant-device-access"]]
	count(container_caps.findings) == 0 with input as nodes
}

test_a_container_without_devices_and_no_other_network if {
	document := {
		"launches": [{"kind": "docker-inspect", "network": "host", "ipc": "host", "source": "i.txt", "line": 1}],
		"env": {"variables": [{"name": "NCCL_NET", "value": "IB", "source": "a.log", "effective": true}]},
		"logs": {"messages": [remark("nccl-network-not-found", {})]},
	}
	some f in container_caps.findings with input as document
	[f.subject, f.severity, f.confidence] == ["/dev/infiniband", "critical", "confirmed"]
	count(container_caps.findings) == 0 with input as object.remove(document, ["env"])
	count(container_caps.findings) == 0 with input as object.union(document, {"launches": [{"kind": "docker-inspect", "devices": ["/dev/infiniband/uverbs0"], "source": "i.txt", "line": 1}]})
}

test_a_job_of_slurm_in_a_container_without_rdma if {
	document := {
		"launches": [{"kind": "slurm", "image": "nvcr.io/x", "nodes": 2, "mounts": ["/lustre:/data"], "source": "run.sh", "line": 1}],
		"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active", "source": "host.txt", "line": 1}]},
		"logs": {"messages": [remark("nccl-ib-no-device", {})]},
	}
	some f in container_caps.findings with input as document
	[f.subject, f.severity] == ["/dev/infiniband", "high"]
	contains(f.message, "the job's container")
	given := object.union(document, {"launches": [{"kind": "slurm", "image": "nvcr.io/x", "nodes": 2, "mounts": ["/dev/infiniband:/dev/infiniband"], "source": "run.sh", "line": 1}]})
	count(container_caps.findings) == 0 with input as given
}
