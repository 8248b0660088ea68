# METADATA
# title: The IOMMU translates DMA between GPUs
# description: >-
#   The kernel has put NVIDIA GPUs that reach each other over PCIe into
#   translated IOMMU domains. NVIDIA does not support peer-to-peer transfers
#   through a translating IOMMU on bare metal: they may hang or deliver wrong
#   data while the driver reports success.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#iommu-on-linux
#     description: On bare-metal Linux the IOMMU is to be off for PCIe peer-to-peer copies, which may otherwise corrupt memory.
#   - ref: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-kernel-iommu_groups
#     description: The file type of a group says what is in force.
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/iommu/amd/iommu.c
#     description: What the kernel logs when the IOMMU refuses a device's access; intel/dmar.c does the same.
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - links.pairs
#     - [iommu.groups, iommu.mode]
#     - host.virtualization
#   remedies: [iommu-pt, iommu-off, nccl-p2p-disable]
#   explains: [p2p-broken-platform, p2p-slow]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.iommu_translation

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers

# group is the IOMMU group of each device.
group[address] := g if {
	some g in input.iommu.groups
	some address in g.devices
}

# judged are the pairs of NVIDIA GPUs on bare metal that would talk over PCIe.
# AMD's GPUs want the opposite on some models, and an Arm SMMU serves
# Grace's coherent links, so neither is judged here.
judged contains p if {
	pci.bare_metal
	some p in facts.gpu_pairs
	peers.both_nvidia(p)
	peers.joined(p) != "nvlink"
	not peers.refused(p)
	not peers.passed_on(p)
	not input.iommu.vendor == "arm"
}

# affected are the judged pairs of which an end is translated.
affected contains p if {
	some p in judged
	some address in [p.a, p.b]
	pci.translated(address)
}

told("failed", pairs) := sprintf("The probe's transfers between them %s.", [peers.failure_words(pairs)])

told("slow", pairs) := sprintf("The probe measured %s.", [peers.rate_words(pairs)])

told(name, _) := weight[name][2] if not name in {"failed", "slow"}

standing(p) := "failed" if {
	peers.measured(p.a, p.b) == "failed"
} else := "slow" if {
	peers.measured(p.a, p.b) == "slow"
} else := "works" if {
	peers.measured(p.a, p.b) == "good"
} else := "implied" if {
	peers.joined(p) == "pcie"
} else := "unsure"

# Domains through which copies arrive explain no trouble elsewhere.
silenced("works") if count(peers.trouble) + count(peers.sluggish) > 0

weight := {
	"failed": ["critical", "confirmed", ""],
	"slow": ["high", "confirmed", ""],
	"implied": ["high", "likely", "NVIDIA does not support peer-to-peer transfers through it on bare metal: they may hang or deliver wrong data."],
	"unsure": ["medium", "possible", "Unless NVLink joins them, their transfers may hang or deliver wrong data."],
	"works": ["info", "likely", "The probe copied between them correctly and at full speed all the same, so nothing need be done."],
}

findings contains {
	"subject": peers.shorten(gpus),
	"affects": sort(peers.ends(pairs)),
	"message": sprintf("The kernel keeps %d GPUs in translated IOMMU domains (%s), and %s reach each other over PCIe. %s%s", [
		count(gpus), concat(", ", sort(types)), peers.pairs_text(pairs), told(name, pairs), asked,
	]),
	"evidence": evidence(gpus, pairs),
	"params": {"gpus": sort(gpus), "vendor": vendor},
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
	types := {group[address].type | some address in gpus}
}

# vendor is whose IOMMU it is: the kernel parameter bears its name.
vendor := input.iommu.vendor if {
	input.iommu.vendor in {"intel", "amd"}
} else := "amd" if {
	input.host.cpu.vendor == "AuthenticAMD"
} else := "intel"

# remedies: the way through host memory is named where transfers fail, or where
# it was measured faster; who has not tried may be using what works.
remedies(name, pairs) := [] if {
	name == "works"
} else := array.concat(["nccl-p2p-disable"], cures) if {
	name == "failed"
} else := array.concat(cures, ["nccl-p2p-disable"]) if {
	name == "slow"
	every p in pairs {
		peers.staged_faster(p.a, p.b)
	}
} else := cures

# cures leave the IOMMU on where it guards guests from each other. What was asked
# for already need not be asked for again.
cures := [cure |
	some [cure, of_use] in [["iommu-pt", not_asked], ["iommu-off", no_guests]]
	of_use
]

