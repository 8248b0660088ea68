# METADATA
# title: The BAR does not cover the GPU's memory
# description: >-
#   Other devices access a GPU's memory through a window, its BAR. A BAR much smaller than the memory limits GPUDirect
#   RDMA and every form of peer-to-peer access that uses it; AMD's driver then offers no peer access.
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
#   since: "0.1"
package gpudoctor.rules.bar_too_small

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.tables.gpu_models as table
import data.tables.thresholds

# pcie_ends are the GPUs that would talk to another over PCIe.
pcie_ends contains address if {
	some p in facts.gpu_pairs
	peers.joined(p) == "pcie"
	not p.link_type == "xgmi"
	not peers.refused(p)
	not peers.measured(p.a, p.b) == "good"
	some address in [p.a, p.b]
}

# The window affects NVIDIA's own peer-to-peer access only if the driver uses BAR1 for it, so a small one that cannot
# grow (T4) gives only a low finding. One that the card could enlarge is a missed setting.
grade(address, size) := ["medium", "confirmed"] if {
	growable(address, size)
	address in pcie_ends
} else := ["low", "likely"] if {
	address in xgmi_ends
} else := ["medium", "likely"] if {
	facts.gpu[address].vendor == "amd"
	count(facts.gpus) > 1
} else := ["low", "confirmed"] if {
	growable(address, size)
} else := ["low", "likely"]

# found are the GPUs with a BAR that is too small, with the evidence. What follows holds
# for each unless it says otherwise.
findings contains object.union({"subject": peers.shorten(f.affects), "severity": "high", "remedies": ["enable-rebar", "update-bios"]}, f) if some f in found

unenlarged := "the firmware has not enlarged it (Above 4G Decoding, Resizable BAR, no CSM)"

found contains {
	"affects": gpus,
	"subject": subject(gpus),
	"message": sprintf("The BAR of %s covers %s of %s of memory.%s", [named(gpus), k.window, k.memory, outlook(gpus)]),
	"evidence": [e |
		some address in sort(gpus)
		some e in array.concat([size_evidence(address)], growth_evidence(address))
	],
	"severity": k.grade[0],
	"confidence": k.grade[1],
} if {
	some k in {kind(address) | some address, _ in small}
	gpus := {address | some address, _ in small; kind(address) == k}
}

# xgmi_ends are the GPUs that reach each other one over xGMI, which needs no BAR.
xgmi_ends := peers.ends(xgmi_pairs) - peers.ends(amd.pairs - xgmi_pairs)

xgmi_pairs := {p | some p in amd.pairs; p.link_type == "xgmi"}

# kind groups GPUs that are alike.
kind(address) := {
	"grade": grade(address, small[address]),
	"window": facts.bytes(small[address]),
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
	sizes := {largest | some address in gpus; largest := growable(address, small[address])}
	count(sizes) > 0
} else := " AMD's driver offers peer access over PCIe only if all of it is visible (Above 4G Decoding, Resizable BAR, no CSM)." if {
	count(gpus & object.keys(amd.small_bars)) > 0
} else := " The card offers no larger size, or its capabilities could not be read."

size_evidence(address) := {
	"fact": sprintf("gpus.devices[%s].visible_memory_bytes", [address]),
	"value": small[address],
	"source": "mem_info_vis_vram_total of the PCI device",
} if {
	amd.small_bars[address]
} else := {
	"fact": sprintf("gpus.devices[%s].bar1_bytes", [address]),
	"value": small[address],
	"source": {"nvidia": "nvmlDeviceGetBAR1MemoryInfo", "amd": "resource of the PCI device, BAR 0"}[facts.gpu[address].vendor],
}

growth_evidence(address) := [{
	"fact": sprintf("pci.devices[%s].resizable_bars", [address]),
	"value": pci.device[address].resizable_bars,
	"source": sprintf("/sys/bus/pci/devices/%s/config", [address]),
} |
	growable(address, small[address])
]

