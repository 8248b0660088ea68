# METADATA
# title: The BAR does not cover the GPU's memory
# description: >-
#   Other devices access a GPU's memory through a window, its BAR. A BAR much
#   smaller than the memory limits GPUDirect RDMA and every form of peer-to-peer
#   access that uses it; AMD's driver then offers no peer access.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/gpudirect-rdma/index.html
#     description: BAR1 limits how much memory GPUDirect RDMA can pin.
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/gpu/drm/amd/amdgpu/amdgpu_device.c
#     description: amdgpu_device_is_peer_accessible requires all memory to be visible to the CPU.
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/pci/setup-res.c
#     description: What the kernel logs when a BAR does not fit into the address space.
#   - ref: https://github.com/tinygrad/open-gpu-kernel-modules
#     description: The modified driver maps all of a GPU's memory into BAR1 for its peers.
# custom:
#   severity: low
#   confidence: likely
#   needs:
#     - gpus.devices[].memory_bytes
#     - ["gpus.devices[].bar1_bytes", "pci.devices[].bars"]
#   remedies: [enable-rebar, update-bios, nccl-p2p-disable, replace-hardware]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.bar_too_small

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.bar_room
import data.gpudoctor.lib.bars
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.tables.limits

# peers_wanted is true for a GPU that would talk to another over PCIe.
peers_wanted(address) if address in pcie_ends

pcie_ends contains address if {
	some p in facts.gpu_pairs
	peers.joined(p) == "pcie"
	not p.link_type == "xgmi"
	not peers.refused(p)
	not peers.measured(p.a, p.b) == "good"
	some address in [p.a, p.b]
}

# The window affects NVIDIA's own peer-to-peer access only if the driver uses BAR1 for it,
# so a small one that cannot grow (T4) gives only a low finding. One that the card could
# enlarge is a missed setting.
grade(address, size) := ["medium", "confirmed"] if {
	bars.growable(address, size)
	peers_wanted(address)
} else := ["low", "likely"] if {
	xgmi_joined(address)
} else := ["medium", "likely"] if {
	facts.gpu[address].vendor == "amd"
	count(facts.gpus) > 1
} else := ["low", "confirmed"] if {
	bars.growable(address, size)
} else := ["low", "likely"]

# found are the GPUs with a BAR that is too small, with the evidence. What follows holds
# for each unless it says otherwise.
findings contains object.union(
	{
		"subject": peers.shorten(f.gpus),
		"affects": sort(f.gpus),
		"params": {"gpus": sort(f.gpus)},
		"severity": "high",
		"confidence": "likely",
		"remedies": ["enable-rebar", "update-bios"],
	},
	object.remove(f, ["gpus"]),
) if {
	some f in found
}

unenlarged := "the firmware has not enlarged it (Above 4G Decoding, Resizable BAR, no CSM)"

found contains {
	"gpus": gpus,
	"subject": subject(gpus),
	"message": sprintf("The BAR of %s covers %s of %s of memory.%s", [named(gpus), k.window, k.memory, outlook(gpus)]),
	"evidence": [e |
		some address in sort(gpus)
		some e in array.concat([size_evidence(address)], growth_evidence(address))
	],
	"severity": k.grade[0],
	"confidence": k.grade[1],
} if {
	some k in {kind(address) | some address, _ in bars.small}
	gpus := {address | some address, _ in bars.small; kind(address) == k}
}

# xgmi_joined is true for a GPU that reaches each other one over xGMI, which needs no
# BAR.
xgmi_joined(address) if address in (peers.ends(xgmi_pairs) - peers.ends(amd.pairs - xgmi_pairs))

xgmi_pairs := {p | some p in amd.pairs; p.link_type == "xgmi"}

# kind groups GPUs that are alike.
kind(address) := {
	"grade": grade(address, bars.small[address]),
	"window": facts.bytes(bars.small[address]),
	"memory": sprintf("%d GiB", [round(facts.gpu[address].memory_bytes / ((1024 * 1024) * 1024))]),
}

subject(gpus) := "host" if {
	count(gpus) > 1
	gpus == facts.gpus
} else := peers.shorten(gpus)

named(gpus) := sprintf("GPU %s", [facts.list(gpus)]) if {
	count(gpus) == 1
} else := sprintf("each of %d GPUs", [count(gpus)])

outlook(gpus) := sprintf(" Its Resizable BAR capability offers %s, so %s.", [facts.bytes(min(sizes)), unenlarged]) if {
	sizes := {largest | some address in gpus; largest := bars.growable(address, bars.small[address])}
	count(sizes) > 0
} else := " AMD's driver offers peer access over PCIe only if all of it is visible (Above 4G Decoding, Resizable BAR, no CSM)." if {
	count(gpus & object.keys(amd.small_bars)) > 0
} else := " The card offers no larger size, or its capabilities could not be read."

size_evidence(address) := {
	"fact": sprintf("gpus.devices[%s].visible_memory_bytes", [address]),
	"value": bars.small[address],
	"source": "mem_info_vis_vram_total of the PCI device",
} if {
	amd.small_bars[address]
} else := {
	"fact": sprintf("gpus.devices[%s].bar1_bytes", [address]),
	"value": bars.small[address],
	"source": {"nvidia": "nvmlDeviceGetBAR1MemoryInfo", "amd": "resource of the PCI device, BAR 0"}[facts.gpu[address].vendor],
}

