package gpudoctor.lib.container_gpus_test

import data.gpudoctor.lib.container_gpus

inside(variables, nodes, files) := {
	"container": {"inside": true, "device_nodes": nodes, "driver_devices": [{"address": "0000:01:00.0"}]},
	"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true} | some name, value in variables]},
	"libraries": {"files": files},
	"gpus": {"nvml": "not-found", "devices": []},
}

node := {"path": "/dev/nvidia0", "access": "rw"}

test_none_asked_for if {
	container_gpus.none_asked_for with input as inside({"NVIDIA_VISIBLE_DEVICES": "void"}, [], [])
	not container_gpus.none_asked_for with input as inside({"NVIDIA_VISIBLE_DEVICES": "void"}, [node], [])
	not container_gpus.none_asked_for with input as inside({"NVIDIA_VISIBLE_DEVICES": "all"}, [], [])
	outside := object.union(inside({"NVIDIA_VISIBLE_DEVICES": "void"}, [], []), {"container": {"inside": false}})
	not container_gpus.none_asked_for with input as outside
}

cuda(stub) := {"kind": "libcuda", "path": "/usr/lib/libcuda.so.1", "stub": stub}

test_left_out if {
	container_gpus.left_out == {"compute": "libcuda"} with input as inside({"NVIDIA_DRIVER_CAPABILITIES": "utility, video"}, [node], [])
	container_gpus.left_out == {"compute": "libcuda"} with input as inside({"NVIDIA_DRIVER_CAPABILITIES": "utility"}, [node], [cuda(true)])
	container_gpus.left_out == {} with input as inside({"NVIDIA_DRIVER_CAPABILITIES": "utility"}, [node], [cuda(false)])
	container_gpus.left_out == {} with input as inside({"NVIDIA_DRIVER_CAPABILITIES": "all"}, [node], [])
	container_gpus.left_out == {} with input as inside({"NVIDIA_DRIVER_CAPABILITIES": ""}, [node], [])
}

pod(changes) := {"launches": [object.union({"kind": "kubernetes", "gpus": 1, "resources": {"nvidia.com/gpu": "1"}}, changes)]}

test_choosing_pods if {
	count(container_gpus.choosing_pods) == 1 with input as pod({"variables": {"NVIDIA_VISIBLE_DEVICES": "0"}})
	count(container_gpus.choosing_pods) == 0 with input as pod({"variables": {"NVIDIA_VISIBLE_DEVICES": "all"}})
	count(container_gpus.choosing_pods) == 0 with input as pod({"variables": {"NVIDIA_VISIBLE_DEVICES": "0"}, "kind": "compose"})
}

test_privileged_pods if {
	count(container_gpus.privileged_pods) == 1 with input as pod({"privileged": true})
	count(container_gpus.privileged_pods) == 0 with input as pod({})
	count(container_gpus.privileged_pods) == 0 with input as pod({"privileged": true, "gpus": 0})
}
