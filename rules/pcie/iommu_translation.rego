# METADATA
# title: The IOMMU translates DMA between GPUs
# description: >-
#   The kernel has put NVIDIA GPUs that communicate over PCIe into translated IOMMU domains. NVIDIA does not support
#   peer-to-peer transfers through a translating IOMMU on bare metal: they may hang or deliver wrong data while the
#   driver reports success.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#iommu-on-linux
#     description: >-
#       On bare-metal Linux, the IOMMU must be off for PCIe peer-to-peer copies, which may otherwise corrupt memory.
#   - ref: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-kernel-iommu_groups
#     description: The type file of a group shows what is in force.
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/iommu/amd/iommu.c
#     description: What the kernel logs when the IOMMU blocks a device's access; intel/dmar.c does the same.
# custom:
#   severity: high
#   confidence: likely
#   areas: [iommu]
#   needs:
#     - links.pairs
#     - [iommu.groups, iommu.mode]
#     - host.virtualization
#   remedies: [iommu-pt, iommu-off, nccl-p2p-disable]
#   explains: [p2p-broken-platform, p2p-slow]
#   first_of: [in-force, suspected]
#   since: "0.1"
#   grades:
#     in-force: >-
#       The kernel keeps GPUs in translated IOMMU domains ({types}), and {pairs} communicate over PCIe.[ {measured}] NVIDIA
#       does not support such transfers through a translating IOMMU on bare metal: they may hang or deliver wrong data.[ The
#       kernel command line sets {asked}, but that is not in force: a later parameter (iommu=nopt, iommu.passthrough=0), a
#       port that the firmware marks as external, or a type written to the group overrides it.]
#     blocked:
#       severity: critical
#       text: >-
#         The IOMMU blocked accesses by NVIDIA GPUs ({n} in the kernel log), so it translates their addresses:
#         peer-to-peer transfers hang or lose data
#     blocked-nic: >-
#       The IOMMU blocked accesses by NICs ({n} in the kernel log), as those to the memory of a GPU (GPUDirect RDMA)
#       through a translating IOMMU: transfers between hosts fail or hang
#     suspected: >-
#       The IOMMU translates unless something exempts the GPUs ({signs}), and {what}. NVIDIA does not support
#       peer-to-peer transfers over PCIe through a translating IOMMU on bare metal: they may hang or deliver wrong data
package gpudoctor.rules.iommu_translation

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.staging
import data.gpudoctor.lib.surroundings

findings contains object.union({"subject": "host", "params": iommu.params}, f) if some f in found

# weight is the severity and confidence of each standing. Domains through which copies arrive are no fault.
weight := {"failed": ["critical", "confirmed"], "slow": ["high", "confirmed"], "implied": ["high", "likely"], "unsure": ["medium", "possible"]}

found contains {
	"id": "in-force",
	"subject": peers.shorten(gpus),
	"affects": sort(peers.ends(pairs)),
	"about": {
		"types": {group[address].type | some address in gpus},
		"pairs": peers.pairs_text(pairs), "measured": peers.measured_words(pairs), "asked": iommu.asked_for_passthrough,
	},
	"evidence": array.flatten([type_evidence(gpus), [iommu.evidence | count(iommu.asked_for_passthrough) > 0], peers.transfer_evidence(pairs)]),
	"severity": weight[name][0],
	"confidence": weight[name][1],
	"remedies": array.flatten([
		["nccl-p2p-disable" | name == "failed"],
		lasting,
		[r | name == "slow"; some r in staging.remedies(pairs)],
	]),
} if {
	some name, pairs in by_standing
	weight[name]
	gpus := {address | some address in peers.ends(pairs); pci.translated(address)}
}

type_evidence(gpus) := [{
	"fact": sprintf("iommu.groups[%d].type", [group[address].id]),
	"value": group[address].type,
	"source": sprintf("/sys/kernel/iommu_groups/%d/type (%s)", [group[address].id, address]),
} |
	some address in sort(gpus)
]

# One GPU that reads where it may not has a fault of its own.
found contains object.union(blocked(refused), {
	"grade": "blocked",
	"affects": [address | some address in sort({e.address | some e in refused}); address in facts.gpus],
	"confidence": {true: "confirmed", false: "likely"}[count([address | some address in facts.gpus]) > 1],
	"remedies": array.concat(lasting, ["nccl-p2p-disable"]),
}) if count(refused) > 0

# A NIC needs no GPU to do so, so a job that failed makes it likely.
found contains object.union(blocked(refused_nics), {
	"grade": "blocked-nic",
	"severity": {true: "high", false: "medium"}[count(failed) > 0],
	"confidence": {true: "likely", false: "possible"}[count(failed) > 0],
	"remedies": lasting,
}) if count(refused_nics) > 0

blocked(events) := {
	"id": "in-force",
	"subject": peers.shorten({e.address | some e in events}),
	"about": {"n": sum([e.count | some e in events])},
	"evidence": pci.event_evidence(events),
	"params": {"vendor": {true: "amd", false: "intel"}["amd-vi-fault" in {e.kind | some e in events}]},
}

failed contains true if logs.failed

# refused are the accesses of NVIDIA GPUs, to a peer's address for which there is no mapping.
refused contains e if {
	some e in pci.refused
	of_nvidia(e)
	not facts.is_guest == true
}

refused_nics contains e if {
	some e in pci.refused
	pci.of_nic(e)
	not facts.is_guest == true
}

of_nvidia(e) if peers.vendor(e.address) == "nvidia"
of_nvidia(e) if e.fields.driver == "nvidia"

