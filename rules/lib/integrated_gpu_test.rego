package gpudoctor.lib.integrated_gpu_test

import data.gpudoctor.lib.integrated_gpu

device(name, architecture) := {
	"id": "ggml-rocm-device", "program": "llama.cpp", "role": "setting", "text": name, "source": "a.log", "line": 1, "order": 0,
	"fields": {"name": name, "architecture": architecture},
}

# An integrated GPU by itself, and cards by themselves, are well.
test_found_beside_cards_only if {
	both := {"logs": {"messages": [device("Radeon AI PRO R9700", "gfx1201"), device("Radeon Graphics", "gfx1036")]}}
	{f.severity | some f in integrated_gpu.found} == {"low"} with input as both
	every m in both.logs.messages {
		count(integrated_gpu.found) == 0 with input as {"logs": {"messages": [m]}}
	}
}
