# METADATA
# title: The BAR does not cover the GPU's memory
# description: >-
#   Other devices see a GPU's memory through a window, its BAR. A window far
#   smaller than the memory limits GPUDirect RDMA and every form of
#   peer-to-peer access that goes through it; AMD's driver offers none then.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/gpudirect-rdma/index.html
#     description: How much memory GPUDirect RDMA can pin is bounded by BAR1.
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/gpu/drm/amd/amdgpu/amdgpu_device.c
#     description: amdgpu_device_is_peer_accessible wants all memory visible to the CPU.
# schemas:
#   - input: schema.facts
# custom:
#   severity: low
#   confidence: likely
#   remedies: [enable-rebar, update-bios]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.bar_too_small

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers

mib := 1024 * 1024

# window is the size of the BAR through which a GPU's memory is seen. NVML
# says it for NVIDIA's; on AMD's it is BAR 0. A coherent platform (GH200,
# GB10) has none, and none is not a small one.
window(g) := g.bar1_bytes if {
	g.vendor == "nvidia"
}

window(g) := bar.size_bytes if {
	g.vendor == "amd"
	some bar in pci.device[g.address].bars
	bar.index == 0
	bar.size_bytes > 0
}

# small are the GPUs whose window covers less than half of their memory. Half,
# because a window is a power of two and the memory that NVML counts is not:
# an RTX PRO 6000 shows 96 GiB of its 128 GiB window.
small[g.address] := size if {
	some g in facts.named
	size := window(g)
	g.memory_bytes > 0
	size < g.memory_bytes / 2
	not g.mig == true
	not g.virtualization_mode == "vgpu"
}

# growable is the largest size that the card's Resizable BAR offers for its
# memory, where that is more than it has.
growable(address, size) := largest if {
	largest := max({bar.max_bytes | some bar in pci.device[address].resizable_bars})
	largest > size
}

# peers_wanted is true for a GPU that would talk to another over PCIe.
peers_wanted(address) if {
	some p in facts.gpu_pairs
	address in [p.a, p.b]
	peers.joined(p) == "pcie"
	not peers.refused(p)
	not peers.measured(p.a, p.b) == "good"
}

# The window bears on NVIDIA's own peer-to-peer access only where the driver
# uses BAR1 for it, so a small one that cannot grow (T4) is worth knowing and
# no more. One that the card could enlarge is a setting that was missed.
grade(address, size) := ["medium", "confirmed"] if {
	growable(address, size)
	peers_wanted(address)
} else := ["medium", "likely"] if {
	facts.gpu[address].vendor == "amd"
	count(facts.gpus) > 1
} else := ["low", "confirmed"] if {
	growable(address, size)
} else := ["low", "likely"]

findings contains {
	"subject": subject(gpus),
	"affects": sort(gpus),
	"message": sprintf("The BAR of %s covers %s of %s of memory.%s", [named(gpus), k[1], k[2], outlook(gpus)]),
	"evidence": [e |
		some address in sort(gpus)
		some e in evidence(address)
	],
	"params": {"gpus": sort(gpus)},
	"severity": k[0][0],
	"confidence": k[0][1],
} if {
	some k in {kind(address) | some address, _ in small}
	gpus := {address | some address, _ in small; kind(address) == k}
}

# kind groups GPUs that are alike.
kind(address) := [
	grade(address, small[address]),
	facts.bytes(small[address]),
	sprintf("%d GiB", [round(facts.gpu[address].memory_bytes / (1024 * mib))]),
]

subject(gpus) := "host" if {
	count(gpus) > 1
	gpus == facts.gpus
} else := peers.shorten(gpus)

named(gpus) := sprintf("GPU %s", [facts.list(gpus)]) if {
	count(gpus) == 1
} else := sprintf("each of %d GPUs", [count(gpus)])

outlook(gpus) := sprintf(" Its Resizable BAR capability offers %s, so the firmware has not enlarged it (Above 4G Decoding, Resizable BAR, no CSM).", [facts.bytes(min(sizes))]) if {
	sizes := {largest | some address in gpus; largest := growable(address, small[address])}
	count(sizes) > 0
} else := " The card shows no larger size to choose, or its capabilities could not be read."

evidence(address) := array.concat(
	[{
		"fact": sprintf("gpus.devices[%s].bar1_bytes", [address]),
		"value": small[address],
		"source": bar_source[facts.gpu[address].vendor],
	}],
	[{
		"fact": sprintf("pci.devices[%s].resizable_bars", [address]),
		"value": pci.device[address].resizable_bars,
		"source": sprintf("/sys/bus/pci/devices/%s/config", [address]),
	} |
		growable(address, small[address])
	],
)

# A memory BAR for which the kernel found no room: the driver cannot reach the
# GPU at all, or not its memory.
roomless[d.address] contains bar.index if {
	some address in facts.gpus
	d := pci.device[address]
	some bar in d.bars
	bar.unassigned == true
	not bar.io == true
}

findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("The kernel found no room for BAR %s of GPU %s: the firmware leaves too little address space (Above 4G Decoding).", [
		concat(", ", [sprintf("%d", [i]) | some i in sort(indices)]), address,
	]),
	"evidence": [{
		"fact": sprintf("pci.devices[%s].bars[%d].unassigned", [address, i]),
		"value": true,
		"source": sprintf("/sys/bus/pci/devices/%s/resource", [address]),
	} |
		some i in sort(indices)
	],
	"params": {"gpus": [address]},
	"severity": "high",
	"confidence": "confirmed",
} if {
	some address, indices in roomless
}

bar_source := {"nvidia": "nvmlDeviceGetBAR1MemoryInfo", "amd": "resource of the PCI device, BAR 0"}

missing contains "gpus: the GPUs are not known" if not facts.gpus

missing contains "gpus.devices[].memory_bytes: NVML did not answer" if {
	count(facts.gpus) > 0
	count(sized) == 0
}

sized := {g.address | some g in facts.named; g.memory_bytes > 0}

judged := {g.address |
	some g in facts.named
	g.memory_bytes > 0
	window(g)
}

not_applicable contains "no GPU" if count(facts.gpus) == 0

not_applicable contains "the GPUs here show no BAR over their memory, as on coherent platforms" if {
	count(sized) > 0
	count(judged) == 0
}
