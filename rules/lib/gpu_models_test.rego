package gpudoctor.lib.gpu_models_test

import data.gpudoctor.lib.gpu_models

test_architectures if {
	gpu_models.architectures == {"ada", "gfx942", "hopper", "ampere", "gfx1201", ""} with input as {
		"gpus": {"devices": [
			{"name": "NVIDIA RTX 6000 Ada Generation", "architecture": "Ada Lovelace"}, {"architecture": "gfx942:sramecc+:xnack-"},
			{"name": "NVIDIA H100 PCIe"}, {"address": "0000:01:00.0"},
		]},
		"benchmarks": [{"gpu_names": ["NVIDIA A100-SXM4-40GB", "Radeon gfx1201"]}],
	}
}
