package gpudoctor.lib.bar_room_test

import data.gpudoctor.lib.bar_room

a := "0000:01:00.0"

b := "0000:02:00.0"

gib := (1024 * 1024) * 1024

gpu(address, bar1, memory) := {"address": address, "vendor": "nvidia", "memory_bytes": memory * gib, "bar1_bytes": bar1}

small := 268435456

event(kind, address, message, extra) := object.union(
	{"kind": kind, "address": address, "message": message, "seconds": 1, "count": 1, "source": "dmesg.txt", "line": 5},
	extra,
)

log(events) := {"kernel_log": {"source": "dmesg.txt", "events": events}}

confidences(signs) := {object.get(s, "confidence", "likely") | some s in signs}

no_room := event("bar", a, "nvidia 0000:01:00.0: BAR 1 [mem size 0x800000000 64bit pref]: can't assign; no space", {"fields": {"driver": "nvidia"}, "bar": 1, "size_bytes": 32 * gib})

test_fires_on_a_bar_that_found_no_room if {
	found := bar_room.signs with input as log([no_room])
	confidences(found) == {"confirmed"}
	some f in found
	f.gpus == {a}
	contains(f.message, "32 GiB of BAR 1")
	f.evidence[0].source == "dmesg.txt:5"
	invalid := event("bar", b, "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid: BAR1 is 0M @ 0x0 (PCI:0000:02:00.0)", {"id": "nvrm-bar-invalid"})
	count(bar_room.signs) == 1 with input as log([invalid])
	known := object.union(log([event("bar", a, "pci 0000:01:00.0: BAR 1: no space for [mem size 0x10000000]", {"bar": 1})]), {"gpus": {"devices": [gpu(a, 64 * gib, 48)]}})
	count(bar_room.signs) == 1 with input as known
	large := event("bar", a, "pci 0000:01:00.0: BAR 1: no space for [mem size 0x800000000]", {"bar": 1, "size_bytes": 32 * gib})
	count(bar_room.signs) == 1 with input as log([large])
}

test_silent_on_other_devices_without_room if {
	count(bar_room.signs) == 0 with input as log([event("bar", "0000:05:00.0", "pci 0000:05:00.0: BAR 0: no space for [mem size 0x00004000]", {"bar": 0, "size_bytes": 16384})])
}

window := event("bridge-window", "0000:00:1d.4", "pcieport 0000:00:1d.4: BAR 15: no space for [mem size 0xc00000000 64bit pref]", {"size_bytes": 48 * gib})

below_it := {
	"gpus": {"devices": [gpu(a, small, 24)]},
	"pci": {"devices": [{"address": a, "kind": "gpu", "root_bus": "pci0000:00", "ancestors": ["0000:00:1d.4"]}]},
}

test_fires_on_a_bridge_window_that_found_no_room if {
	found := bar_room.signs with input as object.union(log([window]), below_it)
	confidences(found) == {"confirmed"}
	unknown := object.union(log([window]), {"gpus": {"devices": [{"address": a, "vendor": "nvidia"}]}})
	confidences(bar_room.signs) == {"likely"} with input as unknown
}

test_silent_on_bridge_windows_of_others if {
	count(bar_room.signs) == 0 with input as log([window])
	roomy := object.union(log([window]), object.union(below_it, {"gpus": {"devices": [gpu(a, 32 * gib, 24)]}}))
	count(bar_room.signs) == 0 with input as roomy
}

test_fires_on_a_driver_that_found_no_memory_to_map if {
	failed := event("amdgpu", a, "amdgpu: probe of 0000:01:00.0 failed with error -12", {"code": 12})
	confidences(bar_room.signs) == {"likely"} with input as log([failed])

	# The BAR itself is told: no guess is needed.
	room := event("bar", a, "pci 0000:01:00.0: BAR 5 [mem size 0x00080000]: can't assign; no space", {"bar": 5, "size_bytes": 524288})
	confidences(bar_room.signs) == {"confirmed"} with input as log([failed, room])
	count(bar_room.signs) == 0 with input as log([event("amdgpu", a, "amdgpu: probe of 0000:01:00.0 failed with error -22", {"code": 22})])
}

test_a_bar_that_the_tree_shows_without_room if {
	devices := [{"address": a, "bars": [{"index": 1, "size_bytes": 64 * gib, "unassigned": true}, {"index": 5, "size_bytes": 128, "io": true, "unassigned": true}]}]
	tree := {"gpus": {"devices": [gpu(a, 64 * gib, 48)]}, "pci": {"devices": devices}}
	some s in bar_room.signs with input as tree
	[s.gpus, s.confidence] == [{a}, "confirmed"]
	contains(s.message, "BAR 1 of")
	count(bar_room.signs) == 1 with input as object.union(tree, log([no_room]))
}

test_a_bar_that_could_not_be_enlarged if {
	resizing := event("bar", "", "[drm:amdgpu_device_resize_fb_bar [amdgpu]] *ERROR* Problem resizing BAR0 (-16).", {"id": "amdgpu-bar-resize-failed"})
	some s in bar_room.signs with input as log([resizing])
	[s.subject, s.gpus, s.confidence] == ["host", set(), "confirmed"]
}
