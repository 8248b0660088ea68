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
#   first_of: [in-force, by-default, asked, on]
#   since: "0.1"
package gpudoctor.rules.iommu_translation

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.staging
import data.gpudoctor.lib.surroundings

# Domains through which copies arrive explain no trouble elsewhere.
silenced("works") if peers.in_trouble

findings contains object.union({"subject": "host", "params": iommu.params, "severity": "high", "confidence": "likely"}, f) if some f in found

# weight is the severity and confidence of each standing, and what to say of pairs of which nothing bad was measured.
weight := {
	"failed": ["critical", "confirmed", ""],
	"slow": ["high", "confirmed", ""],
	"implied": ["high", "likely", "NVIDIA does not support peer-to-peer transfers through a translating IOMMU on bare metal: they may hang or deliver wrong data."],
	"unsure": ["medium", "possible", "Unless NVLink connects them, their transfers may hang or deliver wrong data."],
	"works": ["info", "likely", "The probe copied between them correctly and at full speed, so no action is needed."],
}

told(name, pairs) := peers.measured_words(name, pairs) if {
	name in {"failed", "slow"}
} else := weight[name][2]

found contains {
	"id": "in-force",
	"subject": peers.shorten(gpus),
	"affects": sort(peers.ends(pairs)),
	"message": sprintf("The kernel keeps %d GPUs in translated IOMMU domains (%s), and %s communicate over PCIe. %s%s", [
		count(gpus), concat(", ", sort({group[address].type | some address in gpus})), peers.pairs_text(pairs), told(name, pairs), overridden,
	]),
	"evidence": array.flatten([type_evidence(gpus), [iommu.evidence | count(iommu.asked_for_passthrough) > 0], peers.transfer_evidence(pairs)]),
	"severity": weight[name][0],
	"confidence": weight[name][1],
	"remedies": remedies(name, pairs),
} if {
	some name in {standing(p) | some p in affected}
	not silenced(name)
	pairs := {p | some p in affected; standing(p) == name}
	gpus := {address |
		some address in peers.ends(pairs)
		pci.translated(address)
	}
}

type_evidence(gpus) := [{
	"fact": sprintf("iommu.groups[%d].type", [group[address].id]),
	"value": group[address].type,
	"source": sprintf("/sys/kernel/iommu_groups/%d/type (%s)", [group[address].id, address]),
} |
	some address in sort(gpus)
]

# remedies: the way through host memory is named where transfers fail, or where
# it was measured faster; who has not tried may be using what works.
remedies(name, pairs) := {
	"works": [],
	"failed": array.concat(["nccl-p2p-disable"], lasting),
	"slow": array.concat(lasting, staging.remedies(pairs)),
	"implied": lasting,
	"unsure": lasting,
}[name]

default overridden := ""

overridden := sprintf(" The kernel command line sets %s, but that is not in force: a later parameter (iommu=nopt, iommu.passthrough=0), a port that the firmware marks as external, or a type written to the group overrides it.", [facts.list(iommu.asked_for_passthrough)]) if {
	count(iommu.asked_for_passthrough) > 0
}

known_gpus := {address | some address in facts.gpus}

# One GPU that reads where it may not has a fault of its own.
found contains {
	"id": "in-force",
	"subject": peers.shorten(addresses),
	"affects": sort(addresses & known_gpus),
	"message": sprintf("The IOMMU blocked accesses by NVIDIA GPUs (%d in the kernel log), so it translates their addresses: peer-to-peer transfers hang or lose data.", [
		sum([e.count | some e in refused]),
	]),
	"evidence": pci.event_evidence(refused),
	"params": {"vendor": {true: "amd", false: "intel"}["amd-vi-fault" in {e.kind | some e in refused}]},
	"severity": "critical",
	"confidence": {true: "confirmed", false: "likely"}[count(known_gpus) > 1],
	"remedies": array.concat(lasting, stopgap),
} if {
	addresses := {e.address | some e in refused}
	count(addresses) > 0
}

# The kernel log of a whole boot shows the default type of groups, and that an IOMMU is
# active. Groups may be exempt, so the types of groups take precedence.
found contains {
	"id": "by-default",
	"affects": sort(peers.ends(suspects)),
	"message": sprintf("The kernel log shows an IOMMU (%s) that translates by default, and %s communicate over PCIe. %s", [
		input.iommu.vendor, peers.pairs_text(suspects), weight.implied[2],
	]),
	"evidence": array.concat(
		pci.event_evidence({e | some e in pci.events["iommu-mode"]}),
		[{"fact": "iommu.vendor", "value": input.iommu.vendor, "source": facts.read_at("iommu.vendor", "the kernel log")}],
	),
	"severity": grade[0],
	"confidence": grade[1],
	"remedies": of_texts,
} if {
	pci.translates_by_default
	count(suspects) > 0
	grade := {"implied": ["high", "likely"], "unsure": ["low", "possible"]}[suspects_standing]
}

