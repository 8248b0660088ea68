package gpudoctor.lib.amd_test

import data.gpudoctor.lib.amd

gpu(fields) := object.union({"address": "0000:03:00.0", "vendor": "amd"}, fields)

with_gpu(fields) := {"gpus": {"devices": [gpu(fields)]}}

test_families if {
	amd.instinct with input as with_gpu({"name": "AMD Instinct MI100"})
	amd.instinct with input as with_gpu({"architecture": "gfx942"})
	amd.instinct with input as {"benchmarks": [{"gpu_names": ["AMD Instinct MI100"]}]}
	not amd.instinct with input as with_gpu({"name": "AMD Radeon PRO W7900"})
	amd.radeon with input as with_gpu({"name": "AMD Radeon PRO W7900"})
	amd.radeon with input as with_gpu({"architecture": "gfx1201"})
	amd.radeon with input as {"benchmarks": [{"gpu_names": ["AMD Radeon RX 7900 XTX"]}]}
	not amd.radeon with input as with_gpu({"name": "AMD Instinct MI100"})
}

test_present if {
	amd.present with input as with_gpu({})
	amd.present with input as {"software": [{"name": "rocm", "version": "6.2.0"}]}
	amd.present with input as {"logs": {"messages": [{"id": "x", "program": "hip"}]}}
	amd.present with input as {"benchmarks": [{"gpu_names": ["AMD Radeon RX 7900 XTX"]}]}
	not amd.present with input as {}
	not amd.present with input as {"gpus": {"devices": [{"address": "0000:03:00.0", "vendor": "nvidia"}]}}
}

test_integrated if {
	amd.integrated == {"0000:03:00.0"} with input as with_gpu({"integrated": true, "architecture": "gfx1036"})
	amd.integrated == set() with input as with_gpu({"integrated": true, "architecture": "gfx942"})
	amd.discrete == {"0000:03:00.0"} with input as with_gpu({})
}

message(id, text) := {"id": id, "program": "x", "role": "category", "text": text, "source": "x.log", "line": 1, "order": 0}

test_stuck if {
	amd.stuck with input as {"logs": {"messages": [], "communicators": [{"started": 2, "completed": 0}]}}
	amd.stuck with input as {"benchmarks": [{"tool": "rccl-tests", "complete": false}]}
	amd.stuck with input as {"logs": {"messages": [message("x", "Watchdog caught collective operation timeout")]}}
	not amd.stuck with input as {"logs": {"messages": [message("x", "no such file")], "communicators": [{"started": 2, "completed": 2}]}}
	not amd.stuck with input as {}
}

test_crashes if {
	count(amd.crashes) == 1 with input as {"logs": {"messages": [message("rocr-memory-fault", "x"), message("y", "z")]}}
}
