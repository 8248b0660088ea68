package gpudoctor.lib.amd_test

import data.gpudoctor.lib.amd

gpu(fields) := object.union({"address": "0000:03:00.0", "vendor": "amd"}, fields)
with_gpu(fields) := {"gpus": {"devices": [gpu(fields)]}}

test_families if {
	amd.instinct with input as with_gpu({"architecture": "gfx942"})
	amd.instinct with input as {"benchmarks": [{"gpu_names": ["AMD Instinct MI100"]}]}
	amd.radeon with input as with_gpu({"architecture": "gfx1201"})
	not amd.radeon with input as with_gpu({"name": "AMD Instinct MI100"})
}

test_present if {
	amd.present with input as with_gpu({})
	amd.present with input as {"software": [{"name": "rocm", "version": "6.2.0"}]}
	amd.present with input as {"benchmarks": [{"gpu_names": ["AMD Radeon RX 7900 XTX"]}]}
}

test_integrated if {
	amd.integrated == {"0000:03:00.0"} with input as with_gpu({"integrated": true, "architecture": "gfx1036"})
	amd.integrated == set() with input as with_gpu({"integrated": true, "architecture": "gfx942"})
	amd.discrete == {"0000:03:00.0"} with input as with_gpu({})
}

message(id, text) := {"id": id, "program": "x", "role": "category", "text": text, "source": "x.log", "line": 1, "order": 0}

test_stuck if {
	amd.stuck with input as {"benchmarks": [{"tool": "rccl-tests", "complete": false}]}
	amd.stuck with input as {"logs": {"messages": [message("torch-watchdog-timeout", "x")]}}
	not amd.stuck with input as {"logs": {"messages": [message("x", "no such file")], "communicators": [{"started": 2, "completed": 2}]}}
}

sentence(gpu) := {"logs": {"messages": [{"id": "prose-p2p-off-needed", "program": "people", "role": "category", "fields": {"gpu": gpu}, "text": "x", "source": "x", "line": 1, "order": 0}]}}

test_prose_names_cards if {
	amd.only_radeon with input as sentence("R9700")
	amd.instinct with input as sentence("MI210")
	not amd.only_radeon with input as sentence("")
}

x := "0000:05:00.0"
y := "0000:26:00.0"

cards(extra) := {"gpus": {"devices": [object.union({"address": address, "vendor": "amd"}, extra) | some address in [x, y]]}}

test_bars if {
	amd.small_bars == {x: 100, y: 100} with input as cards({"memory_bytes": 200, "visible_memory_bytes": 100})
	amd.small_bars == {} with input as cards({"memory_bytes": 200, "visible_memory_bytes": 100, "integrated": true})
	amd.large_bars == {x, y} with input as cards({"memory_bytes": 200, "visible_memory_bytes": 200})
	amd.large_bars == set() with input as cards({"memory_bytes": 200})
}
