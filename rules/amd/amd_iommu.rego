# METADATA
# title: The IOMMU mode does not suit the AMD GPUs
# description: >-
#   AMD's Instinct accelerators need IOMMU pass-through (iommu=pt). With a translating IOMMU, transfers between GPUs
#   hang or are slow, typically when a communicator starts. Radeon cards need remapping when they use PCIe peer access.
#   RCCL's warning about iommu=pt only looks for these words on the kernel command line, and does not recognize other
#   ways to pass-through. This rule has not been tested on AMD hardware.
# related_resources:
#   - ref: https://rocm.docs.amd.com/en/latest/conceptual/iommu.html
#     description: The IOMMU modes that Instinct and Radeon GPUs need
#   - {ref: https://github.com/ROCm/rccl/issues/1129, description: rccl-tests on two MI100 hang until iommu=pt is set}
#   - ref: https://github.com/ROCm/rocm-systems/blob/develop/projects/rccl/src/init.cc
#     description: RCCL's warning only compares words
# custom:
#   severity: high
#   confidence: likely
#   areas: [iommu]
#   needs: [gpus.devices, [iommu.mode, iommu.groups]]
#   remedies: [iommu-pt, iommu-remap, nccl-p2p-disable]
#   explains: [p2p-broken-platform, p2p-slow, "faults > amd-iommu/in-force", "asked > amd-iommu/in-force"]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     asked: >-
#       {signs}, and the kernel command line does not set pass-through (iommu=pt). If the IOMMU translates the DMA of
#       Instinct accelerators, their transfers may hang, and AMD recommends pass-through. For Radeon cards, AMD recommends
#       remapping, the default, but names the IOMMU as the first suspect if applications on several of them hang: go
#       through host memory (NCCL_P2P_DISABLE=1) or try iommu=pt
#     faults: "The IOMMU blocked accesses by {blocked}: transfers to addresses that it does not translate for them fail"
#     in-force: >-
#       The IOMMU's mode ({mode}) does not suit these GPUs: AMD recommends pass-through (iommu=pt) for Instinct
#       accelerators, because transfers between them may hang, and remapping, the default, for Radeon cards that use peer
#       access over PCIe
package gpudoctor.rules.amd_iommu

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci

# passed is true where it is known that DMA is not translated, or that this was asked for.
passed if input.iommu.mode in {"passthrough", "off"}

passed if count(input.iommu.units) == 0

# What is asked for counts only where it is not known what is in force.
passed if {
	not translated
	count(((iommu.passing | iommu.off) | (iommu.words & {"iommu.passthrough=on"}))) > 0
}

translated if input.iommu.mode in {"translated", "mixed"}

# signs are why to ask how the IOMMU treats the GPUs: RCCL's complaint that iommu=pt is not on the command line, which most
# machines show that work, and, as RCCL prints nothing at its default level, a collective that does not end.
signs contains "RCCL complains" if count(warned) > 0

signs contains "A collective of AMD GPUs hangs" if {
	count(input.host.command_line) > 0
	amd.present
	not amd.only_radeon
	count(logs.stalled) > 0
}

signs contains "a communicator did not initialize" if {
	count(warned) > 0
	amd.stuck
}

warned := logs.messages({"rccl-iommu-pt-missing"})

findings contains {
	"id": "asked",
	"subject": "host",
	"about": {"signs": signs},
	"messages": warned,
	"evidence": array.flatten([
		sort(logs.stalled),
		[{"fact": "host.command_line", "value": concat(" ", input.host.command_line), "source": "/proc/cmdline"} | count(input.host.command_line) > 0],
		[{"fact": "iommu.mode", "value": input.iommu.mode, "source": "the IOMMU groups, or the kernel log"} | translated],
	]),
	"severity": severity,
	"confidence": confidence,
	"remedies": remedies,
} if {
	count(signs) > 0
	not passed
}

severity := "low" if {
	signs == {"RCCL complains"}
} else := "critical" if {
	amd.stuck
	not amd.only_radeon
} else := "high"

# On several Radeon GPUs, AMD names the IOMMU first for applications that hang
# (rocm.docs.amd.com/projects/radeon, "Application hangs on Multi-GPU systems").
remedies := ["nccl-p2p-disable", "iommu-pt"] if {
	amd.only_radeon
} else := ["iommu-pt", "nccl-p2p-disable"]

default confidence := "possible"

confidence := "likely" if {
	severity != "low"
	not amd.only_radeon
	suspected
}

suspected if amd.instinct
suspected if translated

# faults are accesses of AMD GPUs that the IOMMU refused: no guess is needed. The address, or the driver's name at the
# start of the line, shows whose they were.
faults contains e if {
	some e in pci.refused
	e.fields.driver == "amdgpu"
}

faults contains e if {
	some e in pci.refused
	e.address in amd.addresses
}

findings contains {
	"id": "faults",
	"subject": "host",
	"affects": sort(blocked),
	"about": {"blocked": blocked},
	"evidence": pci.event_evidence(faults),
	"remedies": [r | some r in remedies; not useless(r)],
} if {
	count(faults) > 0
	not facts.is_passthrough_host == true
	blocked := {e.address | some e in faults}
}

useless("iommu-pt") if passed

# What the machine itself shows, without a complaint. A job that hangs with a setting that is not recommended may hang
# because of it.
findings contains {
	"id": "in-force",
	"subject": "host",
	"about": {"mode": input.iommu.mode},
	"severity": unsuited[0],
	"confidence": unsuited[1],
	"evidence": [{"fact": "iommu.mode", "value": input.iommu.mode, "source": "/sys/kernel/iommu_groups/*/type"}],
	"remedies": [unsuited[2]],
} if {
	not facts.is_guest == true
	not facts.is_passthrough_host == true
}

unsuited := ["low", "likely", "iommu-pt"] if {
	input.iommu.mode == "translated"
	amd.instinct
	count(amd.gpus) > 1
} else := [{true: "high", false: "low"}[count([s | s := amd.stuck]) > 0], "possible", "iommu-remap"] if {
	input.iommu.mode in {"passthrough", "off"}
	amd.only_radeon
	count(amd.discrete) > 1
	peers_over_pcie
}

peers_over_pcie if count(amd.over_pcie) > 0
peers_over_pcie if count(amd.pairs) == 0

judged if count(warned) > 0
judged if count(faults) > 0
judged if translated
judged if passed

missing contains {"fact": "iommu", "words": "it is not known how the IOMMU treats the GPUs"} if {
	amd.present
	not judged
}

not_applicable contains "no AMD GPU" if amd.absent
