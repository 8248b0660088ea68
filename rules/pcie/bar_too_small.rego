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
# custom:
#   severity: low
#   confidence: likely
#   needs:
#     - gpus.devices[].memory_bytes
#     - ["gpus.devices[].bar1_bytes", "pci.devices[].bars"]
#   remedies: [enable-rebar, update-bios, nccl-p2p-disable, replace-hardware]
#   explains: [visible > p2p-unsupported-gpu]
#   since: "0.1"
#   grades:
#     small:
#       remedies: [enable-rebar, update-bios]
#       text: >-
#         The BAR of {gpus:few} is {size:bytes}[ for {memory:bytes} of memory][, and its Resizable BAR capability offers
#         {largest:bytes}]. Peers reach no more of the memory than that. Where card and board can, the firmware enlarges
#         it (Above 4G Decoding, Resizable BAR, no CSM)
#     no-room:
#       severity: high
#       confidence: confirmed
#       remedies: [enable-rebar, update-bios]
#       text: >-
#         The kernel found no address space for a BAR of a GPU[ ({address})]: the firmware reserves too little (Above 4G Decoding,
#         Resizable BAR). The driver cannot start the GPU, or cannot offer peer access to it
#     bridge:
#       severity: high
#       remedies: [update-bios, enable-rebar]
#       text: >-
#         The kernel found no address space for a window of {size:bytes} at bridge {subject}: the BAR of a GPU below it
#         cannot cover its memory
#     refused:
#       severity: critical
#       remedies: [nccl-p2p-disable, enable-rebar, update-bios, replace-hardware]
#       text: >-
#         The driver could not map one GPU's memory for another (error 205): the BAR does not cover the memory, because
#         Resizable BAR or Above 4G Decoding is off, the address space was too small, or a card has more memory than the
#         BAR of its model covers
package gpudoctor.rules.bar_too_small

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.pcie_links
import data.gpudoctor.lib.peers
import data.tables.thresholds

# windows are the BARs through which others see the memory of each GPU: what AMD's driver calls visible, what NVML says,
# or the size of the memory's BAR in the PCI tree. Coherent platforms (GH200, GB10) have none.
windows := {address: seen | some address in facts.gpus; seen := window(address)}

window(address) := [size, "gpus.devices[%s].visible_memory_bytes", "mem_info_vis_vram_total of the PCI device"] if {
	size := facts.gpu[address].visible_memory_bytes
} else := [size, "gpus.devices[%s].bar1_bytes", "nvmlDeviceGetBAR1MemoryInfo"] if {
	size := facts.gpu[address].bar1_bytes
	size > 0
} else := [bar.size_bytes, "pci.devices[%s].bars", "resource of the PCI device"] if {
	some bar in pci.device[address].bars
	bar.index == memory_bar(address)
	bar.size_bytes > 0
}

memory_bar(address) := 0 if peers.vendor(address) == "amd"

memory_bar(address) := 1 if {
	peers.vendor(address) == "nvidia"
	not memory(address)
}

memory(address) := facts.gpu[address].memory_bytes if facts.gpu[address].memory_bytes > 0

largest := {address: most |
	some address, [size, _, _] in windows
	most := max({bar.max_bytes | some bar in pci.device[address].resizable_bars})
	most > size
}

small[size] contains address if {
	some address, [size, _, _] in windows
	too_small(address, size)
	not facts.gpu[address].mig == true
	not facts.gpu[address].virtualization_mode == "vgpu"
	not pci.device[address].driver == "vfio-pci"
}

too_small(address, _) if amd.small_bars[address]

# Half, because a window is a power of two and the memory that NVML counts is not: an RTX PRO 6000 shows 96 GiB of its
# 128 GiB window.
too_small(address, size) if {
	size < memory(address) / 2
	not address in amd.large_bars
}

# Where the memory is not known, the size that every card starts with is too small for cards that can have more.
too_small(address, size) if {
	not memory(address)
	size <= thresholds.bar_default_bytes
	resizable(address)
}