found contains {
	"affects": left_small,
	"message": sprintf("The BAR of %s is 256 MiB, but cards of this generation can have one as large as their memory: %s. Peer access through BAR1, which modified drivers for GeForce provide, needs that.", [
		named(left_small), unenlarged,
	]),
	"evidence": [{"fact": sprintf("pci.devices[%s].bars[1].size_bytes", [address]), "value": thresholds.bar_default_bytes, "source": pci.port_at(address)} | some address in sort(left_small)],
	"severity": "low",
} if {
	count(left_small) > 0
}

found contains {
	"affects": gpus,
	"subject": subject(gpus),
	"message": sprintf("The BAR of %s is %s, and its Resizable BAR capability offers %s: %s.", [
		named(gpus), facts.bytes(min({r.size_bytes | some r in growing})), facts.bytes(max({r.max_bytes | some r in growing})), unenlarged,
	]),
	"evidence": [{"fact": sprintf("pci.devices[%s].resizable_bars", [address]), "value": r, "source": "lspci, or config space"} | some address, r in growing],
	"severity": "low",
} if {
	gpus := object.keys(growing)
	count(gpus) > 0
}

unoffered := logs.messages({"hip-no-peer-access", "hip-peer-access-failed"})

found contains {
	"affects": gpus,
	"subject": facts.list(gpus),
	"message": sprintf("AMD's driver offers no peer access here, and the BAR of %s is %s: it requires one that covers all memory (Above 4G Decoding, Resizable BAR, no CSM).", [
		facts.list(gpus), facts.bytes(min({size | some size in narrow})),
	]),
	"evidence": [{"fact": sprintf("pci.devices[%s].bars[0].size_bytes", [address]), "value": size, "source": "lspci"} | some address, size in narrow],
	"messages": unoffered,
} if {
	count(unoffered) > 0
	gpus := object.keys(narrow)
	count(gpus) > 0
}

found contains {
	"affects": gpus,
	"subject": facts.list(gpus),
	"message": sprintf("The memory of a GPU could not be mapped for its peer (CUDA 205), and the BAR of %s is %s: it does not cover the memory.%s", [
		facts.list(gpus), facts.bytes(min({size | some size in tight})), tight_words,
	]),
	"evidence": [{"fact": sprintf("gpus.devices[%s].bar1_bytes", [address]), "value": size, "source": "nvidia-smi -q"} | some address, size in tight],
	"messages": logs.mapping_refused,
} if {
	count(logs.mapping_refused) > 0
	gpus := object.keys(tight)
	count(gpus) > 0
}

default tight_words := ""

tight_words := " Others have a larger one, so the firmware supports it; these cards need a VBIOS with Resizable BAR." if {
	some g in input.gpus.devices
	g.vendor == "nvidia"
	g.bar1_bytes > thresholds.bar_fixed_most_bytes
}

refusal := {
	"words": "these cards have more memory than the BAR of their model covers, and peer access goes through it",
	"gpu": sort(outgrown)[0],
	"remedies": ["nccl-p2p-disable", "replace-hardware"],
} if {
	count(outgrown) > 0
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
	"confidence": {true: "confirmed", false: "likely"}[(count(small) + count(growing)) > 0],
	"remedies": refusal.remedies,
} if {
	count(logs.mapping_refused) > 0
}

not_applicable contains "no GPU" if count(facts.gpus) == 0

not_applicable contains "the GPUs here have no BAR over their memory, as on coherent platforms" if {
	count(sized) > 0
	count(judged) == 0
}

# GPU BARs for which the kernel found no address space, in the PCI tree and in the kernel log. Each sign has the
# GPUs, words and evidence.

# roomless are the GPUs with a memory BAR for which the kernel found no room: the driver cannot reach the GPU at all, or
# not its memory. The kernel log says it of the function that the address, or the driver's name at the beginning of the
# line, says is a GPU. A driver that fails to enlarge a BAR goes on with the small one, so a later size says nothing
# against it.
roomless[d.address] contains {
	"fact": sprintf("pci.devices[%s].bars[%d].unassigned", [d.address, bar.index]),
	"value": true,
	"source": sprintf("/sys/bus/pci/devices/%s/resource", [d.address]),
} if {
	some address in facts.gpus
	d := pci.device[address]
	some bar in d.bars
	bar.unassigned == true
	not bar.io == true
}