not_asked := count(asked_for_passthrough) == 0

default no_guests := true

no_guests := false if facts.is_passthrough_host == true

# asked_for_passthrough are the kernel parameters that ask for pass-through.
asked_for_passthrough := {word |
	some word in input.iommu.command_line
	word in {"iommu=pt", "iommu.passthrough=1", "iommu.passthrough=y"}
}

default asked := ""

asked := sprintf(" The kernel command line asks for %s, yet that is not in force: a later parameter (iommu=nopt, iommu.passthrough=0), a port that the firmware marks as external, or a type written to the group overrides it.", [facts.list(asked_for_passthrough)]) if {
	count(asked_for_passthrough) > 0
}

evidence(gpus, pairs) := array.concat(
	array.concat(
		[{
			"fact": sprintf("iommu.groups[%d].type", [group[address].id]),
			"value": group[address].type,
			"source": sprintf("/sys/kernel/iommu_groups/%d/type (%s)", [group[address].id, address]),
		} |
			some address in sort(gpus)
		],
		[{
			"fact": "iommu.command_line",
			"value": input.iommu.command_line,
			"source": "/proc/cmdline",
		} |
			count(asked_for_passthrough) > 0
		],
	),
	[{
		"fact": sprintf("transfers.transfers[%s]", [facts.pair_name(p.a, p.b)]),
		"value": peers.seen(peers.transfers_of[peers.key(p.a, p.b)]),
		"source": "probe",
	} |
		some p in sort(pairs)
	],
)

# refused are the accesses of NVIDIA GPUs that the IOMMU refused, as the kernel
# logs them: a GPU that wrote to a peer's address for which there is no mapping.
refused contains e if {
	some e in input.kernel_log.events
	e.kind in {"amd-vi-fault", "dmar-fault"}
	of_nvidia(e)
	not facts.is_guest == true
}

of_nvidia(e) if peers.vendor(e.address) == "nvidia"

of_nvidia(e) if regex.match(`(^|\s)nvidia [0-9a-f]{4,8}:`, e.message)

findings contains {
	"subject": peers.shorten(addresses),
	"affects": sort({address | some address in addresses; address in facts.gpus}),
	"message": sprintf("The IOMMU refused accesses of NVIDIA GPUs (%d in the kernel log), so it translates their addresses: peer-to-peer transfers hang or lose data.", [
		sum([e.count | some e in refused]),
	]),
	"evidence": [{"fact": sprintf("kernel_log.events[%s]", [e.kind]), "value": e.message, "source": pci.event_at(e)} | some e in sort(refused)],
	"params": {"gpus": sort(addresses), "vendor": refused_vendor},
	"severity": "critical",
	"confidence": refused_confidence,
	"remedies": array.concat(cures, stopgap),
} if {
	addresses := {e.address | some e in refused}
	count(addresses) > 0
}

# stopgap is NCCL's variable, which helps those who run NCCL until the machine is
# mended, and no other program.
default stopgap := []

stopgap := ["nccl-p2p-disable"] if input.transfers

stopgap := ["nccl-p2p-disable"] if {
	some m in input.logs.messages
	m.program in {"nccl", "rccl", "pytorch"}
}

stopgap := ["nccl-p2p-disable"] if count(input.logs.communicators) > 0

refused_vendor := "amd" if {
	some e in refused
	e.kind == "amd-vi-fault"
} else := "intel"

# One GPU that reads where it may not has a fault of its own.
refused_confidence := "confirmed" if {
	count(facts.gpus) > 1
} else := "likely"

# The kernel log of a whole boot tells the type that groups get, and that an
# IOMMU is at work. Groups may be excepted, so the types of groups stand above.
findings contains {
	"subject": "host",
	"affects": sort(peers.ends(suspects)),
	"message": sprintf("The kernel log shows an IOMMU (%s) that translates by default, and %s reach each other over PCIe. %s", [
		input.iommu.vendor, peers.pairs_text(suspects), weight.implied[2],
	]),
	"evidence": array.concat(
		[{"fact": "kernel_log.events[iommu-mode]", "value": e.message, "source": pci.event_at(e)} |
			some e in input.kernel_log.events
			e.kind == "iommu-mode"
		],
		[{"fact": "iommu.vendor", "value": input.iommu.vendor, "source": vendor_at}],
	),
	"params": {"gpus": sort(peers.ends(suspects)), "vendor": input.iommu.vendor},
	"severity": default_grade[0],
	"confidence": default_grade[1],
	"remedies": default_remedies,
} if {
	pci.translates_by_default
	count(affected) == 0
	count(refused) == 0
	count(suspects) > 0
}

