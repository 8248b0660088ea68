package gpudoctor.rules.bar_too_small_test

import data.gpudoctor.rules.bar_too_small

a := "0000:01:00.0"
b := "0000:02:00.0"
gib := (1024 * 1024) * 1024

gpu(address, bar1, memory) := {"address": address, "vendor": "nvidia", "memory_bytes": memory * gib, "bar1_bytes": bar1}
rebar(address, size, largest) := {"address": address, "resizable_bars": [{"index": 1, "size_bytes": size, "max_bytes": largest}]}

small := 268435456

machine(bar1) := {
	"gpus": {"devices": [gpu(x, bar1, 48) | some x in [a, b]]},
	"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0}]},
}

grades(found) := {[f.severity, f.confidence] | some f in found}

test_low_where_nvlink_carries_the_traffic if {
	joined := object.union(machine(small), {
		"pci": {"devices": [rebar(x, small, 64 * gib) | some x in [a, b]]},
		"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 4}]},
	})
	grades(bar_too_small.findings) == {["low", "confirmed"]} with input as joined
}

test_unresolvable if {
	count(bar_too_small.missing) == 1 with input as {}
	dumb := {"gpus": {"devices": [{"address": a, "vendor": "nvidia"}]}}
	count(bar_too_small.missing) == 1 with input as dumb
}

# The texts that people send.

log(events) := {"kernel_log": {"source": "dmesg.txt", "events": events}}

mapping(name, memory) := {
	"gpus": {"devices": [{"address": "GPU0", "vendor": "nvidia", "name": name, "memory_bytes": memory * gib}]},
	"logs": {"messages": [{
		"id": "cuda-map-failed", "program": "cuda", "role": "cause", "text": "RuntimeError: CUDA error: mapping of buffer object failed",
		"source": "app.log", "line": 9, "order": 2, "count": 1, "ranks": 1,
	}]},
}

test_fires_on_a_refused_mapping if {
	found := bar_too_small.findings with input as mapping("NVIDIA GeForce RTX 4090", 24)
	grades(found) == {["critical", "likely"]}
	some f in found
	f.remedies[0] == "enable-rebar"
	modified := bar_too_small.findings with input as mapping("NVIDIA GeForce RTX 4090 D", 48)
	some g in modified
	g.remedies == ["nccl-p2p-disable", "replace-hardware"]
	both := object.union(mapping("NVIDIA GeForce RTX 4090", 24), {"gpus": {"devices": [gpu(a, small, 24)]}})
	["critical", "confirmed"] in grades(bar_too_small.findings) with input as both
}

test_a_bar_that_lspci_shows_small_is_worth_knowing if {
	shown := {"pci": {"devices": [object.union(rebar(a, small, 32 * gib), {"kind": "gpu", "vendor": "0x10de"})]}}
	grades(bar_too_small.findings) == {["low", "likely"]} with input as shown
	count(bar_too_small.findings) == 0 with input as {"pci": {"devices": [object.union(rebar(a, 16 * gib, 32 * gib), {"kind": "gpu", "vendor": "0x10de"})]}}
}

test_a_mapping_that_failed_and_a_small_window if {
	said := {"logs": {"messages": [{"id": "cuda-map-failed", "program": "cuda", "role": "category", "text": "code=205(cudaErrorMapBufferObjectFailed)", "source": "a", "line": 1, "order": 0}]}}
	windows := {"gpus": {"devices": [{"address": "GPU0", "vendor": "nvidia", "bar1_bytes": 268435456}, {"address": "GPU1", "vendor": "nvidia", "bar1_bytes": 34359738368}]}}
	some f in bar_too_small.findings with input as object.union(said, windows)
	contains(f.message, "VBIOS")
}

# AMD's driver refuses, and lspci shows the window with which every card starts.
refused_by_amd(size, id) := {
	"pci": {"devices": [{"address": "0000:0a:00.0", "kind": "gpu", "vendor": "0x1002", "bars": [{"index": 0, "size_bytes": size}]}]},
	"logs": {"messages": [{"id": id, "program": "hip", "role": "category", "text": "x", "source": "run.txt", "line": 1, "order": 1}]},
}

test_amd_refuses_peers_of_a_narrow_window if {
	some f in bar_too_small.findings with input as refused_by_amd(268435456, "hip-peer-access-failed")
	f.severity == "high"
}

test_a_wide_window_is_not_why_amd_refuses if {
	count(bar_too_small.findings) == 0 with input as refused_by_amd(17179869184, "hip-peer-access-failed")
	count(bar_too_small.findings) == 0 with input as refused_by_amd(268435456, "hip-peer-access-not-enabled")
}

