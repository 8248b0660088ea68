package gpudoctor.lib.nvlinks_test

import data.gpudoctor.lib.nvlinks

links(total, active) := [{"link": i, "active": i < active} | some i in numbers.range(0, total - 1)]

gpu(address, name, total, active) := {"address": address, "vendor": "nvidia", "name": name, "nvlinks": links(total, active)}

short(devices, switches) := found if {
	found := nvlinks.short with input as {"gpus": {"nvswitches": switches, "devices": devices}}
}

a := "0000:01:00.0"

b := "0000:02:00.0"

test_links_behind_switches if {
	short([gpu(a, "NVIDIA H200", 18, 18), gpu(b, "NVIDIA H200", 18, 16)], 4) == {b: 18}
	short([gpu(a, "NVIDIA H800", 18, 8), gpu(b, "NVIDIA H800", 18, 7)], 4) == {b: 8}
	short([gpu(a, "NVIDIA H200", 18, 18)], 4) == {}
}

test_links_of_a_bridge if {
	short([gpu(a, "NVIDIA A100", 12, 12), gpu(b, "NVIDIA A100", 12, 8)], 0) == {b: 12}
	short([gpu(a, "NVIDIA A40", 4, 3), gpu(b, "NVIDIA A40", 4, 3)], 0) == {a: 4, b: 4}
	short([gpu(a, "NVIDIA A40", 4, 0), gpu(b, "NVIDIA A40", 4, 0)], 0) == {}
}
