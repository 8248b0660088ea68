# METADATA
# title: ACS redirects peer-to-peer traffic
# description: >-
#   A PCIe bridge between two GPUs, or between a GPU and a NIC, has Access
#   Control Services bits set that send peer requests or completions up to the
#   root complex. What should turn round in a switch then crosses the CPU: it
#   is slow, and together with a translating IOMMU it may hang or be lost while
#   the driver reports success.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NVIDIA asks for ACS to be off on bare metal, and to stay on where devices are passed to guests.
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/pci/p2pdma.c
#     description: The kernel counts request redirect, completion redirect and egress control, and no other bit.
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - links.pairs
#     - pci.devices
#   remedies: [disable-acs, iommu-pt, nccl-p2p-disable]
#   explains: [p2p-broken-platform, p2p-slow]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.acs_redirect

import data.gpudoctor.lib.acs_paths
import data.gpudoctor.lib.acs_ports
import data.gpudoctor.lib.amd
import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.staging

# grades are those of the standings, the worst first.
grades := [
	["failed", "critical", "confirmed"],
	["slow", "high", "confirmed"],
	["implied", "high", "likely"],
	["unsure", "medium", "possible"],
	["rdma", "medium", "likely"],
	["nic", "low", "possible"],
	["tolerated", "low", "possible"],
	["works", "info", "likely"],
	["passed-on", "info", "likely"],
]

words := {
	"implied": "Their peer-to-peer traffic is sent through the root complex; no probe has measured it.",
	"unsure": "Unless NVLink joins them, their traffic is sent through the root complex.",
	"rdma": "GPUDirect RDMA between them is sent through the root complex.",
	"nic": "Direct traffic between GPU and NIC, if there is any, is sent through the root complex.",
	"tolerated": "AMD's driver takes the way through the root complex, which is longer.",
	"works": "The probe copied over these paths correctly and at full speed all the same, so nothing need be done.",
	"passed-on": "The devices are given to guests, whose isolation rests on it: leave it on.",
}

told(name, pairs) := peers.measured_words(name, pairs) if {
	name in {"failed", "slow"}
} else := words[name]

# The weak standings explain no trouble between two GPUs. Where there is some, they
# are left out, lest its cause be looked for in the wrong place.
silenced(name) if {
	name in {"rdma", "nic", "tolerated", "works", "passed-on"}
	peers.in_trouble
}

# standings are, for each bridge, the ranks of all pairs that cross it.
standings[bridge] contains rank if {
	some p, bridges in acs_paths.affected
	some rank, [name, _, _] in grades
	acs_paths.standing(p) == name
	not silenced(name)
	some bridge in bridges
}

# bridges_of are the bridges whose worst pair stands so.
bridges_of[min(ranks)] contains bridge if some bridge, ranks in standings

findings contains {
	"subject": peers.shorten(bridges),
	"affects": sort(peers.ends(pairs) - nics),
	"message": sprintf("ACS redirects traffic on %s (%s), between %s. %s%s", [
		bridges_text(bridges), concat(", ", sort(bits)), between(pairs), told(name, pairs), caution,
	]),
	"evidence": array.concat(control_evidence(bridges), peers.transfer_evidence(pairs)),
	"params": params(bridges),
	"severity": severity,
	"confidence": confidence,
	"remedies": remedies(name, pairs),
} if {
	some rank, bridges in bridges_of
	[name, severity, confidence] := grades[rank]
	pairs := {p |
		some p, on_path in acs_paths.affected
		acs_paths.standing(p) == name
		count(on_path & bridges) > 0
	}
	nics := {p.b | some p in pairs; p.kind == "gpu-nic"}
	bits := {bit | some bridge in bridges; some bit in pci.redirects(bridge)}
}

params(bridges) := {"bridges": sort(bridges), "bridge": sort(bridges)[0]}

bridges_text(bridges) := sprintf("bridge%s %s", [{true: "", false: "s"}[count(bridges) == 1], facts.list(bridges)]) if {
	count(bridges) <= 4
} else := sprintf("%d bridges", [count(bridges)])

between(pairs) := peers.pairs_text(pairs) if {
	every p in pairs {
		p.kind == "gpu-gpu"
	}
} else := sprintf("%s and %s", [p.a, p.b]) if {
	count(pairs) == 1
	some p in pairs
} else := sprintf("%d pairs of a GPU and a NIC", [count(pairs)])

control_evidence(bridges) := [{
	"fact": sprintf("pci.devices[%s].acs.control", [bridge]),
	"value": pci.device[bridge].acs.control,
	"source": pci.port_at(bridge),
} |
	some bridge in sort(bridges)
]

# remedies: where this kernel gives devices to guests, ACS must stay on. What is
# redirected goes up to the root complex whether the IOMMU translates or not, so
# pass-through makes nothing faster; where data is lost in a translating IOMMU it
# helps as well. The way through host memory is slower than most slow paths, and
# is named where transfers fail, or where it was measured faster.
remedies(name, pairs) := [] if {
	name in {"works", "passed-on"}
} else := ["nccl-p2p-disable"] if {
	facts.is_passthrough_host == true
	name == "failed"
} else := staging.remedies(pairs) if {
	facts.is_passthrough_host == true
} else := array.concat(["nccl-p2p-disable", "disable-acs"], pass_through(pairs)) if {
	name == "failed"
} else := ["disable-acs", "nccl-p2p-disable"] if {
	# Who sends texts has trouble with a job, and can try this at once.
	name in {"implied", "unsure"}
	count(input.texts) > 0
} else := array.concat(["disable-acs"], staging.remedies(pairs))

