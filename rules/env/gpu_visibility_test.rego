package gpudoctor.rules.gpu_visibility_test

import data.gpudoctor.lib.visible_devices
import data.gpudoctor.rules.gpu_visibility

env(settings) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true} | some name, value in settings]}}

# machine has four GPUs and these variables.
machine(vendor, settings) := object.union(env(settings), {
	"gpus": {"nvml": {"nvidia": "ok", "amd": "not-found"}[vendor], "devices": [
	{"address": sprintf("0000:0%d:00.0", [i]), "vendor": vendor, "uuid": sprintf("GPU-%d0-a", [i]), "in_pci": true, "in_nvml": vendor == "nvidia"} |
		some i in numbers.range(0, 3)
	]},
	"container": {"inside": false, "device_nodes": []},
})

cuda(value) := machine("nvidia", {"CUDA_VISIBLE_DEVICES": value})
nodes(names) := [{"path": sprintf("/dev/%s", [name]), "access": "rw"} | some name in names]
inside(settings, given) := object.union(machine("nvidia", settings), {"container": {"inside": true, "device_nodes": nodes(given)}})
grades(document) := {object.get(f, "grade", "ranks-on-one") | some f in gpu_visibility.findings with input as document}

only(document) := f if {
	fs := gpu_visibility.findings with input as document
	count(fs) == 1
	some f in fs
}

test_lists if {
	every row in [
		[cuda(""), "hides"],
		[cuda("MIG-12345678"), ""],
		[cuda("GPU-ffff"), "hides"],
		[cuda("GPU-10"), ""],
		# Without UUIDs to compare with, a UUID passes.
		[json.remove(cuda("GPU-ffff"), ["gpus/devices/0/uuid"]), ""],
		[cuda("3, 2, 01, +0"), ""],
		[cuda("0,1,8,2"), "cut"],
		[object.union(cuda(""), {"gpus": {"nvml": "not-found", "devices": []}}), ""],
		# In a container the GPUs that were given count, under numbers from 0 on.
		[object.union(inside({"CUDA_VISIBLE_DEVICES": "2,3"}, ["nvidia2", "nvidia3"]), {"gpus": {"nvml": "not-built"}}), "hides"],
		[object.union(cuda("2,3"), {"gpus": {"nvml": "not-built"}}), ""],
		[machine("amd", {"HIP_VISIBLE_DEVICES": "-1"}), "hides"],
	] {
		grades(row[0]) == {g | some g in [row[1]]; g != ""}
	}
	grades(cuda("0,1,-1")) == set()
}