# Someone lists the units of the IOMMU, so it is on, and the command line asks for no
# pass-through: the kernel translates then, unless it was built otherwise
# (CONFIG_IOMMU_DEFAULT_PASSTHROUGH, which is off by default and in distributions).
findings contains {
	"subject": "host",
	"affects": sort(peers.ends(suspects)),
	"message": sprintf("The IOMMU is on (%s), the kernel command line asks for no pass-through, and %s talk to each other over PCIe where they use peer access. %s", [
		concat(", ", sort(input.iommu.units)), peers.pairs_text(suspects), weight[units_standing][2],
	]),
	"evidence": [
		{"fact": "iommu.units", "value": input.iommu.units, "source": "/sys/class/iommu"},
		{"fact": "host.command_line", "value": input.host.command_line, "source": "/proc/cmdline"},
	],
	"params": {"gpus": sort(peers.ends(suspects)), "vendor": input.iommu.vendor},
	"severity": "medium",
	"confidence": "possible",
	"remedies": default_remedies,
} if {
	count(input.texts) > 0
	count(input.iommu.units) > 0
	input.iommu.vendor in {"intel", "amd"}
	count(input.host.command_line) > 0
	not switched_off
	not pci.translates_by_default
	not input.iommu.default_domain == "passthrough"
	count(affected) + count(refused) == 0
	count(suspects) > 0
}

default units_standing := "unsure"

units_standing := "implied" if {
	some p in suspects
	peers.joined(p) == "pcie"
}

# A collective that does not end between NVIDIA GPUs that use peer access, where the
# kernel log or its command line says that the IOMMU translates.
findings contains {
	"subject": "host",
	"message": sprintf("A collective over peer-to-peer transfers does not end, and the IOMMU of this machine translates (%s). %s", [
		concat(", ", sort(translating)), weight.implied[2],
	]),
	"evidence": sort(logs.stalled),
	"params": {"gpus": shown_gpus, "vendor": stalled_vendor},
	"severity": "high",
	"confidence": "likely",
	"remedies": ["iommu-pt", "iommu-off", "nccl-p2p-disable"],
} if {
	count(logs.stalled) > 0
	count(translating) > 0
	peer_to_peer
	not amd.present
	not facts.is_guest == true
	count(affected) + count(refused) == 0
	not told_by_default
}

told_by_default if {
	pci.translates_by_default
	count(suspects) > 0
}

default shown_gpus := []

shown_gpus := sort(facts.gpus)

stalled_vendor := input.iommu.vendor if {
	input.iommu.vendor in {"intel", "amd"}
} else := "amd"

# translating are what says that the IOMMU translates, where no word of the command
# line asks for pass-through.
translating contains "its default domain is translated" if {
	pci.translates_by_default
	count(passing) == 0
}

translating contains word if {
	some word in words
	word in {"intel_iommu=on", "amd_iommu=on", "amd_iommu=force_enable"}
	count(passing) == 0
}

words := {word | some word in input.host.command_line} | {word | some word in input.iommu.command_line}

passing := {word |
	some word in words
	word in {"iommu=pt", "iommu.passthrough=1", "iommu.passthrough=y", "iommu=off", "intel_iommu=off", "amd_iommu=off"}
}

peer_to_peer if {
	some t in input.logs.transports
	startswith(t.kind, "p2p")
}

suspects := {p |
	some p in judged
	not groups_told(p)
	peers.measured(p.a, p.b) in {"nothing", "failed"}
}

groups_told(p) if {
	some address in [p.a, p.b]
	count(pci.domains[address]) > 0
}

default default_grade := ["low", "possible"]

default_grade := ["high", "likely"] if {
	some p in suspects
	peers.joined(p) == "pcie"
}

# Who sends texts has trouble with a job; he can try without peer access at once.
default_remedies := array.concat(cures, ["nccl-p2p-disable"])

vendor_at := sprintf("%s:%d", [o.source, o.line]) if {
	some o in input.origins
	o.fact == "iommu.vendor"
} else := "the kernel log"

