package gpudoctor.rules.gpu_visibility_test

import data.gpudoctor.rules.gpu_visibility

setting(name, value) := {"name": name, "value": value, "source": "environment", "effective": true}

gpus(vendor) := [g |
	some i in numbers.range(0, 3)
	g := {
		"address": sprintf("0000:0%d:00.0", [i + 1]),
		"vendor": vendor,
		"uuid": sprintf("GPU-%d0000000-aaaa", [i]),
		"in_pci": true,
		"in_nvml": vendor == "nvidia",
	}
]

# machine has four GPUs and these variables.
machine(settings) := {
	"gpus": {"nvml": "ok", "devices": gpus("nvidia")},
	"container": {"inside": false, "device_nodes": []},
	"env": {"variables": settings},
}

cuda(value) := machine([setting("CUDA_VISIBLE_DEVICES", value)])

amd(settings) := object.union(machine(settings), {"gpus": {"nvml": "not-found", "devices": gpus("amd")}})

found(document) := {[f.subject, object.get(f, "severity", "high"), object.get(f, "confidence", "likely")] |
	some f in gpu_visibility.findings with input as document
}

test_fires_when_all_are_hidden if {
	every value in ["", "-1", "NoDevFiles", "7", "4,5", "GPU-ffff"] {
		found(cuda(value)) == {["CUDA_VISIBLE_DEVICES", "high", "likely"]}
	}
}

test_confirmed_by_the_probe if {
	document := object.union(cuda("-1"), {"transfers": {"outcome": "error", "error_code": 100}})
	found(document) == {["CUDA_VISIBLE_DEVICES", "high", "confirmed"]}
}

test_a_bad_entry_ends_the_list if {
	found(cuda("0,1,-1,2")) == {["CUDA_VISIBLE_DEVICES", "medium", "likely"]}
	found(cuda("0,1,8,2")) == {["CUDA_VISIBLE_DEVICES", "medium", "likely"]}
	some f in gpu_visibility.findings with input as cuda("0,1,8,2")
	contains(f.message, "2 of 4 remain")

	# One that ends in -1 was cut on purpose.
	found(cuda("0,1,-1")) == {["CUDA_VISIBLE_DEVICES", "low", "likely"]}
}

test_twice if {
	found(cuda("0,1,2,2")) == {["CUDA_VISIBLE_DEVICES", "high", "possible"]}
}

test_a_part_is_info if {
	found(cuda("2,3")) == {["CUDA_VISIBLE_DEVICES", "info", "likely"]}
	found(cuda("GPU-10000000")) == {["CUDA_VISIBLE_DEVICES", "info", "likely"]}
}

test_silent_when_all_are_chosen if {
	found(cuda("0,1,2,3")) == set()
	found(cuda("3, 2, 01, +0")) == set()
	found(machine([])) == set()
	found(cuda("MIG-12345678")) == set()
}

# Without UUIDs to compare with, a UUID passes.
test_silent_on_a_uuid_that_cannot_be_compared if {
	bare := object.union(cuda("GPU-ffff"), {"gpus": {"devices": [{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true}]}})
	found(bare) == set()
}

test_silent_without_gpus if {
	laptop := object.union(cuda(""), {"gpus": {"nvml": "not-found", "devices": []}})
	found(laptop) == set()
	count(gpu_visibility.not_applicable) == 1 with input as laptop
}

# In a container the GPUs that were given count, under numbers from 0 on.
test_numbers_in_a_container if {
	document := object.union(cuda("2,3"), {
		"gpus": {"nvml": "not-built"},
		"container": {"inside": true, "device_nodes": [{"path": "/dev/nvidia2", "access": "rw"}, {"path": "/dev/nvidia3", "access": "rw"}]},
	})
	found(document) == {["CUDA_VISIBLE_DEVICES", "high", "likely"]}
	outside := object.union(cuda("2,3"), {"gpus": {"nvml": "not-built"}})
	found(outside) == {["CUDA_VISIBLE_DEVICES", "info", "likely"]}
}

test_amd if {
	found(amd([setting("HIP_VISIBLE_DEVICES", "-1")])) == {["HIP_VISIBLE_DEVICES", "high", "likely"]}
	found(amd([setting("CUDA_VISIBLE_DEVICES", "9")])) == {["CUDA_VISIBLE_DEVICES", "high", "likely"]}
	found(amd([setting("ROCR_VISIBLE_DEVICES", "0,1,2,3")])) == set()
}

