# METADATA
# title: BARs over GPU memory
# description: >-
#   Which BARs are smaller than the memory that they should cover, according to
#   NVML, the drivers and the PCI tree, and which could be larger.
package gpudoctor.lib.bars

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.pci
import data.tables.gpu_models as table
import data.tables.limits

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
	not g.address in amd.large_bars
	not amd.small_bars[g.address]
}

# AMD's driver reports how much of the memory is visible, and requires all of it to be.
small[address] := size if some address, size in amd.small_bars

# growable is the largest size that the card's Resizable BAR offers for its
# memory, where that is more than it has.
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
	not d.address in windowed
	some bar in d.bars
	bar.index == 1
	bar.size_bytes == limits.bar_default_bytes
	not d.driver == "vfio-pci"
}

windowed := {g.address | some g in facts.named; g.bar1_bytes > 0}

resizable_generation(d) if d.device >= table.nvidia.first_resizable_bar_id

resizable_generation(d) if gpu_models.model[facts.gpu[d.address].name].resizable_bar

# growing are the NVIDIA GPUs of which lspci shows a BAR that could be larger by far.
growing[d.address] := r if {
	some d in listed["0x10de"]
	some r in d.resizable_bars
	r.index == 1
	r.size_bytes * 16 <= r.max_bytes
}

# narrow are the AMD GPUs whose window has the size that every card starts with
# (256 MiB): no card for ROCm has so little memory. Their driver offers peer access
# only through a window that covers all.
narrow[d.address] := bar.size_bytes if {
	some d in listed["0x1002"]
	some bar in d.bars
	bar.index == 0
	bar.size_bytes > 0
	bar.size_bytes <= limits.bar_default_bytes
}

# A driver could not map the memory of a GPU for its peer (CUDA 205). Drivers that put
# peer access through BAR1 need it to cover the memory, and no GPU that such a driver is
# for has less than 2 GiB (aikitoria/open-gpu-kernel-modules issue 22: two of three
# cards at 256 MiB).
tight[g.address] := g.bar1_bytes if {
	some g in input.gpus.devices
	g.vendor == "nvidia"
	g.bar1_bytes > 0
	g.bar1_bytes <= limits.bar_fixed_most_bytes
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
