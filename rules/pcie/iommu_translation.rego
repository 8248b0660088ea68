# METADATA
# title: The IOMMU translates DMA between GPUs
# description: >-
#   The kernel has put NVIDIA GPUs that communicate over PCIe into translated IOMMU domains. NVIDIA does not support
#   peer-to-peer transfers through a translating IOMMU on bare metal: they may hang or deliver wrong data while the
#   driver reports success.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#iommu-on-linux
#     description: On bare-metal Linux, the IOMMU must be off for PCIe peer-to-peer copies, which may otherwise corrupt memory.
#   - ref: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-kernel-iommu_groups
#     description: The type file of a group shows what is in force.
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/iommu/amd/iommu.c
#     description: What the kernel logs when the IOMMU blocks a device's access; intel/dmar.c does the same.
# custom:
#   severity: high
#   confidence: likely
#   areas: [iommu]
#   needs: [links.pairs, iommu.groups, host.virtualization]
#   remedies: [iommu-pt, iommu-off, nccl-p2p-disable]
#   explains: [p2p-broken-platform, p2p-slow]
#   first_of: [in-force, suspected]
#   since: "0.1"
#   grades:
#     in-force: >-
#       The kernel keeps GPUs in translated IOMMU domains ({types}), and {pairs} communicate over PCIe.[ {measured}] NVIDIA
#       does not support such transfers through a translating IOMMU on bare metal: they may hang or deliver wrong data.[ The
#       kernel command line sets {asked}, which a later parameter or the type of the group overrides.]
#     blocked: >-
#       The IOMMU blocked accesses by NVIDIA GPUs ({n} in the kernel log), so it translates their addresses:
#       peer-to-peer transfers hang or lose data
#     blocked-nic: >-
#       The IOMMU blocked accesses by NICs ({n} in the kernel log), as those to the memory of a GPU (GPUDirect RDMA)
#       through a translating IOMMU: transfers between hosts fail or hang
#     suspected: >-
#       The IOMMU translates unless something exempts the GPUs (the kernel log shows that it does so by default), and
#       {pairs} communicate over PCIe. NVIDIA does not support peer-to-peer transfers over PCIe through a translating
#       IOMMU on bare metal: they may hang or deliver wrong data
#     asked: >-
#       The IOMMU translates unless something exempts the GPUs ({sign}), and a job on NVIDIA GPUs that PCIe connects fails.
#       NVIDIA does not support peer-to-peer transfers over PCIe through a translating IOMMU on bare metal
package gpudoctor.rules.iommu_translation

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.surroundings

# Domains through which copies arrive are no fault. A NIC needs no GPU to be blocked, so a job that failed makes it likely.
weight := object.union(peers.weight, {
	"blocked": ["critical", "likely"],
	"blocked-nic": {true: ["high", "likely"], false: ["medium", "possible"]}[logs.failed],
})

findings contains {
	"id": "in-force",
	"subject": peers.shorten(gpus),
	"affects": sort(peers.ends(pairs)),
	"about": {
		"types": {group[gpu].type | some gpu in gpus},
		"pairs": peers.pairs_text(pairs), "measured": peers.measured_words(pairs), "asked": iommu.passing,
	},
	"evidence": array.concat([type_evidence(gpu) | some gpu in sort(gpus)], peers.transfer_evidence(pairs)),
	"params": iommu.params,
	"severity": weight[name][0],
	"confidence": weight[name][1],
	"remedies": array.concat(["nccl-p2p-disable" | name == "failed"], lasting),
} if {
	some name, pairs in by_standing
	weight[name]
	gpus := {address | some address in peers.ends(pairs); pci.translated(address)}
}

type_evidence(gpu) := {
	"fact": sprintf("iommu.groups[%d].type", [group[gpu].id]),
	"value": group[gpu].type,
	"source": sprintf("/sys/kernel/iommu_groups/%d/type (%s)", [group[gpu].id, gpu]),
}

# The accesses of NVIDIA GPUs, to a peer's address for which there is no mapping, and those of NICs.
findings contains {
	"id": "in-force",
	"grade": name,
	"subject": peers.shorten({e.address | some e in events}),
	"affects": [address | some address in sort({e.address | some e in events}); address in facts.gpus],
	"about": {"n": sum([e.count | some e in events])},
	"evidence": pci.event_evidence(events),
	"params": {"vendor": {true: "amd", false: "intel"}["amd-vi-fault" in {e.kind | some e in events}]},
	"severity": weight[name][0],
	"confidence": weight[name][1],
	"remedies": array.concat(lasting, ["nccl-p2p-disable" | name == "blocked"]),
} if {
	some name, events in refused
	count(events) > 0
	not facts.is_guest == true
}

