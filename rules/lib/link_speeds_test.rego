package gpudoctor.lib.link_speeds_test

import data.gpudoctor.lib.link_speeds

gpu := "0000:03:00.0"

other := "0000:04:00.0"

root := "0000:00:01.0"

upstream := "0000:01:00.0"

device(address, vendor, port, up, speed) := {
	"address": address, "vendor": vendor, "port_type": port, "ancestors": up,
	"link": {"speed_gts": speed, "width": 16, "max_speed_gts": 32, "max_width": 16},
}

# machine is a GPU in a performance state below a switch.
machine(state, speed, switch_speed) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [{"address": gpu, "vendor": "nvidia", "performance_state": state, "pcie": {"generation": 3, "width": 16, "max_generation": 5, "max_width": 16}}]},
	"pci": {"devices": [
		device(root, "0x8086", "root-port", [], 32),
		device(upstream, "0x10b5", "upstream-port", [root], switch_speed),
		device(gpu, "0x10de", "endpoint", [root, upstream], speed),
	]},
}

test_slow_under_load if {
	link_speeds.slow == {gpu: {"speed": 8, "best": 32}} with input as machine(0, 8, 32)
	link_speeds.slow == {} with input as machine(8, 2.5, 32)
	link_speeds.slow == {} with input as machine(0, 32, 32)
}

test_copies_at_full_speed_refute_it if {
	good := {
		"links": {"pairs": [{"a": gpu, "b": other, "kind": "gpu-gpu", "nvlinks": 0}]},
		"transfers": {"outcome": "ok", "transfers": [{"test": "copy", "source": s, "destination": d, "outcome": "ok"} | some [s, d] in [[gpu, other], [other, gpu]]]},
	}
	link_speeds.slow == {} with input as object.union(machine(0, 8, 32), good)
}

test_the_link_above_a_switch if {
	link_speeds.slow == {upstream: {"speed": 16, "best": 32}} with input as machine(8, 32, 16)
	amd := json.patch(machine(8, 32, 16), [{"op": "replace", "path": "/pci/devices/1/vendor", "value": "0x1002"}])
	link_speeds.slow == {} with input as amd
}

# asked are two GPUs of which nvidia-smi tells the links.
asked(used, generation) := {
	"texts": [{"name": "smi.txt"}],
	"gpus": {"devices": [
		{"address": gpu, "utilization_percent": used, "pcie": {"generation": generation, "max_generation": 5}},
		{"address": other, "utilization_percent": 100, "pcie": {"generation": 5, "max_generation": 5}},
	]},
}

test_held_low if {
	link_speeds.held_low == {gpu: {"generation": 2, "best": 5}} with input as asked(100, 2)
	link_speeds.twins(gpu) == {other} with input as asked(100, 2)
	link_speeds.held_low == {} with input as asked(3, 1)
	link_speeds.held_low == {} with input as object.union(asked(100, 2), {"host": {"virtualization": {"guest": true}}})
}