# HIP counts anew among what ROCr left.
test_both_of_rocm if {
	hidden := amd([setting("HIP_VISIBLE_DEVICES", "2,3"), setting("ROCR_VISIBLE_DEVICES", "2,3")])
	["HIP_VISIBLE_DEVICES", "high", "likely"] in found(hidden)
	anew := amd([setting("HIP_VISIBLE_DEVICES", "0,1"), setting("ROCR_VISIBLE_DEVICES", "2,3")])
	["HIP_VISIBLE_DEVICES", "low", "likely"] in found(anew)
}

none_given := object.union(machine([setting("NVIDIA_VISIBLE_DEVICES", "void")]), {
	"gpus": {"nvml": "not-found"},
	"container": {"inside": true},
})

test_fires_when_none_was_asked_for if {
	found(none_given) == {["NVIDIA_VISIBLE_DEVICES", "high", "likely"]}
	by_driver := object.union(none_given, {
		"gpus": {"devices": []},
		"container": {"driver_devices": [{"address": "0000:01:00.0", "minor": 0}]},
	})
	found(by_driver) == {["NVIDIA_VISIBLE_DEVICES", "high", "likely"]}
}

# CDI sets it to void and brings the nodes itself.
test_silent_with_cdi if {
	document := object.union(none_given, {
		"gpus": {"nvml": "ok"},
		"container": {"device_nodes": [{"path": "/dev/nvidia0", "access": "rw"}]},
	})
	found(document) == set()
}

capabilities(value, files) := object.union(machine([setting("NVIDIA_DRIVER_CAPABILITIES", value)]), {
	"container": {"inside": true, "device_nodes": [{"path": "/dev/nvidia0", "access": "rw"}]},
	"libraries": {"files": files},
})

nvml := {"kind": "libnvidia-ml", "path": "/usr/lib/libnvidia-ml.so.1", "mounted": true}

test_fires_without_compute if {
	some f in gpu_visibility.findings with input as capabilities("utility", [nvml])
	f.subject == "NVIDIA_DRIVER_CAPABILITIES"
	contains(f.message, "does not mount libcuda")
}

test_silent_with_capabilities if {
	found(capabilities("all", [nvml])) == set()
	found(capabilities("", [nvml])) == set()
	found(capabilities("compute,utility", [nvml])) == set()

	# A library that came another way works as well.
	found(capabilities("compute", [nvml])) == set()
}

test_fires_when_cuda_offers_none if {
	document := object.union(machine([]), {"transfers": {"outcome": "ok", "devices": []}})
	found(document) == {["CUDA", "high", "confirmed"]}
	some f in gpu_visibility.findings with input as document
	f.remedies[0] == "pass-device-nodes"
}

test_only_gpu if {
	document := object.union(cuda("1"), {"gpus": {"devices": [{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true}]}})
	some f in gpu_visibility.findings with input as document
	contains(f.message, "the only one has the index 0")
}

test_unresolvable if {
	count(gpu_visibility.missing) == 2 with input as {}
	count(gpu_visibility.findings) == 0 with input as {}
	count(gpu_visibility.missing) == 1 with input as json.remove(machine([]), ["env"])
}

# What follows is read from texts.

message(id, order, text) := {"id": id, "program": "hip", "role": "category", "text": text, "source": "app.log", "line": order + 1, "order": order}

log(messages) := {"logs": {"messages": messages}}

ordinal := message("hip-invalid-device", 2, "RuntimeError: HIP error: invalid device ordinal")

env(settings) := {"env": {"variables": [setting(name, value) | some name, value in settings]}}

