# METADATA
# title: The IOMMU mode does not suit the AMD GPUs
# description: >-
#   AMD's Instinct accelerators need IOMMU pass-through (iommu=pt). With a translating IOMMU, transfers between GPUs
#   hang or are slow, typically when a communicator starts. Radeon cards need remapping when they use PCIe peer access.
#   RCCL's warning about iommu=pt only looks for these words on the kernel command line. It does not recognize
#   pass-through that is the kernel's default or that is set by another name. This rule has not been tested on AMD
#   hardware.
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
#   first_of: [warned, unasked]
#   explains: [p2p-broken-platform, p2p-slow, "faults > amd-iommu/in-force", "warned > amd-iommu/in-force"]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     radeon:
#       confidence: possible
#       remedies: [nccl-p2p-disable, iommu-pt]
#       text: >-
#         RCCL finds no iommu=pt on the kernel command line. AMD recommends pass-through for Instinct accelerators and
#         remapping, the default, for Radeon GPUs, but names the IOMMU as the first suspect if applications on several
#         Radeon GPUs hang. If the job hangs, go through host memory (NCCL_P2P_DISABLE=1) or try iommu=pt
#     stuck:
#       severity: critical
#       remedies: [iommu-pt, nccl-p2p-disable]
#       text: >-
#         RCCL finds no iommu=pt on the kernel command line[, and {translates}], and a communicator did not initialize.
#         If the IOMMU translates the DMA of AMD's accelerators, their transfers hang; set iommu=pt for pass-through
#     advised:
#       severity: low
#       confidence: possible
#       remedies: [iommu-pt]
#       text: >-
#         RCCL finds no iommu=pt on the kernel command line. RCCL looks only for these words; if the IOMMU does
#         translate, AMD recommends pass-through for Instinct GPUs
#     unasked:
#       remedies: [iommu-pt, nccl-p2p-disable]
#       text: >-
#         A collective of AMD GPUs hangs, and the kernel command line does not set pass-through for their DMA. If the
#         IOMMU translates the DMA of Instinct GPUs, their transfers hang; set iommu=pt for pass-through
#     faults: "The IOMMU blocked accesses by {blocked}: transfers to addresses that it does not translate for them fail"
#     translated:
#       severity: low
#       remedies: [iommu-pt]
#       text: >-
#         The IOMMU translates the DMA of Instinct GPUs. AMD recommends pass-through (iommu=pt) instead of disabling it,
#         for speed between GPUs and NICs and because transfers between GPUs over PCIe may hang. On MI200, whose tuning
#         guide disables the IOMMU in the firmware, either setting works with fewer than 256 threads
#     not-remapped:
#       confidence: possible
#       remedies: [iommu-remap, nccl-p2p-disable]
#       text: >-
#         The IOMMU {mode}, and {cards} Radeon GPUs can use peer access only over PCIe. AMD recommends remapping, the
#         default, for them: the kernel then maps a peer's memory to addresses that the other GPU can use
package gpudoctor.rules.amd_iommu

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.logs

# warned are RCCL's complaints that iommu=pt is not on the command line.
warned := logs.by_id["rccl-iommu-pt-missing"]

# passed is true where it is known that DMA is not translated, or that this was asked for.
passed if input.iommu.mode in {"passthrough", "off"}

passed if {
	is_array(input.iommu.units)
	count(input.iommu.units) == 0
}

# What is asked for counts only where it is not known what is in force.
passed if {
	not in_force
	some word in iommu.words
	word in {"iommu=pt", "iommu.passthrough=1", "iommu.passthrough=y", "iommu.passthrough=on", "iommu=off", "amd_iommu=off", "intel_iommu=off"}
}

in_force if input.iommu.mode in {"passthrough", "off", "translated", "mixed"}

translated if input.iommu.mode in {"translated", "mixed"}

# faults are accesses of AMD GPUs that the IOMMU refused. The address, or the driver's name at the start of the line,
# shows whose they were.
faults contains e if {
	some e in input.kernel_log.events
	e.kind in {"amd-vi-fault", "dmar-fault"}
	of_amd(e)
}

of_amd(e) if e.fields.driver == "amdgpu"
of_amd(e) if e.address in {g.address | some g in amd.gpus}