test_fires_on_a_bar_that_amds_driver_could_not_enlarge if {
	resizing := {"id": "amdgpu-bar-resize-failed", "kind": "bar", "message": "[drm:amdgpu_device_resize_fb_bar [amdgpu]] *ERROR* Problem resizing BAR0 (-16).", "source": "boot.log", "line": 4}
	some f in bar_too_small.findings with input as log([resizing])
	[f.subject, f.severity, f.confidence, f.remedies] == ["host", "high", "confirmed", ["enable-rebar", "update-bios"]]
	named := {"id": "amdgpu-bar-no-address-space", "fields": {"driver": "amdgpu"}, "kind": "bar", "address": a, "message": "amdgpu 0000:01:00.0: amdgpu: Not enough PCI address space for a large BAR."}
	count(bar_too_small.findings) == 1 with input as log([named])
	count(bar_too_small.missing) == 0 with input as log([resizing])
}

# listed_card is what lspci -v alone tells of a card.
listed_card(device, bar, driver) := {
	"texts": [{"name": "lspci.txt"}],
	"pci": {"devices": [{"address": a, "kind": "gpu", "vendor": "0x10de", "device": device, "driver": driver, "bars": [{"index": 0, "size_bytes": 16777216}, {"index": 1, "size_bytes": bar}]}]},
	"gpus": {"devices": [{"address": a, "vendor": "nvidia"}]},
}

test_low_where_lspci_shows_a_card_as_it_was_before_resizable_bar if {
	some f in bar_too_small.findings with input as listed_card("0x2684", 268435456, "nvidia")
	[f.severity, f.confidence, f.remedies[0]] == ["low", "likely", "enable-rebar"]
	by_name := object.union(object.remove(listed_card("0x", 268435456, ""), ["gpus"]), {"gpus": {"devices": [{"address": a, "vendor": "nvidia", "name": "GeForce RTX 3090"}]}})
	count(bar_too_small.findings) == 1 with input as by_name
}

test_silent_on_cards_that_have_no_larger_bar if {
	count(bar_too_small.findings) == 0 with input as listed_card("0x1b06", 268435456, "nvidia")
	count(bar_too_small.findings) == 0 with input as listed_card("0x2684", 34359738368, "nvidia")
	count(bar_too_small.findings) == 0 with input as listed_card("0x2684", 268435456, "vfio-pci")
	count(bar_too_small.findings) == 0 with input as object.remove(listed_card("0x2684", 268435456, "nvidia"), ["texts"])
	known := object.union(object.remove(listed_card("0x2684", 268435456, "nvidia"), ["gpus"]), {"gpus": {"devices": [{"address": a, "vendor": "nvidia", "bar1_bytes": 34359738368}]}})
	count(bar_too_small.findings) == 0 with input as known
}

visible(part, type) := {
	"gpus": {"devices": [{"address": x, "vendor": "amd", "memory_bytes": 24 * gib, "visible_memory_bytes": part} | some x in [a, b]]},
	"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "link_type": type}]},
}

test_amd_tells_what_is_visible if {
	counted := {"a": a, "b": b, "kind": "gpu-gpu", "link_type": "xgmi", "nvlinks": 0}
	grown := object.union(visible(16 * gib, "xgmi"), {"links": {"pairs": [counted]}, "pci": {"devices": [rebar(x, small, 32 * gib) | some x in [a, b]]}})
	grades(bar_too_small.findings) == {["low", "likely"]} with input as grown
}

bar_room_a := "0000:01:00.0"
bar_room_b := "0000:02:00.0"
bar_room_gib := (1024 * 1024) * 1024

bar_room_gpu(address, bar1, memory) := {"address": address, "vendor": "nvidia", "memory_bytes": memory * bar_room_gib, "bar1_bytes": bar1}

bar_room_small := 268435456

event(kind, address, message, extra) := object.union(
	{"kind": kind, "address": address, "message": message, "seconds": 1, "count": 1, "source": "dmesg.txt", "line": 5},
	extra,
)

bar_room_log(events) := {"kernel_log": {"source": "dmesg.txt", "events": events}}
confidences(signs) := {object.get(s, "confidence", "likely") | some s in signs}

no_room := event("bar", bar_room_a, "nvidia 0000:01:00.0: BAR 1 [mem size 0x800000000 64bit pref]: can't assign; no space", {"fields": {"driver": "nvidia"}, "bar": 1, "size_bytes": 32 * bar_room_gib})