# What texts tell where they do not show what is in force: the signs that the IOMMU translates, with their evidence.
found contains {
	"id": "suspected",
	"affects": sort(peers.ends(suspects)),
	"about": {"signs": {words | some [words, _] in signs}, "what": exposed},
	"evidence": [e | some [_, es] in sort(signs); some e in es],
	"severity": suspicion[0],
	"confidence": suspicion[1],
	"remedies": array.concat(lasting, ["nccl-p2p-disable"]),
} if {
	count(signs) > 0
	count(iommu.passing | iommu.off) == 0
	not facts.is_guest == true
	not surroundings.has_amd
	count([g | some g in input.iommu.groups; g.type != ""]) == 0
}

# The kernel log of a whole boot shows the default type of groups, and that an IOMMU is active.
signs contains ["the kernel log shows that it does so by default", array.concat(
	pci.event_evidence({e | some e in pci.events["iommu-mode"]}),
	[{"fact": "iommu.vendor", "value": input.iommu.vendor, "source": facts.read_at("iommu.vendor", "the kernel log")}],
)] if pci.translates_by_default

# Units are listed, so it is on: the kernel translates then, unless it was built otherwise
# (CONFIG_IOMMU_DEFAULT_PASSTHROUGH, which is off by default and in distributions).
signs contains ["it is on, and the command line does not set pass-through", [
	{"fact": "iommu.units", "value": input.iommu.units, "source": "/sys/class/iommu"},
	{"fact": "host.command_line", "value": input.host.command_line, "source": "/proc/cmdline"},
]] if {
	count(input.texts) > 0
	count(input.iommu.units) > 0
	input.iommu.vendor in {"intel", "amd"}
	count(input.host.command_line) > 0
	not input.iommu.default_domain == "passthrough"
}

# A parameter is no state: the firmware may have no IOMMU on. It counts where a job over PCIe fails. On AMD's processors a
# command line without any says as much.
signs contains [sprintf("the command line sets %s", [facts.list(iommu.translating)]), array.concat([e | e := iommu.evidence], sort(logs.stalled))] if {
	job_words
	count(iommu.translating) > 0
}

signs contains ["that is the default of AMD's, and the command line does not set pass-through", [iommu.evidence]] if {
	job_words
	input.host.cpu.vendor == "AuthenticAMD"
	is_array(input.iommu.command_line)
}

# job_words is known where a job fails over what the IOMMU would break.
job_words := "a collective over peer-to-peer transfers does not end" if {
	count(logs.stalled) > 0
	some t in input.logs.transports
	startswith(t.kind, "p2p")
} else := "a job on NVIDIA GPUs that are connected only by PCIe fails" if {
	count(input.texts) > 0
	benchmarks.job_failed
	pci.bare_metal
	peers.over_pcie
	not iommu.state_told
}

exposed := job_words if {
	job_words
} else := sprintf("%s communicate over PCIe", [peers.pairs_text(suspects)]) if count(suspects) > 0

suspicion := ["high", "likely"] if {
	pci.translates_by_default
	grave
} else := ["high", {true: "likely", false: "possible"}[(count(benchmarks.wrong) + count(logs.stalled)) > 0]] if {
	job_words
} else := ["medium", "possible"]

grave if job_words

grave if {
	some p in suspects
	peers.joined(p) == "pcie"
}

asks contains "iommu.groups" if {
	not pci.translates_by_default
	not facts.is_guest == true
}

missing contains {"fact": "iommu.groups[].type", "words": "this kernel does not report what is in force (Linux 5.11 and newer do)"} if {
	not facts.is_guest == true
	some p in judged
	some address in [p.a, p.b]
	object.get(group[address], "type", "") == ""
}

missing contains {"fact": "iommu", "words": "in a virtual machine, the host's IOMMU applies, which cannot be seen from here"} if {
	count(over_pcie) > 0
	facts.is_guest == true
}

not_applicable contains "no two NVIDIA GPUs here communicate over PCIe" if {
	is_set(facts.gpu_pairs)
	count(judged | over_pcie) == 0
}

not_applicable contains "fewer than two GPUs" if {
	not facts.several
	not facts.gpu_pairs
}

# lasting are the remedies that leave the IOMMU on where it guards guests from each other. What was asked
# for already need not be asked for again.
lasting := array.concat(
	["iommu-pt" | count(iommu.asked_for_passthrough) == 0],
	["iommu-off" | not facts.is_passthrough_host == true],
)

group[address] := g if {
	some g in input.iommu.groups
	some address in g.devices
}

# judged are the pairs of NVIDIA GPUs on bare metal that communicate over PCIe. AMD's GPUs need the opposite on some
# models, and an Arm SMMU serves Grace's coherent links, so neither is judged here.
judged contains p if {
	pci.bare_metal
	some p in over_pcie
	not peers.refused(p)
	not peers.passed_on(p)
	not input.iommu.vendor == "arm"
}

over_pcie := {p | some p in facts.gpu_pairs; peers.both_nvidia(p); peers.joined(p) != "nvlink"}

# by_standing are the judged pairs of which an end is translated, by how much that matters.
by_standing[standing(p)] contains p if {
	some p in judged
	some address in [p.a, p.b]
	pci.translated(address)
}

standing(p) := peers.standing(p) if {
	peers.standing(p)
} else := {true: "implied", false: "unsure"}[peers.joined(p) == "pcie"]

suspects := {p |
	some p in judged
	count([type | some address in [p.a, p.b]; some type in pci.domains[address]]) == 0
	peers.measured(p.a, p.b) in {"nothing", "failed"}
}