roomless[e.address] contains evidence if {
	some e in pci.events.bar
	gpu_event(e)
	some evidence in pci.event_evidence({e})
}

found contains {
	"affects": {address},
	"message": sprintf("The kernel found no address space for a BAR of GPU %s: the firmware reserves too little (Above 4G Decoding, Resizable BAR).", [address]),
	"evidence": evidence,
	"confidence": "confirmed",
} if {
	some address, evidence in roomless
	address != ""
}

gpu_event(e) if e.address in facts.gpus

gpu_event(e) if e.fields.driver in {"nvidia", "amdgpu"}

gpu_event(e) if e.id == "nvrm-bar-invalid"

# The driver of AMD GPUs speaks of the same function.
gpu_event(e) if {
	some other in pci.events.amdgpu
	other.address == e.address
	e.address != ""
}

# Nothing but a GPU asks for a BAR of 1 GiB and more on these machines.
gpu_event(e) if {
	not facts.gpus
	e.size_bytes >= (1024 * 1024) * 1024
}

# unsized are lines of AMD's driver that say for themselves that the BAR over the memory keeps the size which the
# firmware gave it (amdgpu_device.c, amdgpu_device_resize_fb_bar). Many of them name no GPU.
unsized contains e if {
	some e in pci.events.bar
	e.id in {"amdgpu-bar-resize-failed", "amdgpu-bar-no-address-space"}
	not roomless[object.get(e, "address", "")]
}

found contains {
	"affects": {e.address | some e in unsized; e.address != ""},
	"subject": "host",
	"message": "AMD's driver could not enlarge the BAR over a GPU's memory: the firmware reserves too little address space (Above 4G Decoding, Resizable BAR). Without a BAR over all memory there is no peer access, and a GPU whose BARs lost their address in the attempt does not start",
	"evidence": pci.event_evidence(unsized),
	"confidence": "confirmed",
} if {
	count(unsized) > 0
}

# unmappable are AMD GPUs that did not start because memory could not be mapped (ENOMEM,
# 12). At that point the driver has only tried to map the BAR of its registers
# (amdgpu_device.c, amdgpu_device_init), for which the firmware or the kernel found no
# place.
unmappable contains e if {
	some e in pci.events.amdgpu
	e.code == 12
	not roomless[e.address]
}

found contains {
	"affects": {e.address},
	"message": sprintf("The driver of GPU %s did not start because it could not map memory (error -12): the BAR of its registers has no address. Check Above 4G Decoding, SR-IOV support and the size of the MMIO space in the BIOS.", [e.address]),
	"evidence": pci.event_evidence({e}),
} if {
	some e in unmappable
}

# A window of a bridge that found no room, although nothing but the memory of a GPU needs one as large. Where it is not
# known which bridges are above a GPU, it may be below this one.
cramped[e.address] contains e if {
	some e in pci.events["bridge-window"]
	count(below(e.address) | unplaced) > 0
	not fits(e.address)
}

below(bridge) := {address |
	some address in facts.gpus
	bridge in pci.device[address].ancestors
}

unplaced := {address | some address in facts.gpus; not placed(address)}

placed(address) if pci.device[address].root_bus != ""

# fits is true for a bridge whose GPUs still have enough room.
fits(bridge) if {
	count(below(bridge)) > 0
	every address in below(bridge) {
		facts.gpu[address].bar1_bytes >= facts.gpu[address].memory_bytes / 2
		facts.gpu[address].memory_bytes > 0
	}
}

found contains {
	"affects": gpus,
	"subject": bridge,
	"message": sprintf("The kernel found no address space for a window of %s at bridge %s: the BAR of a GPU below it cannot cover its memory.", [
		facts.bytes(max({e.size_bytes | some e in es})), bridge,
	]),
	"evidence": pci.event_evidence(es),
	"confidence": {true: "confirmed", false: "likely"}[count(gpus) > 0],
	"remedies": ["update-bios", "enable-rebar"],
} if {
	some bridge, es in cramped
	gpus := below(bridge)
	count(gpus & object.keys(roomless)) == 0
}