test_fires_on_a_bar_that_found_no_room if {
	found := bar_too_small.signs with input as bar_room_log([no_room])
	some f in found
	contains(f.message, "32 GiB of BAR 1")
	invalid := event("bar", bar_room_b, "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid: BAR1 is 0M @ 0x0 (PCI:0000:02:00.0)", {"id": "nvrm-bar-invalid"})
	count(bar_too_small.signs) == 1 with input as bar_room_log([invalid])
	known := object.union(bar_room_log([event("bar", bar_room_a, "pci 0000:01:00.0: BAR 1: no space for [mem size 0x10000000]", {"bar": 1})]), {"gpus": {"devices": [bar_room_gpu(bar_room_a, 64 * bar_room_gib, 48)]}})
	count(bar_too_small.signs) == 1 with input as known
	large := event("bar", bar_room_a, "pci 0000:01:00.0: BAR 1: no space for [mem size 0x800000000]", {"bar": 1, "size_bytes": 32 * bar_room_gib})
	count(bar_too_small.signs) == 1 with input as bar_room_log([large])
}

window := event("bridge-window", "0000:00:1d.4", "pcieport 0000:00:1d.4: BAR 15: no space for [mem size 0xc00000000 64bit pref]", {"size_bytes": 48 * bar_room_gib})

below_it := {
	"gpus": {"devices": [bar_room_gpu(bar_room_a, bar_room_small, 24)]},
	"pci": {"devices": [{"address": bar_room_a, "kind": "gpu", "root_bus": "pci0000:00", "ancestors": ["0000:00:1d.4"]}]},
}

test_fires_on_a_bridge_window_that_found_no_room if {
	found := bar_too_small.signs with input as object.union(bar_room_log([window]), below_it)
	confidences(found) == {"confirmed"}
	unknown := object.union(bar_room_log([window]), {"gpus": {"devices": [{"address": bar_room_a, "vendor": "nvidia"}]}})
	confidences(bar_too_small.signs) == {"likely"} with input as unknown
}

test_silent_on_bridge_windows_of_others if {
	count(bar_too_small.signs) == 0 with input as bar_room_log([window])
	roomy := object.union(bar_room_log([window]), object.union(below_it, {"gpus": {"devices": [bar_room_gpu(bar_room_a, 32 * bar_room_gib, 24)]}}))
	count(bar_too_small.signs) == 0 with input as roomy
}

test_fires_on_a_driver_that_found_no_memory_to_map if {
	failed := event("amdgpu", bar_room_a, "amdgpu: probe of 0000:01:00.0 failed with error -12", {"code": 12})
	confidences(bar_too_small.signs) == {"likely"} with input as bar_room_log([failed])

	# The BAR itself is told: no guess is needed.
	room := event("bar", bar_room_a, "pci 0000:01:00.0: BAR 5 [mem size 0x00080000]: can't assign; no space", {"bar": 5, "size_bytes": 524288})
	confidences(bar_too_small.signs) == {"confirmed"} with input as bar_room_log([failed, room])
}

test_a_bar_that_the_tree_shows_without_room if {
	devices := [{"address": bar_room_a, "bars": [{"index": 1, "size_bytes": 64 * bar_room_gib, "unassigned": true}, {"index": 5, "size_bytes": 128, "io": true, "unassigned": true}]}]
	tree := {"gpus": {"devices": [bar_room_gpu(bar_room_a, 64 * bar_room_gib, 48)]}, "pci": {"devices": devices}}
	some s in bar_too_small.signs with input as tree
	[s.gpus, s.confidence] == [{bar_room_a}, "confirmed"]
	contains(s.message, "BAR 1 of")
	count(bar_too_small.signs) == 1 with input as object.union(tree, bar_room_log([no_room]))
}

bars_a := "0000:01:00.0"
bars_gib := (1024 * 1024) * 1024
mib := 1024 * 1024

nvidia(window, memory, extra) := {"gpus": {"devices": [object.union({"address": bars_a, "vendor": "nvidia", "bar1_bytes": window, "memory_bytes": memory * bars_gib}, extra)]}}

amd(window) := {
	"gpus": {"devices": [{"address": bars_a, "vendor": "amd", "memory_bytes": 24 * bars_gib}]},
	"pci": {"devices": [{"address": bars_a, "bars": [{"index": 0, "size_bytes": window}]}]},
}

test_small if {
	bar_too_small.small == {} with input as nvidia(8 * bars_gib, 40, {"mig": true})
	bar_too_small.small == {} with input as nvidia(256 * mib, 24, {"virtualization_mode": "vgpu"})
	bar_too_small.small == {bars_a: 256 * mib} with input as amd(256 * mib)
}

# What the driver says is visible stands above the size of the window.
test_bars_amd_tells_what_is_visible if {
	whole := {"gpus": {"devices": [{"address": bars_a, "vendor": "amd", "memory_bytes": 24 * bars_gib, "visible_memory_bytes": 24 * bars_gib}]}}
	bar_too_small.small == {} with input as object.union(amd(256 * mib), whole)
}

test_growable if {
	card := {"pci": {"devices": [{"address": bars_a, "resizable_bars": [{"index": 1, "max_bytes": 32 * bars_gib}]}]}}
	not bar_too_small.growable(bars_a, 32 * bars_gib) with input as card
}
