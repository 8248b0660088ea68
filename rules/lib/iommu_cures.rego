# METADATA
# title: Remedies for a translating IOMMU
# description: >-
#   Remedies in the order in which to try them, without those that are already
#   in force or would do harm.
package gpudoctor.lib.iommu_cures

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu

# lasting are those that leave the IOMMU on where it guards guests from each other. What was asked
# for already need not be asked for again.
lasting := [cure |
	some [cure, of_use] in [["iommu-pt", count(iommu.asked_for_passthrough) == 0], ["iommu-off", no_guests]]
	of_use
]

default no_guests := true

no_guests := false if facts.is_passthrough_host == true

# of_texts: who sends texts has trouble with a job and can try without peer access
# at once.
of_texts := array.concat(lasting, ["nccl-p2p-disable"])

# stopgap is NCCL's variable, which helps those who run NCCL until the machine is
# fixed, and no other program.
default stopgap := []

stopgap := ["nccl-p2p-disable"] if input.transfers

stopgap := ["nccl-p2p-disable"] if {
	some m in input.logs.messages
	m.program in {"nccl", "rccl", "pytorch"}
}

stopgap := ["nccl-p2p-disable"] if count(input.logs.communicators) > 0