# ROCr's list is re-counted from 0 by HIP's and CUDA's.
test_fires_on_lists_of_two_layers if {
	both := env({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"})
	found(both) == {["HIP_VISIBLE_DEVICES", "high", "likely"]}
	refused := object.union(env({"ROCR_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0,1"}), log([ordinal]))
	found(refused) == {["CUDA_VISIBLE_DEVICES", "critical", "likely"]}
	some f in gpu_visibility.findings with input as refused
	f.params.variable == "ROCR_VISIBLE_DEVICES"
	found(env({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "0,1"})) == set()
	found(env({"HIP_VISIBLE_DEVICES": "1"})) == set()
}

test_fires_on_a_refusal_and_a_bad_entry if {
	document := object.union(amd([setting("ROCR_VISIBLE_DEVICES", "0"), setting("CUDA_VISIBLE_DEVICES", "0,1")]), log([ordinal]))
	["GPUs", "critical", "likely"] in found(document)
	["CUDA_VISIBLE_DEVICES", "medium", "likely"] in found(document)
}

device(index, name, architecture) := object.union(
	message("ggml-rocm-device", index, sprintf("Device %d: %s, %s", [index, name, architecture])),
	{"role": "setting", "fields": {"index": sprintf("%d", [index]), "name": name, "architecture": architecture}},
)

listed := [device(0, "AMD Radeon AI PRO R9700", "gfx1201"), device(1, "AMD Radeon Graphics", "gfx1036")]

crash := object.union(message("process-segmentation-fault", 5, "Segmentation fault (core dumped)"), {"program": "shell"})

test_fires_on_an_integrated_gpu_among_cards if {
	found(log(listed)) == {["GPUs", "low", "likely"]}
	found(log(array.concat(listed, [crash]))) == {["GPUs", "critical", "likely"]}
	found(log([listed[0], crash])) == set()
	found(log([listed[1], crash])) == set()
}

desktop := {"gpus": {"devices": [
	{"address": "0000:03:00.0", "vendor": "amd", "architecture": "gfx1201"},
	{"address": "0000:78:00.0", "vendor": "amd", "architecture": "gfx1036", "integrated": true},
]}}

test_fires_on_a_crash_next_to_an_integrated_gpu if {
	["GPUs", "high", "possible"] in found(object.union(desktop, log([crash])))
	["GPUs", "high", "likely"] in found(object.union(desktop, log([message("rocr-memory-fault", 0, "Memory access fault by GPU node-2")])))
	found(object.union(object.union(desktop, log([crash])), env({"HIP_VISIBLE_DEVICES": "0"}))) == {["HIP_VISIBLE_DEVICES", "info", "likely"]}
}

test_fires_on_kernels_missing_for_the_integrated_gpu if {
	missing_kernels := object.union(message("rocblas-no-kernels", 0, "Illegal seek for GPU arch : gfx1036"), {"fields": {"architecture": "gfx1036"}})
	["GPUs", "critical", "likely"] in found(object.union(desktop, log([missing_kernels])))
}

test_a_gpu_of_another_rank if {
	far := object.union(message("nccl-cuda-invalid-device", 3, "Cuda failure 101"), {"fields": {"file": "transport/p2p.cc"}})
	found(log([far])) == {["GPUs", "critical", "likely"]}
	found(log([object.union(message("nccl-ipc-open-failed", 3, "x"), {"fields": {"error": "101"}})])) == {["GPUs", "critical", "likely"]}
	found(log([object.union(far, {"fields": {"file": "transport/shm.cc"}})])) == set()
	refused := log([object.union(message("nccl-ipc-open-failed", 3, "x"), {"fields": {"error": "11"}})])
	found(refused) == set()
	found(object.union(refused, env({"CUDA_VISIBLE_DEVICES": "0"}))) == {["GPUs", "critical", "likely"]}
}

said(id, fields, order) := {"id": id, "program": "pytorch", "role": "cause", "text": "said", "fields": fields, "source": "a.log", "line": 3, "order": order, "count": 1, "ranks": 1}

test_a_container_without_the_drivers_libraries if {
	document := {
		"launches": [{"kind": "slurm", "image": "ubuntu.sqsh", "gpus": 2, "source": "job.sh", "line": 1}],
		"logs": {"messages": [{"id": "torch-no-driver", "program": "pytorch", "role": "cause", "text": "Found no NVIDIA driver on your system", "source": "a.log", "line": 2, "order": 2}]},
	}
	some f in gpu_visibility.findings with input as document
	f.severity == "critical"
	f.remedies[0] == "fix-visible-devices"
	count(gpu_visibility.findings) == 0 with input as object.remove(document, ["launches"])
}

pod(value) := {"launches": [{"kind": "kubernetes", "name": "b", "gpus": 1, "resources": {"nvidia.com/gpu": "1"}, "variables": {"NVIDIA_VISIBLE_DEVICES": value}, "source": "pod.yaml", "line": 1}]}

test_a_pod_that_chooses_its_gpu_itself if {
	some f in gpu_visibility.findings with input as pod("0")
	f.subject == "NVIDIA_VISIBLE_DEVICES"
	f.severity == "high"
	count(gpu_visibility.findings) == 0 with input as pod("all")
	count(gpu_visibility.findings) == 0 with input as pod("void")
}

guess(rank, gpu) := said("torch-device-guessed", {"who": rank, "gpu": gpu}, 1)

test_ranks_that_guess_one_gpu if {
	stuck := said("torch-watchdog-timeout", {"seq": "1", "op": "ALLREDUCE"}, 5)
	some f in gpu_visibility.findings with input as {"logs": {"messages": [guess("0", "0"), guess("1", "0"), stuck]}}
	contains(f.message, "Ranks 0 and 1 did not select a GPU")
	f.remedies[0] == "fix-application"

	# Without a failure, on two machines, and with a GPU each, that is well.
	count(gpu_visibility.findings) == 0 with input as {"logs": {"messages": [guess("0", "0"), guess("1", "0")]}}
	count(gpu_visibility.findings) == 0 with input as {"logs": {"messages": [guess("0", "0"), guess("8", "0"), stuck]}}
	count(gpu_visibility.findings) == 0 with input as {"logs": {"messages": [guess("0", "0"), guess("1", "1"), stuck]}}
}

# An integrated GPU that HIP counts first.
with_integrated(nodes) := {"gpus": {"nvml": "", "devices": [
	{"address": "0000:0c:00.0", "vendor": "amd", "architecture": "gfx1036", "integrated": true, "kfd": {"node": nodes[0]}},
	{"address": "0000:03:00.0", "vendor": "amd", "architecture": "gfx1201", "kfd": {"node": nodes[1]}},
]}}

test_integrated_gpu_is_device_0 if {
	some f in gpu_visibility.findings with input as with_integrated([1, 2])
	[f.severity, f.confidence] == ["low", "likely"]
	count(gpu_visibility.findings) == 0 with input as with_integrated([2, 1])
	offered := object.union(with_integrated([2, 1]), {"transfers": {"api": "hip", "outcome": "ok", "devices": [{"address": "0000:0c:00.0"}, {"address": "0000:03:00.0"}]}})
	some g in gpu_visibility.findings with input as offered
	g.severity == "low"
}

test_a_privileged_pod_sees_all_gpus if {
	two := {"gpus": {"nvml": "ok", "devices": [{"address": "GPU0", "vendor": "nvidia", "in_nvml": true}, {"address": "GPU1", "vendor": "nvidia", "in_nvml": true}]}}
	some f in gpu_visibility.findings with input as object.union(two, asks(true, 1))
	f.remedies[0] == "fix-visible-devices"
	count(gpu_visibility.findings) == 0 with input as object.union(two, asks(true, 2))
	count(gpu_visibility.findings) == 0 with input as object.union(two, asks(false, 1))
}

asks(privileged, gpus) := {"launches": [{"kind": "kubernetes", "name": "b", "privileged": privileged, "gpus": gpus, "source": "pod.yaml", "line": 1}]}

slurm(gpus) := {"launches": [{"kind": "slurm", "gpus": gpus, "processes": 4, "source": "job.txt", "line": 1}]}

seen(document) := count([f | some f in gpu_visibility.findings with input as document; contains(f.message, "accesses the GPU of another")])

test_open_mpi_reaches_for_a_hidden_gpu if {
	seen({"logs": {"messages": [said("openmpi-cuda-ipc-failed", {"error": "101"}, 3)]}}) == 1
	seen({"logs": {"messages": [said("openmpi-cuda-ipc-failed", {"error": "1"}, 3)]}}) == 0
	seen(object.union(slurm(1), {"logs": {"messages": [said("openmpi-cuda-ipc-failed", {"error": "1"}, 3)]}})) == 1
	seen(object.union(slurm(4), {"logs": {"messages": [said("openmpi-cuda-ipc-failed", {"error": "1"}, 3)]}})) == 0
}

test_fires_on_code_that_does_not_load_next_to_an_integrated_gpu if {
	unloaded := object.union(message("hip-shared-object-failed", 5, "HIP error: shared object initialization failed"), {"program": "hip"})
	["GPUs", "high", "likely"] in found(object.union(desktop, log([unloaded])))
}