# asked_words are the kernel parameters that switch translation on, where none
# switches it off again. On Intel's processors that takes a parameter on most
# distributions, on AMD's it is the default (kernel-parameters.txt), so that a
# command line without any says as much there.
asked_words := {word |
	some word in input.iommu.command_line
	word in {"intel_iommu=on", "iommu=force", "iommu=nopt", "iommu.passthrough=0", "amd_iommu=force_enable"}
}

switched_off if {
	some word in input.iommu.command_line
	regex.match(`^(iommu=(pt|off|soft)|iommu\.passthrough=(1|y)|(intel|amd)_iommu=off|intel_iommu=.*\boff)$`, word)
}

asks_for_translation if {
	count(asked_words) > 0
	not switched_off
}

asks_for_translation if {
	is_array(input.iommu.command_line)
	facts_vendor == "amd"
	not switched_off
}

facts_vendor := "amd" if input.host.cpu.vendor == "AuthenticAMD"

# A parameter is no state: the firmware may have no IOMMU on. It counts where a
# job over PCIe fails, and no better witness speaks.
findings contains {
	"subject": "host",
	"message": sprintf("%s, and a job on NVIDIA GPUs that only PCIe joins fails. Where the IOMMU is on, NVIDIA does not support peer-to-peer transfers through its translation on bare metal: they may hang or deliver wrong data.", [asked_text]),
	"evidence": [{"fact": "iommu.command_line", "value": input.iommu.command_line, "source": command_line_at}],
	"params": {"vendor": vendor},
	"severity": "high",
	"confidence": asked_confidence,
	"remedies": array.concat(cures, ["nccl-p2p-disable"]),
} if {
	asks_for_translation
	job_failed
	count(input.texts) > 0
	pci.bare_metal
	peers.over_pcie
	not of_amd
	witnesses == 0
}

default witnesses := 0

witnesses := 1 if {
	input.iommu.mode != ""
} else := 1 if {
	input.iommu.default_domain != ""
} else := 1 if {
	count(input.iommu.groups) > 0
} else := 1 if {
	count(refused) > 0
}

of_amd if {
	some g in input.gpus.devices
	g.vendor == "amd"
}

job_failed if logs.failed

job_failed if {
	some b in input.benchmarks
	b.wrong > 0
}

job_failed if {
	some b in input.benchmarks
	b.complete == false
}

asked_text := sprintf("The kernel command line asks the IOMMU to translate (%s)", [facts.list(asked_words)]) if {
	count(asked_words) > 0
} else := "The kernel command line leaves AMD's IOMMU as it is by default, which is translating"

asked_confidence := "likely" if {
	count(asked_words) > 0
	some b in input.benchmarks
	b.wrong > 0
} else := "possible"

command_line_at := sprintf("%s:%d", [o.source, o.line]) if {
	some o in input.origins
	o.fact == "iommu.command_line"
} else := "/proc/cmdline"

missing contains {"fact": "iommu.groups", "words": "the IOMMU groups are not known"} if {
	several
	not pci.translates_by_default
	not judged_elsewhere
	not groups_known
}

missing contains {"fact": "iommu.groups[].type", "words": "this kernel does not say what is in force (Linux 5.11 and newer do)"} if {
	not judged_elsewhere
	some p in judged
	some address in [p.a, p.b]
	untold(group[address])
}

missing contains {"fact": "iommu", "words": "in a virtual machine the host's IOMMU decides, which cannot be seen from here"} if {
	several
	facts.is_guest == true
}

missing contains {"fact": "host.virtualization", "words": "whether this is bare metal is not known"} if {
	several
	not virtualization_known
}

missing contains {"fact": "links.pairs", "words": "the paths between the GPUs are not known"} if {
	not facts.gpu_pairs
	not one_gpu
}

untold(g) if object.get(g, "type", "") == ""

groups_known if is_array(input.iommu.groups)

virtualization_known if is_boolean(facts.is_guest)

judged_elsewhere if facts.is_guest == true

several if count({p | some p in facts.gpu_pairs; peers.both_nvidia(p); peers.joined(p) != "nvlink"}) > 0

one_gpu if count(facts.gpus) < 2

not_applicable contains "no two NVIDIA GPUs here would talk to each other over PCIe" if {
	is_set(facts.gpu_pairs)
	count(judged) == 0
	not several
}

not_applicable contains "fewer than two GPUs" if {
	one_gpu
	not facts.gpu_pairs
}
