# METADATA
# title: The IOMMU mode does not suit the AMD GPUs
# description: >-
#   AMD's Instinct accelerators need IOMMU pass-through (iommu=pt): with a translating IOMMU, transfers between GPUs hang
#   or are slow. Radeon cards need remapping when they use PCIe peer access. RCCL's warning about iommu=pt only looks for
#   these words on the kernel command line. This rule has not been tested on AMD hardware.
# related_resources:
#   - ref: https://rocm.docs.amd.com/en/latest/conceptual/iommu.html
#     description: The IOMMU modes that Instinct and Radeon GPUs need
#   - {ref: https://github.com/ROCm/rccl/issues/1129, description: rccl-tests on two MI100 hang until iommu=pt is set}
# custom:
#   severity: high
#   confidence: possible
#   areas: [iommu]
#   needs: [gpus.devices, iommu.mode]
#   remedies: [iommu-pt, iommu-remap, nccl-p2p-disable]
#   explains: [p2p-broken-platform, p2p-slow, "faults > amd-iommu/in-force", "asked > amd-iommu/in-force"]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     asked: >-
#       {signs}, and the kernel command line does not set iommu=pt. AMD recommends pass-through for Instinct accelerators,
#       whose transfers may hang if the IOMMU translates. Radeon cards need remapping, the default, but if applications on
#       several of them hang, AMD suspects the IOMMU first: set NCCL_P2P_DISABLE=1 or try iommu=pt
#     faults:
#       confidence: likely
#       text: "The IOMMU blocked accesses by {blocked}: transfers to addresses that it does not translate for them fail"
#     in-force: >-
#       The IOMMU's mode ({mode}) does not suit these GPUs: AMD recommends pass-through (iommu=pt) for Instinct
#       accelerators, and remapping, the default, for Radeon cards that use peer access over PCIe
package gpudoctor.rules.amd_iommu

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci

# passed is true where DMA is known not to be translated, or, if the mode in force is not known, where that was asked for.
passed if input.iommu.mode in {"passthrough", "off"}
passed if count(input.iommu.units) == 0

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

warned := logs.messages({"rccl-iommu-pt-missing"})

findings contains {
	"id": "asked",
	"subject": "host",
	"about": {"signs": signs},
	"messages": warned,
	"evidence": sort(logs.stalled),
	"severity": grade[0],
	"confidence": grade[1],
	"remedies": remedies,
} if {
	count(signs) > 0
	not passed
	not told
}

# told is true where a rank failed on its own, and the others waited for it.
told if input.logs.job.first.what in {"exception", "assertion", "exit"}

grade := ["low", "possible"] if {
	not amd.stuck
} else := ["critical", "likely"] if {
	amd.instinct
} else := ["high", "possible"]

# See rocm.docs.amd.com/projects/radeon, "Application hangs on Multi-GPU systems".
remedies := ["nccl-p2p-disable", "iommu-pt"] if {
	amd.only_radeon
} else := ["iommu-pt", "nccl-p2p-disable"]

# faults are accesses of AMD GPUs that the IOMMU refused. The address, or the driver's name at the start of the line, shows
# whose they were.
faults := {e | some e in pci.refused; of_gpu(e)}

of_gpu(e) if e.fields.driver == "amdgpu"
of_gpu(e) if e.address in amd.addresses

findings contains {
	"id": "faults",
	"subject": "host",
	"affects": sort(blocked),
	"about": {"blocked": blocked},
	"evidence": pci.event_evidence(faults),
	"remedies": remedies,
} if {
	count(faults) > 0
	not facts.is_passthrough_host == true
	blocked := {e.address | some e in faults}
}

# What the machine itself shows, without a complaint.
findings contains {
	"id": "in-force",
	"subject": "host",
	"about": {"mode": input.iommu.mode},
	"severity": unsuited[0],
	"evidence": [{"fact": "iommu.mode", "value": input.iommu.mode, "source": "/sys/kernel/iommu_groups/*/type"}],
	"remedies": [unsuited[1]],
} if {
	not facts.is_guest == true
	not facts.is_passthrough_host == true
}

unsuited := ["low", "iommu-pt"] if {
	input.iommu.mode == "translated"
	amd.instinct
	count(amd.gpus) > 1
} else := [{true: "high", false: "low"}[count([s | s := amd.stuck]) > 0], "iommu-remap"] if {
	input.iommu.mode in {"passthrough", "off"}
	amd.only_radeon
	count(amd.discrete) > 1
	count(amd.over_xgmi) == 0
}

not_applicable contains "no AMD GPU" if amd.absent
