package gpudoctor.lib.gpu_models_test

import data.gpudoctor.lib.gpu_models

test_model if {
	{name: m.form | some name, m in gpu_models.model} == {"NVIDIA H100 80GB HBM3": "board", "NVIDIA L4": "card"} with input as {
		"gpus": {"devices": [{"name": "NVIDIA H100 80GB HBM3"}, {"name": "NVIDIA H100 80GB HBM3"}, {"name": "Something else"}, {"address": "0000:01:00.0"}]},
		"benchmarks": [{"gpu_names": ["NVIDIA L4"]}],
	}
	gpu_models.model == {} with input as {}
}

test_first_row_decides if {
	gpu_models.of("NVIDIA H200 NVL").nvlink == "pair"
	gpu_models.of("NVIDIA H200").nvlink == "board"
	not gpu_models.of("nothing")
}

test_architectures if {
	gpu_models.architectures == {"ada", "gfx942", "hopper", "ampere", "gfx1201", ""} with input as {
		"gpus": {"devices": [
			{"name": "NVIDIA RTX 6000 Ada Generation", "architecture": "Ada Lovelace"}, {"architecture": "gfx942:sramecc+:xnack-"},
			{"name": "NVIDIA H100 PCIe"}, {"address": "0000:01:00.0"},
		]},
		"benchmarks": [{"gpu_names": ["NVIDIA A100-SXM4-40GB", "Radeon gfx1201"]}],
	}
}