# pass_through is no cure where it is known to be in force, nor for Radeon cards,
# for which AMD recommends remapping.
pass_through(pairs) := ["iommu-pt"] if {
	not radeon_alone
	not untranslated(pairs)
} else := []

radeon_alone if {
	amd_alone
	not amd.instinct
}

untranslated(pairs) if {
	every address in peers.ends(pairs) {
		pci.untranslated(address)
	}
}

# amd_alone is true where all GPUs that are known are AMD's: their driver counts a way
# that ACS redirects as one through the host bridge, and offers it where the kernel
# trusts that (pci_p2pdma_distance), so that NVIDIA's advice is not for them.
amd_alone if {
	amd.present
	count({g | some g in input.gpus.devices; g.vendor == "nvidia"}) == 0
}

default caution := ""

caution := concat("", [
	" This host passes devices to guests, so ACS must stay on; where both ends support address translation (ATS), ",
	"direct translated P2P on the bridges of the path brings the speed back.",
]) if {
	facts.is_passthrough_host == true
}

# job_shown is true where a text tells of a job that runs on GPUs.
job_shown if logs.given

job_shown if count(input.benchmarks) > 0

# fragment_grade: the bits alone are on many a machine that does not use the
# path. Together with a job that fails they are what NVIDIA's guide asks to look
# at first. On a switch's port they hurt in any case.
fragment_grade := ["medium", "possible"] if {
	amd_alone
	benchmarks.job_failed
} else := ["high", "likely"] if {
	benchmarks.job_failed
} else := ["high", "likely"] if {
	job_shown
	count(acs_ports.loose) > 0
} else := ["low", "possible"]

findings contains {
	"subject": fragment_subject,
	"message": sprintf("ACS redirects peer-to-peer traffic at %s (%s). %s", [fragment_words, concat(", ", sort(acs_ports.bits)), fragment_reason]),
	"evidence": array.concat(
		control_evidence(acs_ports.loose),
		[{"fact": "pci.unnamed_acs", "value": u.control, "source": logs.at(u)} | some u in sort(acs_ports.unnamed)],
	),
	"params": fragment_params,
	"severity": fragment_grade[0],
	"confidence": fragment_grade[1],
	"remedies": fragment_remedies,
} if {
	count(acs_ports.loose) + count(acs_ports.unnamed) > 0
	count(acs_paths.affected) == 0
	not facts.is_guest == true
}

fragment_subject := peers.shorten(acs_ports.loose) if {
	count(acs_ports.loose) > 0
} else := "host"

# BRIDGE stands in commands for what the text does not name.
fragment_params := params(acs_ports.loose) if {
	count(acs_ports.loose) > 0
} else := params({"BRIDGE"})

fragment_words := bridges_text(acs_ports.loose) if {
	count(acs_ports.loose) > 0
} else := sprintf("%d of the ports that lspci shows", [sum([u.count | some u in acs_ports.unnamed])])

fragment_reason := "The job fails; where these ports are on the way between GPUs, or between a GPU and a NIC, their traffic goes through the root complex, and together with a translating IOMMU it is lost." if {
	benchmarks.job_failed
} else := "Traffic between devices below that switch goes up to the root complex in place of turning round." if {
	count(acs_ports.loose) > 0
} else := "Whether these ports are on the way between two GPUs, or a GPU and a NIC, the text does not show."

fragment_remedies := ["nccl-p2p-disable"] if {
	facts.is_passthrough_host == true
} else := ["nccl-p2p-disable", "disable-acs"] if {
	amd_alone
	benchmarks.job_failed
} else := ["disable-acs", "nccl-p2p-disable", "iommu-pt"] if {
	benchmarks.job_failed
} else := ["disable-acs"]

missing contains {"fact": "links.pairs", "words": "the paths between the GPUs are not known"} if {
	not facts.gpu_pairs
	facts.several
}

missing contains {"fact": "pci.devices[].acs", "words": "a virtual machine shows no bridges of the real topology"} if {
	facts.is_guest == true
	count(facts.gpus) > 1
	count(acs_paths.judged) > 0
}

missing contains {"fact": "pci.devices[].acs", "words": sprintf("extended configuration space of %s was not readable; it needs root", [facts.few(hidden)])} if {
	not facts.is_guest == true
	hidden := {address | some p in acs_paths.judged; some address in pci.hidden(p)}
	count(hidden) > 0
}

not_applicable contains "no two devices here would talk to each other over PCIe" if {
	count(acs_paths.judged) == 0
	is_set(facts.gpu_pairs)
}

not_applicable contains "fewer than two GPUs" if {
	not facts.several
	not facts.gpu_pairs
}