# Which BARs are smaller than the memory that they should cover, according to NVML, the drivers and the PCI
# tree, and which could be larger.

# window is the size of the BAR through which a GPU's memory is seen. NVML says it for NVIDIA's; on AMD's it is BAR 0. A
# coherent platform (GH200, GB10) has none, and none is not a small one.
window(g) := g.bar1_bytes if {
	g.vendor == "nvidia"
}

window(g) := bar.size_bytes if {
	g.vendor == "amd"
	some bar in pci.device[g.address].bars
	bar.index == 0
	bar.size_bytes > 0
}

# small are the GPUs whose window covers less than half of their memory. Half, because a window is a power of two and
# the memory that NVML counts is not: an RTX PRO 6000 shows 96 GiB of its 128 GiB window.
small[g.address] := size if {
	some g in facts.named
	size := window(g)
	g.memory_bytes > 0
	size < g.memory_bytes / 2
	not g.mig == true
	not g.virtualization_mode == "vgpu"
	not g.address in amd.large_bars
	not amd.small_bars[g.address]
}

# AMD's driver reports how much of the memory is visible, and requires all of it to be.
small[address] := size if some address, size in amd.small_bars

# growable is the largest size that the card's Resizable BAR offers for its memory, where that is more than it has.
growable(address, size) := largest if {
	largest := max({bar.max_bytes | some bar in pci.device[address].resizable_bars})
	largest > size
}

# If the memory size of a GPU is not known, the size of its window counts.
#
# sized are the GPUs of which it is known; listed the others that the PCI tree shows.
sized := {g.address | some g in facts.named; g.memory_bytes > 0}

listed[d.vendor] contains d if {
	some d in input.pci.devices
	d.kind == "gpu"
	not d.address in sized
}

# left_small are GeForce and workstation cards of a generation that has Resizable BAR
# (Ampere and later: ids rise with the generations) whose window
# is as it was before: 256 MiB. None of them has as little memory.
left_small contains d.address if {
	count(input.texts) > 0
	some d in listed["0x10de"]
	resizable_generation(d)
	object.get(facts.gpu, [d.address, "bar1_bytes"], 0) == 0
	some bar in d.bars
	bar.index == 1
	bar.size_bytes == thresholds.bar_default_bytes
	not d.driver == "vfio-pci"
}

resizable_generation(d) if d.device >= table.nvidia.first_resizable_bar_id

resizable_generation(d) if gpu_models.model[facts.gpu[d.address].name].resizable_bar

# growing are the NVIDIA GPUs of which lspci shows a BAR that could be larger by far.
growing[d.address] := r if {
	some d in listed["0x10de"]
	some r in d.resizable_bars
	r.index == 1
	r.size_bytes * 16 <= r.max_bytes
}

# narrow are the AMD GPUs whose window has the size that every card starts with (256 MiB): no card for ROCm has so
# little memory. Their driver offers peer access only through a window that covers all.
narrow[d.address] := bar.size_bytes if {
	some d in listed["0x1002"]
	some bar in d.bars
	bar.index == 0
	bar.size_bytes > 0
	bar.size_bytes <= thresholds.bar_default_bytes
}

# A driver could not map the memory of a GPU for its peer (CUDA 205). Drivers that put peer access through BAR1 need it
# to cover the memory, and no GPU that such a driver is for has less than 2 GiB (aikitoria/open-gpu-kernel-modules issue
# 22: two of three cards at 256 MiB).
tight[g.address] := g.bar1_bytes if {
	some g in input.gpus.devices
	g.vendor == "nvidia"
	g.bar1_bytes > 0
	g.bar1_bytes <= thresholds.bar_fixed_most_bytes
}

# outgrown are the models whose BAR1 ends below the memory that modified cards
# have: the firmware of a GeForce RTX 4090 offers 32 GiB at most.
outgrown := {g.address |
	some g in input.gpus.devices
	g.memory_bytes > (gpu_models.model[g.name].most_bar1_gib * 1024) * (1024 * 1024)
}

judged := {g.address |
	some g in facts.named
	g.memory_bytes > 0
	window(g)
} | (amd.large_bars | object.keys(amd.small_bars))
