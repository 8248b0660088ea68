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

test_fires_where_the_bar_could_grow if {
	missed := object.union(machine(small), {"pci": {"devices": [rebar(x, small, 64 * gib) | some x in [a, b]]}})
	found := bar_too_small.findings with input as missed
	grades(found) == {["medium", "confirmed"]}
	some f in found
	f.subject == "host"
	f.affects == [a, b]
	contains(f.message, "256 MiB of 48 GiB")
	contains(f.message, "offers 64 GiB")
}

test_low_where_it_cannot if {
	grades(bar_too_small.findings) == {["low", "likely"]} with input as machine(small)
}

test_low_where_nvlink_carries_the_traffic if {
	joined := object.union(machine(small), {
		"pci": {"devices": [rebar(x, small, 64 * gib) | some x in [a, b]]},
		"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 4}]},
	})
	grades(bar_too_small.findings) == {["low", "confirmed"]} with input as joined
}

test_low_where_copies_work if {
	proven := object.union(machine(small), {
		"pci": {"devices": [rebar(x, small, 64 * gib) | some x in [a, b]]},
		"transfers": {"outcome": "ok", "transfers": [
			{"test": "copy", "source": a, "destination": b, "outcome": "ok"},
			{"test": "copy", "source": b, "destination": a, "outcome": "ok"},
		]},
	})
	grades(bar_too_small.findings) == {["low", "confirmed"]} with input as proven
}

test_amd_needs_all_of_it if {
	radeon := {
		"gpus": {"devices": [{"address": x, "vendor": "amd", "memory_bytes": 24 * gib} | some x in [a, b]]},
		"pci": {"devices": [{"address": x, "bars": [{"index": 0, "size_bytes": small}]} | some x in [a, b]]},
	}
	grades(bar_too_small.findings) == {["medium", "likely"]} with input as radeon
}

test_no_room if {
	devices := [{"address": a, "bars": [{"index": 1, "size_bytes": 64 * gib, "unassigned": true}, {"index": 5, "size_bytes": 128, "io": true, "unassigned": true}]}]
	found := bar_too_small.findings with input as object.union(machine(64 * gib), {"pci": {"devices": devices}})
	grades(found) == {["high", "confirmed"]}
	some f in found
	f.subject == a
	contains(f.message, "BAR 1 of")
}

test_silent if {
	count(bar_too_small.findings) == 0 with input as machine(64 * gib)
	count(bar_too_small.missing) == 0 with input as machine(64 * gib)

	# An RTX PRO 6000 shows less than its memory, and a MIG slice less still.
	count(bar_too_small.findings) == 0 with input as machine(47 * gib)
	slices := {"gpus": {"devices": [object.union(gpu(a, 8 * gib, 40), {"mig": true})]}}
	count(bar_too_small.findings) == 0 with input as slices
}

test_coherent_platforms_have_none if {
	grace := {"gpus": {"devices": [object.remove(gpu(a, 0, 96), ["bar1_bytes"])]}}
	count(bar_too_small.findings) == 0 with input as grace
	count(bar_too_small.not_applicable) == 1 with input as grace
}

test_unresolvable if {
	count(bar_too_small.missing) == 1 with input as {}
	dumb := {"gpus": {"devices": [{"address": a, "vendor": "nvidia"}]}}
	count(bar_too_small.findings) == 0 with input as dumb
	count(bar_too_small.missing) == 1 with input as dumb
}

test_not_applicable_without_a_gpu if {
	count(bar_too_small.not_applicable) == 1 with input as {"gpus": {"devices": []}}
}

# The texts that people send.

event(kind, address, message, extra) := object.union(
	{"kind": kind, "address": address, "message": message, "seconds": 1, "count": 1, "source": "dmesg.txt", "line": 5},
	extra,
)

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
	f.messages[_].order == 2
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

test_silent_on_the_same_words_of_hip if {
	hip := json.patch(mapping("AMD Instinct MI210", 64), [{"op": "replace", "path": "/logs/messages/0/id", "value": "hip-ipc-failed"}])
	count(bar_too_small.findings) == 0 with input as hip
}

test_a_mapping_that_failed_and_a_small_window if {
	said := {"logs": {"messages": [{"id": "cuda-map-failed", "program": "cuda", "role": "category", "text": "code=205(cudaErrorMapBufferObjectFailed)", "source": "a", "line": 1, "order": 0}]}}
	windows := {"gpus": {"devices": [{"address": "GPU0", "vendor": "nvidia", "bar1_bytes": 268435456}, {"address": "GPU1", "vendor": "nvidia", "bar1_bytes": 34359738368}]}}
	some f in bar_too_small.findings with input as object.union(said, windows)
	f.confidence == "likely"
	contains(f.message, "VBIOS")
	count([g | some g in bar_too_small.findings; g.severity == "high"]) == 0 with input as windows
}

# AMD's driver refuses, and lspci shows the window with which every card starts.
refused_by_amd(size, id) := {
	"pci": {"devices": [{"address": "0000:0a:00.0", "kind": "gpu", "vendor": "0x1002", "bars": [{"index": 0, "size_bytes": size}]}]},
	"logs": {"messages": [{"id": id, "program": "hip", "role": "category", "text": "x", "source": "run.txt", "line": 1, "order": 1}]},
}

test_amd_refuses_peers_of_a_narrow_window if {
	some f in bar_too_small.findings with input as refused_by_amd(268435456, "hip-peer-access-failed")
	f.severity == "high"
	f.remedies == ["enable-rebar", "update-bios"]
	f.affects == ["0000:0a:00.0"]
}

test_a_wide_window_is_not_why_amd_refuses if {
	count(bar_too_small.findings) == 0 with input as refused_by_amd(17179869184, "hip-peer-access-failed")
	count(bar_too_small.findings) == 0 with input as refused_by_amd(268435456, "hip-peer-access-not-enabled")
}

test_fires_on_a_bar_that_amds_driver_could_not_enlarge if {
	resizing := {"id": "amdgpu-bar-resize-failed", "kind": "bar", "message": "[drm:amdgpu_device_resize_fb_bar [amdgpu]] *ERROR* Problem resizing BAR0 (-16).", "source": "boot.log", "line": 4}
	some f in bar_too_small.findings with input as log([resizing])
	[f.subject, f.severity, f.confidence, f.remedies] == ["host", "high", "confirmed", ["enable-rebar", "update-bios"]]
	f.affects == []
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
	found := bar_too_small.findings with input as visible(16 * gib, "pcie")
	grades(found) == {["medium", "likely"]}
	some f in found
	contains(f.message, "16 GiB of 24 GiB")
	contains(f.message, "only if all of it is visible")
	f.evidence[0].fact == "gpus.devices[0000:01:00.0].visible_memory_bytes"
	grades(bar_too_small.findings) == {["low", "likely"]} with input as visible(16 * gib, "xgmi")
	count(bar_too_small.findings) == 0 with input as visible(24 * gib, "pcie")
	counted := {"a": a, "b": b, "kind": "gpu-gpu", "link_type": "xgmi", "nvlinks": 0}
	grown := object.union(visible(16 * gib, "xgmi"), {"links": {"pairs": [counted]}, "pci": {"devices": [rebar(x, small, 32 * gib) | some x in [a, b]]}})
	grades(bar_too_small.findings) == {["low", "likely"]} with input as grown
}
