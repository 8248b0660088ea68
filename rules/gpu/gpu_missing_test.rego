package gpudoctor.rules.gpu_missing_test

import data.gpudoctor.rules.gpu_missing

a := "0000:3b:00.0"
b := "0000:5e:00.0"

# cuda is a machine with two GPUs, of which CUDA offers some.
cuda(offered) := {
	"env": {"variables": []},
	"container": {"inside": false, "device_nodes": []},
	"pci": {"devices": [{"address": address, "kind": "gpu", "vendor": "0x10de"} | some address in [a, b]]},
	"gpus": {"nvml": "ok", "devices": [{"address": address, "vendor": "nvidia", "in_nvml": true, "in_pci": true} | some address in [a, b]]},
	"transfers": {"outcome": "ok", "api": "cuda", "devices": [{"address": address} | some address in offered]},
}

# hip is the same of AMD's.
hip(offered) := object.union(cuda(offered), {
	"pci": {"devices": [{"address": address, "kind": "gpu", "vendor": "0x1002", "device": "0x74a1"} | some address in [a, b]]},
	"gpus": {
		"amd": {"kfd": "ok"},
		"devices": [{"address": address, "vendor": "amd", "in_pci": true, "kfd": {"node": 1}} | some address in [a, b]],
	},
	"transfers": {"api": "hip"},
})

with_variable(machine, name, value) := object.union(machine, {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]}})
with_gpu(machine, more) := json.patch(machine, [{"op": "add", "path": sprintf("/gpus/devices/1/%s", [key]), "value": value} | some key, value in more])
with_nodes(machine, nodes) := object.union(machine, {"container": {"device_nodes": [{"path": path, "access": access} | some path, access in nodes]}})

subjects := {[f.subject, f.grade] | some f in gpu_missing.findings}

test_fires_on_hip if subjects == {[b, "api"]} with input as hip([a])

test_chosen if count(gpu_missing.findings) == 0 with input as with_variable(hip([a]), "GPU_DEVICE_ORDINAL", "1")
test_chosen_and_still_missing if count(gpu_missing.findings) == 1 with input as with_variable(cuda([a]), "CUDA_VISIBLE_DEVICES", "0,1")
test_host_of_vgpus if count(gpu_missing.findings) == 0 with input as with_gpu(cuda([a]), {"virtualization_mode": "host-vgpu"})

test_nodes if {
	count(gpu_missing.findings) == 0 with input as with_nodes(cuda([a]), {"/dev/nvidia0": "rw", "/dev/nvidia1": "none"})
	count(gpu_missing.findings) == 0 with input as with_nodes(hip([a]), {"/dev/dri/renderD128": "rw"})
}

test_model_unknown_to_hip if {
	count(gpu_missing.findings) == 0 with input as json.patch(hip([a]), [{"op": "replace", "path": "/pci/devices/1/device", "value": "0x67df"}])
}

test_unresolvable if {
	{m.fact | some m in gpu_missing.missing} == {"gpus.nvml"} with input as object.union(cuda([a]), {"gpus": {"nvml": "error"}})
	{m.fact | some m in gpu_missing.missing} == {"transfers.devices"} with input as json.patch(cuda([a]), [{"op": "remove", "path": "/env"}])
	{m.fact | some m in gpu_missing.missing} == {"transfers.devices"} with input as object.union(cuda([a]), {"unknown": [{"section": "gpus", "fact": "devices.mig"}]})
	{m.fact | some m in gpu_missing.missing} == {"gpus.nvml"} with input as with_gpu(cuda([a]), {"address": ""})
}

test_not_all_listed if {
	"AMD's compute driver does not list all GPUs here" in gpu_missing.not_applicable with input as object.union(hip([a]), {"gpus": {"amd": {"kfd": "partial"}}})
}