# HIP counts from 0 again among what ROCr left.
test_both_of_rocm if {
	grades(machine("amd", {"HIP_VISIBLE_DEVICES": "2,3", "ROCR_VISIBLE_DEVICES": "2,3"})) == {"hides"}
	f := only(object.union(machine("amd", {"ROCR_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "0,1"}), log([ordinal])))
	[f.grade, count(f.messages)] == ["cut", 1]
}

test_what_the_container_toolkit_is_asked_for if {
	every row in [
		[inside({"NVIDIA_DRIVER_CAPABILITIES": "utility"}, ["nvidia0"]), [{"kind": "libcuda", "path": "/x", "stub": true}], {"capabilities"}],
		[inside({"NVIDIA_DRIVER_CAPABILITIES": "utility"}, ["nvidia0"]), [{"kind": "libcuda", "path": "/x"}], set()],
		[inside({"NVIDIA_DRIVER_CAPABILITIES": "all"}, ["nvidia0"]), [], set()],
		[inside({"NVIDIA_DRIVER_CAPABILITIES": ""}, ["nvidia0"]), [], set()],
	] {
		grades(object.union(row[0], {"libraries": {"files": row[1]}})) == row[2]
	}
}

test_what_texts_say_is_not_mounted if {
	every row in [
		["utility", "torch-no-driver", {"capabilities"}],
		["compute", "nvidia-smi-missing", {"capabilities"}],
		["compute", "torch-no-driver", set()],
		["all", "nvidia-smi-missing", set()],
	] {
		grades(object.union(env({"NVIDIA_DRIVER_CAPABILITIES": row[0]}), log([message(row[1], {}, 1)]))) == row[2]
	}
}

test_fires_when_cuda_offers_none if {
	only(object.union(machine("nvidia", {}), {"transfers": {"outcome": "ok", "devices": []}})).grade == "cuda-none"
}

# What follows is read from texts.

message(id, fields, order) := {
	"id": id, "program": split(id, "-")[0], "role": "category", "text": "said", "fields": fields,
	"source": "a.log", "line": 3, "order": order, "count": 1, "ranks": 1,
}

log(messages) := {"logs": {"messages": messages}}

ordinal := message("hip-invalid-device", {}, 2)

launched(l) := {"launches": [object.union({"name": "b", "source": "a.txt", "line": 1}, l)]}

device(index, architecture) := message("ggml-rocm-device", {"name": architecture, "architecture": architecture}, index)

listed := [device(0, "gfx1201"), device(1, "gfx1036")]
crash := message("process-segmentation-fault", {}, 5)

desktop(first, second) := {"gpus": {"devices": [
	{"address": "0000:78:00.0", "vendor": "amd", "architecture": "gfx1036", "integrated": true, "kfd": {"node": first}},
	{"address": "0000:03:00.0", "vendor": "amd", "architecture": "gfx1201", "kfd": {"node": second}},
]}}

# Ranks that name the GPU that they take: a list of GPUs, or a host, of its own makes it another.
test_ranks_on_one_gpu if {
	says := {"id": "rank-chooses-gpu", "role": "setting", "text": "rank 0", "order": 0, "fields": {"on": "node7", "of": "0", "list": "0,1", "local": "0"}}
	found := {fields: gs |
		some fields in [{}, {"local": "1"}, {"list": "1,0"}, {"on": "node8"}, {"of": "0"}]
		gs := grades(log([says, object.union(says, {"order": 1, "fields": object.union({"of": "1"}, fields)})]))
	}
	{fields | some fields, gs in found; gs == {"ranks-on-one"}} == {{}}
}

test_integrated_gpu if {
	only(log(listed)).severity == "low"
	only(log(array.concat(listed, [crash]))).severity == "critical"
	every m in listed {
		grades(log([m, crash])) == set()
	}
	every row in [
		[log([crash]), {}, {"integrated": "possible"}],
		[log([crash]), env({"HIP_VISIBLE_DEVICES": "0"}), {}],
		[log([message("rocblas-no-kernels", {"architecture": "gfx1036"}, 0)]), {}, {"integrated": "likely"}],
		[{}, {}, {}],
	] {
		row[2] == {f.grade: object.get(f, "confidence", "") | some f in gpu_visibility.findings} with input as object.union_n([desktop(2, 1), row[0], row[1]])
	}
}

test_a_gpu_of_another_rank if {
	refusal := log([message("nccl-ipc-open-failed", {"error": "11"}, 3)])
	every row in [
		[log([message("nccl-ipc-open-failed", {"error": "101"}, 3)]), true],
		[refusal, false],
		[object.union(refusal, env({"CUDA_VISIBLE_DEVICES": "0"})), true],
		[log([message("openmpi-cuda-ipc-failed", {"error": "1"}, 3), message("slurm-binds-gpus", {"bind": "map_gpu"}, 1)]), true],
		[log([message("openmpi-cuda-ipc-failed", {"error": "1"}, 3), message("slurm-binds-gpus", {"bind": ""}, 1), message("slurm-binds-gpus", {"bind": "none"}, 2)]), false],
		[log([message("cray-gpu-ipc-failed", {"error": "invalid argument"}, 3)]), true],
		[object.union(launched({"kind": "slurm", "gpus": 1, "processes": 4}), log([message("openmpi-cuda-ipc-failed", {"error": "1"}, 3)])), true],
		[object.union(launched({"kind": "slurm", "gpus": 4, "processes": 4}), log([message("openmpi-cuda-ipc-failed", {"error": "1"}, 3)])), false],
	] {
		{f.id | some f in gpu_visibility.findings} == {g | some g in ["gpu-of-another"]; row[1]} with input as row[0]
	}
}

test_launches if {
	grades(object.union(log([message("torch-no-driver", {}, 2)]), launched({"kind": "slurm", "image": "ubuntu.sqsh", "gpus": 2}))) == {"no-driver"}
}

test_more_ranks_than_gpus_told if {
	ranks := launched({"kind": "torchrun", "processes": 8, "source": "a.log"})
	every n, found in {"4": {"told"}, "8": set()} {
		{f.id | some f in gpu_visibility.findings} == found with input as object.union(ranks, log([message("prose-gpus", {"gpus": n}, 1)]))
	}
}

test_unresolvable if {
	visible_devices.chooser == "CUDA_VISIBLE_DEVICES" with input as {}
}