refused := {
	"blocked": {e | some e in pci.refused; of_nvidia(e)},
	"blocked-nic": {e | some e in pci.refused; pci.of_nic(e)},
}

of_nvidia(e) if peers.vendor(e.address) == "nvidia"
of_nvidia(e) if e.fields.driver == "nvidia"

# The kernel log of a whole boot shows the default type of groups, and that an IOMMU is active. The line on the default
# alone proves nothing: kernels without an IOMMU also write it (drivers/iommu/iommu.c).
findings contains {
	"id": "suspected",
	"subject": "host",
	"affects": sort(peers.ends(suspects)),
	"about": {"pairs": peers.pairs_text(suspects)},
	"evidence": array.concat(
		pci.event_evidence({e | some e in pci.events["iommu-mode"]}),
		[{"fact": "iommu.vendor", "value": input.iommu.vendor, "source": facts.read_at("iommu.vendor", "the kernel log")}],
	),
	"params": iommu.params,
	"severity": weight[suspicion][0],
	"confidence": weight[suspicion][1],
	"remedies": array.concat(lasting, ["nccl-p2p-disable"]),
} if {
	input.iommu.default_domain == "translated"
	input.iommu.vendor in {"intel", "amd"}
	count(iommu.passing | iommu.off) == 0
	count(suspects) > 0
}

# A parameter is no state: the firmware may have no IOMMU on. It counts where a job over PCIe fails. On AMD's processors a
# command line without any says as much.
findings contains {
	"id": "suspected",
	"grade": "asked",
	"subject": "host",
	"about": {"sign": sign},
	"evidence": array.concat([{"fact": "iommu.command_line", "value": v, "source": facts.read_at("iommu.command_line", "/proc/cmdline")} | v := input.iommu.command_line], sort(logs.stalled)),
	"params": iommu.params,
	"severity": "high",
	"confidence": {true: "likely", false: "possible"}[(count(benchmarks.wrong) + count(logs.stalled)) > 0],
	"remedies": array.concat(lasting, ["nccl-p2p-disable"]),
} if {
	sign := translating
	fails_over_pcie
	count(iommu.passing | iommu.off) == 0
	not facts.is_guest == true
	not surroundings.has_amd
	count([g | some g in input.iommu.groups; g.type != ""]) == 0
}

translating := sprintf("the command line sets %s", [facts.list(asked)]) if {
	asked := iommu.words & {"intel_iommu=on", "iommu=force", "iommu=nopt", "iommu.passthrough=0", "amd_iommu=on", "amd_iommu=force_enable"}
	count(asked) > 0
} else := "that is the default of AMD's, and the command line does not set pass-through" if {
	iommu.vendor == "amd"
	is_array(input.iommu.command_line)
}

fails_over_pcie if {
	count(logs.stalled) > 0
	startswith(input.logs.transports[_].kind, "p2p")
}

fails_over_pcie if {
	benchmarks.job_failed
	pci.bare_metal
	peers.over_pcie
	object.get(input, ["iommu", "default_domain"], "") == ""
}

suspects := {p |
	some p in judged
	not group[p.a]
	not group[p.b]
	peers.standing(p) in {"implied", "unsure"}
}

suspicion := min({peers.standing(p) | some p in suspects}) # "implied" sorts before "unsure".

asks contains "iommu.groups[].type" if count(input.iommu.groups) > 0

missing contains {"fact": "iommu", "words": "in a virtual machine, the host's IOMMU applies, which cannot be seen from here"} if {
	count(over_pcie) > 0
	facts.is_guest == true
}

not_applicable contains "no two NVIDIA GPUs here communicate over PCIe" if {
	is_set(facts.gpu_pairs)
	count(over_pcie) == 0
}

not_applicable contains "fewer than two GPUs" if {
	not facts.several
	not facts.gpu_pairs
}

# lasting are the remedies that leave the IOMMU on where it guards guests from each other. What was asked
# for already need not be asked for again.
lasting := array.concat(
	["iommu-pt" | count(iommu.passing) == 0],
	["iommu-off" | not facts.is_passthrough_host == true],
)

group := {address: g | some g in input.iommu.groups; g.type != ""; some address in g.devices}

over_pcie := {p | some p in facts.gpu_pairs; peers.both_nvidia(p); peers.joined(p) != "nvlink"}

# judged are the pairs of NVIDIA GPUs on bare metal that communicate over PCIe. AMD's GPUs need the opposite on some
# models, and an Arm SMMU serves Grace's coherent links, so neither is judged here.
judged contains p if {
	pci.bare_metal
	some p in over_pcie
	not peers.refused(p)
	not input.iommu.vendor == "arm"
}

# by_standing are the judged pairs of which an end is translated, by how much that matters.
by_standing[peers.standing(p)] contains p if {
	some p in judged
	some address in [p.a, p.b]
	pci.translated(address)
}