# The meaning of RCCL's warning depends on the family of the GPUs, and on whether a communicator initialized: most
# machines that show it work. On several Radeon GPUs, AMD names the IOMMU first for applications that hang
# (rocm.docs.amd.com/projects/radeon, "Application hangs on Multi-GPU systems").
findings contains object.union(
	{
		"id": "warned",
		"subject": "host",
		"about": {"translates": ["the IOMMU does translate" | translated]},
		"messages": warned,
		"evidence": [{"fact": "iommu.mode", "value": input.iommu.mode, "source": "the IOMMU groups, or the kernel log"} | translated],
	},
	warning,
) if {
	count(warned) > 0
	not passed
}

warning := {"grade": "radeon", "severity": {true: "high", false: "low"}[stuck]} if {
	amd.only_radeon
} else := {"grade": "stuck", "confidence": {true: "likely", false: "possible"}[suspicious]} if {
	stuck
} else := {"grade": "advised"}

default stuck := false

stuck if amd.stuck

default suspicious := false

suspicious if amd.instinct
suspicious if translated

# RCCL prints nothing at its default level, so the kernel's messages decide.
findings contains {
	"id": "unasked",
	"subject": "host",
	"confidence": {true: "likely", false: "possible"}[object.get(input, ["iommu", "default_domain"], "") == "translated"],
	"evidence": array.concat(sort(logs.stalled), [{"fact": "host.command_line", "value": concat(" ", input.host.command_line), "source": "/proc/cmdline"}]),
} if {
	count(input.host.command_line) > 0
	not passed
	amd.present
	not amd.only_radeon
	count(logs.stalled) > 0
}

# The IOMMU refuses accesses of a GPU: no guess is needed.
findings contains {
	"id": "faults",
	"subject": "host",
	"affects": sort(blocked),
	"about": {"blocked": blocked},
	"evidence": [{"fact": sprintf("kernel_log.events[%s]", [e.kind]), "value": e.message, "source": input.kernel_log.source} | some e in sort(faults)],
	"remedies": cures,
} if {
	count(faults) > 0
	not facts.is_passthrough_host == true
	blocked := {e.address | some e in faults}
}

# cures: AMD recommends remapping for Radeon cards, but if the IOMMU blocks their accesses
# to each other, only pass-through or running without peer access helps.
cures := ["nccl-p2p-disable", "iommu-pt"] if {
	amd.only_radeon
	not passed
} else := ["nccl-p2p-disable"] if {
	passed
} else := ["iommu-pt", "nccl-p2p-disable"]

# in_force_evidence is what the machine itself shows, without a complaint.
in_force_evidence := [{"fact": "iommu.mode", "value": input.iommu.mode, "source": "/sys/kernel/iommu_groups/*/type"}]

findings contains {"id": "in-force", "grade": "translated", "subject": "host", "evidence": in_force_evidence} if {
	input.iommu.mode == "translated"
	amd.instinct
	count(amd.gpus) > 1
	not facts.is_guest == true
}

# Radeon cards with peer access over PCIe need the opposite, but only if they would use it.
peers_over_pcie if count(amd.over_pcie) > 0

peers_over_pcie if {
	count(amd.discrete) > 1
	count(amd.pairs) == 0
}

no_peers if {
	count(amd.over_pcie) > 0
	every p in amd.over_pcie {
		p.accessible == false
	}
}

findings contains {
	"id": "in-force",
	"grade": "not-remapped",
	"subject": "host",
	"about": {
		"mode": {"passthrough": "passes DMA through (iommu=pt)", "off": "is off"}[input.iommu.mode],
		"cards": count(amd.discrete),
	},
	"severity": radeon_severity,
	"evidence": in_force_evidence,
} if {
	input.iommu.mode in {"passthrough", "off"}
	amd.only_radeon
	count(amd.discrete) > 1
	peers_over_pcie
	not facts.is_guest == true
	not facts.is_passthrough_host == true
}

# A driver that could offer peer access but does not is worth a reboot. A job that hangs with a setting that is not
# recommended may hang because of it.
radeon_severity := "high" if {
	amd.stuck
} else := "medium" if {
	no_peers
} else := "low"

judged if count(warned) > 0
judged if count(faults) > 0
judged if translated
judged if passed

missing contains {"fact": "gpus", "words": "it is not known whether there are AMD GPUs"} if {
	not judged
	not amd.present
	not known
}

missing contains {"fact": "iommu", "words": "it is not known how the IOMMU treats the GPUs"} if {
	amd.present
	not judged
}

not_applicable contains "no AMD GPU" if amd.absent

known if is_array(input.gpus.devices)