resizable(address) if largest[address]
resizable(address) if gpu_models.model[facts.gpu[address].name].resizable_bar

findings contains {
	"grade": "small",
	"subject": peers.shorten(gpus),
	"affects": sort(gpus),
	"about": object.union_n([
		{"gpus": gpus, "size": size},
		{"memory": m | m := max({memory(gpu) | some gpu in gpus})},
		{"largest": l | l := max({largest[gpu] | some gpu in gpus})},
	]),
	"evidence": [{"fact": sprintf(fact, [gpu]), "value": size, "source": source} | some gpu in sort(gpus); [_, fact, source] := windows[gpu]],
	"severity": {true: "medium", false: "low"}[count(gpus & needing) > 0],
	"confidence": {true: "confirmed", false: "likely"}[count(gpus & object.keys(largest)) > 0],
} if some size, gpus in small

# needing are the GPUs that would talk to another over PCIe through a BAR that can grow. NVIDIA's driver uses BAR1 for
# peer access on some cards only, so a small one that cannot grow (T4) matters little.
needing contains address if {
	some p in facts.gpu_pairs
	peers.joined(p) != "nvlink"
	not p.link_type == "xgmi"
	not peers.refused(p)
	not peers.measured(p.a, p.b) == "good"
	some address in [p.a, p.b]
	address in (object.keys(largest) | object.keys(amd.small_bars))
}

findings contains {
	"grade": "refused",
	"subject": "host",
	"messages": logs.mapping_refused,
} if count(logs.mapping_refused) > 0

# roomless are the GPUs with a memory BAR for which the kernel found no room, in the PCI tree and in the kernel log. A
# driver that fails to enlarge a BAR goes on with the small one, so a later size says nothing against it.
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

roomless[pci.place(e)] contains evidence if {
	some e in pci.no_room
	of_gpu(e)
	some evidence in pci.event_evidence({e})
}

# of_gpu is true of a BAR of a GPU, by its address, the driver that speaks, or the size that nothing else asks for.
of_gpu(e) if e.address in facts.gpus
of_gpu(e) if e.kind == "amdgpu"
of_gpu(e) if e.fields.driver in {"nvidia", "amdgpu"}
of_gpu(e) if e.id in {"nvrm-bar-invalid", "amdgpu-bar-resize-failed", "amdgpu-bar-no-address-space"}

of_gpu(e) if {
	count([address | some address in facts.gpus; contains(address, ":")]) == 0
	e.size_bytes >= (1024 * 1024) * 1024
}

findings contains object.union(
	{
		"grade": "no-room",
		"subject": place,
		"affects": [place | place != "host"],
		"about": {"address": [place | place != "host"]},
		"evidence": evidence,
	},
	{"id": "visible" | of_amd}, # Its driver offers peer access only if the CPU sees all memory.
) if some place, evidence in roomless

of_amd if "amdgpu" in {driver | some e in pci.no_room; some driver in [e.kind, e.fields.driver]}

# A window of a bridge that found no room, although nothing but the memory of a GPU needs one as large. Where it is not
# known which bridges are above a GPU, it may be below this one.
findings contains {
	"grade": "bridge",
	"subject": e.address,
	"affects": sort(gpus),
	"about": {"size": e.size_bytes},
	"evidence": pci.event_evidence({e}),
} if {
	some e in pci.events["bridge-window"]
	gpus := pcie_links.below(e.address) & facts.gpus
	unplaced := facts.gpus - {d.address | some d in input.pci.devices; d.root_bus != ""}
	count({true: gpus, false: unplaced}[count(gpus) > 0] - covered) > 0
	count(roomless) == 0
}

covered := {address | some address, _ in windows; memory(address)} - union({gpus | some gpus in small})

not_applicable contains "no GPU" if count(facts.gpus) == 0

not_applicable contains "the GPUs here have no BAR over their memory, as on coherent platforms" if {
	some address in facts.gpus
	memory(address)
	count(windows) == 0
}
