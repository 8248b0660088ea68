package gpudoctor.rules.bar_too_small_test

import data.gpudoctor.rules.bar_too_small

a := "0000:01:00.0"
b := "0000:02:00.0"
mib := 1024 * 1024
gib := 1024 * mib

cards(list) := {"gpus": {"devices": [object.union({"address": a, "vendor": "nvidia"}, more) | some more in list]}}
nvidia(bar1, memory) := {"bar1_bytes": bar1, "memory_bytes": memory * gib}
functions(list) := {"pci": {"devices": [object.union({"address": a, "kind": "gpu"}, more) | some more in list]}}
rebar(size, largest) := {"resizable_bars": [{"index": 1, "size_bytes": size, "max_bytes": largest * gib}]}
pair(more) := {"links": {"pairs": [object.union({"a": a, "b": b, "kind": "gpu-gpu"}, more)]}}
window(size) := {"bars": [{"index": 0, "size_bytes": size}]}
said(id) := {"logs": {"messages": [{
	"id": id, "program": "cuda", "role": "category", "text": "x", "source": "run.txt", "line": 1, "order": 1,
}]}}

event(kind, address, extra) := object.union(
	{"kind": kind, "address": address, "message": "x", "seconds": 1, "count": 1, "source": "dmesg.txt", "line": 5},
	extra,
)

log(events) := {"kernel_log": {"source": "dmesg.txt", "events": events}}
resizing := object.remove(event("bar", "", {"id": "amdgpu-bar-resize-failed"}), ["address"])
no_room := event("bar", a, {"fields": {"driver": "nvidia"}, "bar": 1, "size_bytes": 32 * gib})
probe_failed := event("amdgpu", a, {"code": 12})
bridge := log([event("bridge-window", "0000:00:1d.4", {"size_bytes": 48 * gib})])
below := functions([{"root_bus": "pci0000:00", "ancestors": ["0000:00:1d.4"]}])
without_room := object.union(
	cards([nvidia(64 * gib, 48)]),
	functions([{"bars": [{"index": 1, "size_bytes": 64 * gib, "unassigned": true}, {"index": 5, "size_bytes": 128, "io": true, "unassigned": true}]}]),
)

# listed is what lspci -v alone tells of a card.
listed(name, bar, driver) := object.union_n([{"texts": [{"name": "lspci.txt"}]}, cards([{"name": name}]), functions([{
	"vendor": "0x10de", "driver": driver, "bars": [{"index": 0, "size_bytes": 16 * mib}, {"index": 1, "size_bytes": bar}],
}])])

two(card) := cards([object.union(card, {"address": address}) | some address in [a, b]])
rtx_4090 := cards([{"name": "NVIDIA GeForce RTX 4090", "memory_bytes": 24 * gib}])
amd := {"vendor": "amd", "memory_bytes": 24 * gib}
visible(gibs) := object.union(amd, {"visible_memory_bytes": gibs * gib})
of_amd(size) := functions([object.union(window(size), {"vendor": "0x1002"})])

test_findings if {
	every row in [
		# NVLink or xGMI carries the traffic.
		[[two(nvidia(256 * mib, 48)), functions([rebar(256 * mib, 64)]), pair({"nvlinks": 4})], ["low"]],
		[[two(visible(16)), functions([rebar(256 * mib, 32)]), pair({"link_type": "xgmi", "nvlinks": 0})], ["low"]],
		# What lspci shows.
		[[listed("GeForce RTX 3090", 256 * mib, "nvidia")], ["low"]],
		[[listed("GeForce GTX 1080 Ti", 256 * mib, "nvidia")], []],
		[[listed("GeForce RTX 3090", 32 * gib, "nvidia")], []],
		[[listed("GeForce RTX 3090", 256 * mib, "vfio-pci")], []],
		[[listed("GeForce RTX 3090", 256 * mib, "nvidia"), cards([{"bar1_bytes": 32 * gib}])], []],
		# A mapping that failed.
		[[said("cuda-map-failed"), rtx_4090], ["refused"]],
		[[said("cuda-map-failed"), cards([nvidia(256 * mib, 24)])], ["low", "refused"]],
		# What the kernel wrote.
		[[log([resizing])], ["no-room"]],
		[[log([event("bar", a, {"id": "amdgpu-bar-no-address-space", "fields": {"driver": "amdgpu"}})])], ["no-room"]],
		[[log([no_room])], ["no-room"]],
		[[log([event("bar", b, {"id": "nvrm-bar-invalid"})])], ["no-room"]],
		[[log([event("bar", a, {"bar": 1})]), cards([nvidia(64 * gib, 48)])], ["no-room"]],
		[[log([event("bar", a, {"bar": 1, "size_bytes": 32 * gib})])], ["no-room"]],
		[[log([probe_failed])], ["no-room"]],
		[[log([probe_failed, event("bar", a, {"bar": 5, "size_bytes": 524288})])], ["no-room"]],
		[[bridge, below, cards([nvidia(256 * mib, 24)])], ["bridge", "low"]],
		[[bridge, cards([{}])], ["bridge"]],
		[[bridge], []],
		[[bridge, below, cards([nvidia(32 * gib, 24)])], []],
		[[without_room, log([no_room])], ["no-room"]],
	] {
		found := bar_too_small.findings with input as object.union_n(row[0])
		sort([object.get(f, "severity", f.grade) | some f in found]) == row[1]
	}
}

test_small if {
	every row in [
		[[cards([object.union(nvidia(8 * gib, 40), {"mig": true})])], set()],
		[[cards([object.union(nvidia(256 * mib, 24), {"virtualization_mode": "vgpu"})])], set()],
		[[cards([amd]), of_amd(256 * mib)], {a}],
		# What the driver says is visible stands above the size of the window.
		[[cards([visible(24)]), of_amd(256 * mib)], set()],
	] {
		union({gpus | some gpus in bar_too_small.small}) == row[1] with input as object.union_n(row[0])
	}
}
