# METADATA
# title: NVIDIA GPUs and the IOMMU
# description: >-
#   The pairs of NVIDIA GPUs between which an IOMMU translates, or may
#   translate, and their accesses that it blocked.
package gpudoctor.lib.nvidia_iommu

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers

# group is the IOMMU group of each device.
group[address] := g if {
	some g in input.iommu.groups
	some address in g.devices
}

# judged are the pairs of NVIDIA GPUs on bare metal that communicate over PCIe. AMD's GPUs
# need the opposite on some models, and an Arm SMMU serves Grace's coherent links, so
# neither is judged here.
judged contains p if {
	pci.bare_metal
	some p in over_pcie
	not peers.refused(p)
	not peers.passed_on(p)
	not input.iommu.vendor == "arm"
}

over_pcie := {p | some p in facts.gpu_pairs; peers.both_nvidia(p); peers.joined(p) != "nvlink"}

# affected are the judged pairs of which an end is translated.
affected contains p if {
	some p in judged
	some address in [p.a, p.b]
	pci.translated(address)
}

# standing is how much the translation matters to one pair. A measurement takes precedence
# over what the facts imply.
standing(p) := peers.standing(p) if {
	peers.standing(p)
} else := unmeasured(p)

unmeasured(p) := {true: "implied", false: "unsure"}[peers.joined(p) == "pcie"]

# suspects are the judged pairs of whose groups the type is not known.
suspects := {p |
	some p in judged
	not groups_told(p)
	peers.measured(p.a, p.b) in {"nothing", "failed"}
}

groups_told(p) if {
	some address in [p.a, p.b]
	count(pci.domains[address]) > 0
}

suspects_standing := {true: "implied", false: "unsure"}["implied" in {unmeasured(p) | some p in suspects}]

# refused are the accesses of NVIDIA GPUs that the IOMMU refused, as the kernel
# logs them: a GPU that wrote to a peer's address for which there is no mapping.
refused contains e if {
	some kind in ["amd-vi-fault", "dmar-fault"]
	some e in pci.events[kind]
	of_nvidia(e)
	not facts.is_guest == true
}

of_nvidia(e) if peers.vendor(e.address) == "nvidia"

of_nvidia(e) if e.fields.driver == "nvidia"
