package gpudoctor.lib.bars_test

import data.gpudoctor.lib.bars

a := "0000:01:00.0"

gib := (1024 * 1024) * 1024

mib := 1024 * 1024

nvidia(window, memory, extra) := {"gpus": {"devices": [object.union({"address": a, "vendor": "nvidia", "bar1_bytes": window, "memory_bytes": memory * gib}, extra)]}}

amd(window) := {
	"gpus": {"devices": [{"address": a, "vendor": "amd", "memory_bytes": 24 * gib}]},
	"pci": {"devices": [{"address": a, "bars": [{"index": 0, "size_bytes": window}]}]},
}

test_small if {
	bars.small == {a: 256 * mib} with input as nvidia(256 * mib, 24, {})
	bars.small == {} with input as nvidia(64 * gib, 96, {})
	bars.small == {} with input as nvidia(8 * gib, 40, {"mig": true})
	bars.small == {} with input as nvidia(256 * mib, 24, {"virtualization_mode": "vgpu"})
	bars.small == {a: 256 * mib} with input as amd(256 * mib)
	bars.small == {} with input as amd(32 * gib)
}

test_judged if {
	bars.judged == {a} with input as amd(32 * gib)
	coherent := {"gpus": {"devices": [{"address": a, "vendor": "nvidia", "memory_bytes": 96 * gib}]}}
	bars.judged == set() with input as coherent
	bars.sized == {a} with input as coherent
}

# What the driver says is visible stands above the size of the window.
test_amd_tells_what_is_visible if {
	part := {"gpus": {"devices": [{"address": a, "vendor": "amd", "memory_bytes": 24 * gib, "visible_memory_bytes": 16 * gib}]}}
	bars.small == {a: 16 * gib} with input as part
	whole := {"gpus": {"devices": [{"address": a, "vendor": "amd", "memory_bytes": 24 * gib, "visible_memory_bytes": 24 * gib}]}}
	bars.small == {} with input as object.union(amd(256 * mib), whole)
}

test_growable if {
	card := {"pci": {"devices": [{"address": a, "resizable_bars": [{"index": 1, "max_bytes": 32 * gib}]}]}}
	bars.growable(a, 256 * mib) == 32 * gib with input as card
	not bars.growable(a, 32 * gib) with input as card
	not bars.growable(a, 256 * mib) with input as {}
}

# listed is a GPU that lspci alone shows.
listed(vendor, device, extra) := {
	"texts": [{"name": "lspci.txt"}],
	"pci": {"devices": [object.union({"address": a, "kind": "gpu", "vendor": vendor, "device": device}, extra)]},
}

bar(index, size) := {"bars": [{"index": index, "size_bytes": size}]}

test_left_small if {
	bars.left_small == {a} with input as listed("0x10de", "0x2684", bar(1, 256 * mib))
	bars.left_small == set() with input as listed("0x10de", "0x1b06", bar(1, 256 * mib))
	bars.left_small == set() with input as listed("0x10de", "0x2684", bar(1, 32 * gib))
	bars.left_small == set() with input as listed("0x10de", "0x2684", object.union(bar(1, 256 * mib), {"driver": "vfio-pci"}))
	named := {"gpus": {"devices": [{"address": a, "vendor": "nvidia", "name": "GeForce RTX 3090"}]}}
	bars.left_small == {a} with input as object.union(listed("0x10de", "0x", bar(1, 256 * mib)), named)
}

test_growing if {
	object.keys(bars.growing) == {a} with input as listed("0x10de", "0x2684", {"resizable_bars": [{"index": 1, "size_bytes": 256 * mib, "max_bytes": 32 * gib}]})
	bars.growing == {} with input as listed("0x10de", "0x2684", {"resizable_bars": [{"index": 1, "size_bytes": 16 * gib, "max_bytes": 32 * gib}]})
}

test_narrow if {
	bars.narrow == {a: 256 * mib} with input as listed("0x1002", "0x744c", bar(0, 256 * mib))
	bars.narrow == {} with input as listed("0x1002", "0x744c", bar(0, 16 * gib))
}

test_tight if {
	bars.tight == {a: 256 * mib} with input as nvidia(256 * mib, 24, {})
	bars.tight == {} with input as nvidia(32 * gib, 24, {})
}

test_outgrown if {
	bars.outgrown == {a} with input as nvidia(32 * gib, 48, {"name": "NVIDIA GeForce RTX 4090 D"})
	bars.outgrown == set() with input as nvidia(32 * gib, 24, {"name": "NVIDIA GeForce RTX 4090"})
}
