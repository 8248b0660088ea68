package gpudoctor.lib.visible_devices_test

import data.gpudoctor.lib.visible_devices as visible

setting(name, value) := {"name": name, "value": value, "source": "environment", "effective": true}

gpus(vendor) := [{"address": sprintf("0000:0%d:00.0", [i]), "vendor": vendor, "in_nvml": vendor == "nvidia", "uuid": sprintf("GPU-%d0-a", [i])} |
	some i in numbers.range(0, 3)
]

machine(vendor, settings) := {"gpus": {"nvml": "ok", "devices": gpus(vendor)}, "env": {"variables": settings}}

# What is not known to name no GPU names one.
test_names_gpu if {
	visible.names_gpu("3", 4)
	visible.names_gpu("+03", 4)
	visible.names_gpu("GPU-f", 4)
	visible.names_gpu("MIG-1", 4)
	not visible.names_gpu("4", 4)
	not visible.names_gpu("", 4)
	not visible.names_gpu("GPU-f", 4) with input as machine("nvidia", [])
	visible.names_gpu("GPU-10", 4) with input as machine("nvidia", [])
}

# HIP chooses from what ROCr left.
test_kept if {
	both := [setting("ROCR_VISIBLE_DEVICES", "2,3"), setting("HIP_VISIBLE_DEVICES", "1,2")]
	visible.kept == {"ROCR_VISIBLE_DEVICES": ["2", "3"], "HIP_VISIBLE_DEVICES": ["1"]} with input as machine("amd", both)
	visible.ends == {"HIP_VISIBLE_DEVICES": 1} with input as machine("amd", both)
	visible.kept == {"CUDA_VISIBLE_DEVICES": []} with input as machine("nvidia", [setting("CUDA_VISIBLE_DEVICES", "-1")])
}

test_chooser if {
	visible.chooser == "HIP_VISIBLE_DEVICES" with input as machine("nvidia", [setting("ROCR_VISIBLE_DEVICES", "0"), setting("HIP_VISIBLE_DEVICES", "0")])
	visible.chooser == "CUDA_VISIBLE_DEVICES" with input as {}
}