# Someone lists the units of the IOMMU, so it is on, and the command line asks for no
# pass-through: the kernel translates then, unless it was built otherwise
# (CONFIG_IOMMU_DEFAULT_PASSTHROUGH, which is off by default and in distributions).
found contains {
	"id": "on",
	"affects": sort(peers.ends(suspects)),
	"message": sprintf("The IOMMU is on (%s), the kernel command line does not set pass-through, and %s communicate over PCIe when they use peer access. %s", [
		concat(", ", sort(input.iommu.units)), peers.pairs_text(suspects), weight[suspects_standing][2],
	]),
	"evidence": [
		{"fact": "iommu.units", "value": input.iommu.units, "source": "/sys/class/iommu"},
		{"fact": "host.command_line", "value": input.host.command_line, "source": "/proc/cmdline"},
	],
	"severity": "medium",
	"confidence": "possible",
	"remedies": of_texts,
} if {
	count(input.texts) > 0
	count(input.iommu.units) > 0
	input.iommu.vendor in {"intel", "amd"}
	count(input.host.command_line) > 0
	count(iommu.passing | iommu.off) == 0
	not pci.translates_by_default
	not input.iommu.default_domain == "passthrough"
	count(suspects) > 0
}

# A collective that does not end between NVIDIA GPUs that use peer access, where the
# kernel log or its command line says that the IOMMU translates.
found contains {
	"id": "asked",
	"message": sprintf("A collective over peer-to-peer transfers does not end, and the IOMMU of this machine translates (%s). %s", [
		concat(", ", sort(translating)), weight.implied[2],
	]),
	"evidence": sort(logs.stalled),
	"remedies": ["iommu-pt", "iommu-off", "nccl-p2p-disable"],
} if {
	count(logs.stalled) > 0
	count(translating) > 0
	count(iommu.passing | iommu.off) == 0
	some t in input.logs.transports
	startswith(t.kind, "p2p")
	not amd.present
	not facts.is_guest == true
}

# translating are what says that the IOMMU translates.
translating := iommu.translating | {words | pci.translates_by_default; words := "its default domain is translated"}

# A parameter is no state: the firmware may have no IOMMU on. It counts where a job over PCIe fails, and the state
# itself is not told. On AMD's processors a command line without any says as much.
found contains {
	"id": "asked",
	"message": sprintf("%s, and a job on NVIDIA GPUs that are connected only by PCIe fails. If the IOMMU is on, NVIDIA does not support peer-to-peer transfers through its translation on bare metal: they may hang or deliver wrong data.", [asked[0]]),
	"evidence": [iommu.evidence],
	"confidence": asked[1],
	"remedies": of_texts,
} if {
	asked
	count(input.texts) > 0
	is_array(input.iommu.command_line)
	count(iommu.passing | iommu.off) == 0
	benchmarks.job_failed
	pci.bare_metal
	peers.over_pcie
	not surroundings.has_amd
	not iommu.state_told
}

asked := [sprintf("The kernel command line sets the IOMMU to translate (%s)", [facts.list(iommu.translating)]), {true: "likely", false: "possible"}[count(benchmarks.wrong) > 0]] if {
	count(iommu.translating) > 0
} else := ["The kernel command line leaves AMD's IOMMU at its default, which is translation", "possible"] if {
	input.host.cpu.vendor == "AuthenticAMD"
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

# Remedies in the order in which to try them, without those that are already in force or would do harm.

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

# stopgap is NCCL's variable, which helps those who run NCCL until the machine is fixed, and no other program.
default stopgap := []

stopgap := ["nccl-p2p-disable"] if input.transfers

stopgap := ["nccl-p2p-disable"] if {
	some m in input.logs.messages
	m.program in {"nccl", "rccl", "pytorch"}
}

stopgap := ["nccl-p2p-disable"] if count(input.logs.communicators) > 0

# The pairs of NVIDIA GPUs between which an IOMMU translates, or may translate, and their accesses that it blocked.

# group is the IOMMU group of each device.
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

# affected are the judged pairs of which an end is translated.
affected contains p if {
	some p in judged
	some address in [p.a, p.b]
	pci.translated(address)
}

# standing is how much the translation matters to one pair. A measurement takes precedence over what the facts imply.
standing(p) := peers.standing(p) if {
	peers.standing(p)
} else := unmeasured(p)

unmeasured(p) := {true: "implied", false: "unsure"}[peers.joined(p) == "pcie"]

# suspects are the judged pairs of whose groups the type is not known.
suspects := {p |
	some p in judged
	count([type | some address in [p.a, p.b]; some type in pci.domains[address]]) == 0
	peers.measured(p.a, p.b) in {"nothing", "failed"}
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