growth_evidence(address) := [{
	"fact": sprintf("pci.devices[%s].resizable_bars", [address]),
	"value": pci.device[address].resizable_bars,
	"source": sprintf("/sys/bus/pci/devices/%s/config", [address]),
} |
	bars.growable(address, bars.small[address])
]

found contains {
	"gpus": bars.left_small,
	"message": sprintf("The BAR of %s is 256 MiB, but cards of this generation can have one as large as their memory: %s. Peer access through BAR1, which modified drivers for GeForce provide, needs that.", [
		named(bars.left_small), unenlarged,
	]),
	"evidence": [{"fact": sprintf("pci.devices[%s].bars[1].size_bytes", [address]), "value": limits.bar_default_bytes, "source": pci.port_at(address)} | some address in sort(bars.left_small)],
	"severity": "low",
} if {
	count(bars.left_small) > 0
}

found contains {
	"gpus": gpus,
	"subject": subject(gpus),
	"message": sprintf("The BAR of %s is %s, and its Resizable BAR capability offers %s: %s.", [
		named(gpus), facts.bytes(min({r.size_bytes | some r in bars.growing})), facts.bytes(max({r.max_bytes | some r in bars.growing})), unenlarged,
	]),
	"evidence": [{"fact": sprintf("pci.devices[%s].resizable_bars", [address]), "value": r, "source": "lspci, or config space"} | some address, r in bars.growing],
	"severity": "low",
} if {
	gpus := object.keys(bars.growing)
	count(gpus) > 0
}

# A BAR that has no room in the address space has no size at all, or keeps its old one.
found contains s if some s in bar_room.signs

unoffered := logs.messages({"hip-no-peer-access", "hip-peer-access-failed"})

found contains {
	"gpus": gpus,
	"subject": facts.list(gpus),
	"message": sprintf("AMD's driver offers no peer access here, and the BAR of %s is %s: it requires one that covers all memory (Above 4G Decoding, Resizable BAR, no CSM).", [
		facts.list(gpus), facts.bytes(min({size | some size in bars.narrow})),
	]),
	"evidence": [{"fact": sprintf("pci.devices[%s].bars[0].size_bytes", [address]), "value": size, "source": "lspci"} | some address, size in bars.narrow],
	"messages": unoffered,
} if {
	count(unoffered) > 0
	gpus := object.keys(bars.narrow)
	count(gpus) > 0
}

found contains {
	"gpus": gpus,
	"subject": facts.list(gpus),
	"message": sprintf("The memory of a GPU could not be mapped for its peer (CUDA 205), and the BAR of %s is %s: it does not cover the memory.%s", [
		facts.list(gpus), facts.bytes(min({size | some size in bars.tight})), tight_words,
	]),
	"evidence": [{"fact": sprintf("gpus.devices[%s].bar1_bytes", [address]), "value": size, "source": "nvidia-smi -q"} | some address, size in bars.tight],
	"messages": logs.mapping_refused,
} if {
	count(logs.mapping_refused) > 0
	gpus := object.keys(bars.tight)
	count(gpus) > 0
}

default tight_words := ""

tight_words := " Others have a larger one, so the firmware supports it; these cards need a VBIOS with Resizable BAR." if {
	some g in input.gpus.devices
	g.vendor == "nvidia"
	g.bar1_bytes > limits.bar_fixed_most_bytes
}

refusal := {
	"words": "these cards have more memory than the BAR of their model covers, and peer access goes through it",
	"gpu": sort(bars.outgrown)[0],
	"remedies": ["nccl-p2p-disable", "replace-hardware"],
} if {
	count(bars.outgrown) > 0
} else := {
	"words": "BAR1, through which peers access it, does not cover the memory: Resizable BAR or Above 4G Decoding is off, or the address space was too small",
	"gpu": "GPU",
	"remedies": ["enable-rebar", "nccl-p2p-disable", "update-bios"],
}

findings contains {
	"subject": "host",
	"message": sprintf("The driver could not map one GPU's memory for another (error 205): %s.", [refusal.words]),
	"messages": logs.mapping_refused,
	"params": {"gpu": refusal.gpu},
	"severity": "critical",
	"confidence": {true: "confirmed", false: "likely"}[(count(bars.small) + count(bars.growing)) > 0],
	"remedies": refusal.remedies,
} if {
	count(logs.mapping_refused) > 0
}

missing contains {"fact": "gpus", "words": "the GPUs are not known"} if {
	not facts.gpus
	count(bar_room.unsized | bar_room.unmappable) + count(bar_room.kept_out) == 0
}

missing contains {"fact": "gpus.devices[].memory_bytes", "words": "NVML did not respond"} if {
	count(facts.gpus) > 0
	count(bars.sized) == 0
	not facts.only_amd
}

missing contains {"fact": "gpus.devices[].memory_bytes", "words": "amdgpu does not report the memory size"} if {
	count(bars.sized) == 0
	facts.only_amd
}

not_applicable contains "no GPU" if count(facts.gpus) == 0

not_applicable contains "the GPUs here have no BAR over their memory, as on coherent platforms" if {
	count(bars.sized) > 0
	count(bars.judged) == 0
}
