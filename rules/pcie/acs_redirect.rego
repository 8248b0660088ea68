# METADATA
# title: ACS redirects peer-to-peer traffic
# description: >-
#   A PCIe bridge between two GPUs, or between a GPU and a NIC, has Access
#   Control Services bits set that redirect peer requests or completions to the
#   root complex. Traffic that should turn around in a switch then crosses the
#   CPU. It is slow and, together with a translating IOMMU, may hang or be lost
#   while the driver reports success.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NVIDIA recommends disabling ACS on bare metal, and keeping it on where devices are passed to guests.
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/pci/p2pdma.c
#     description: The kernel considers request redirect, completion redirect and egress control, and no other bit.
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
	"implied": "Their peer-to-peer traffic goes through the root complex; no probe has measured it.",
	"unsure": "Unless NVLink connects them, their traffic goes through the root complex.",
	"rdma": "GPUDirect RDMA between them goes through the root complex.",
	"nic": "Direct traffic between GPU and NIC, if there is any, goes through the root complex.",
	"tolerated": "AMD's driver uses the longer path through the root complex.",
	"works": "The probe copied over these paths correctly and at full speed, so no action is needed.",
	"passed-on": "The devices are passed to guests, whose isolation depends on ACS: leave it on.",
}

told(name, pairs) := peers.measured_words(name, pairs) if {
	name in {"failed", "slow"}
} else := words[name]

# The weak standings do not explain trouble between two GPUs. If there is some, they are
# left out, so that users do not look for the cause in the wrong place.
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

# bridges_of are the bridges with this worst pair.
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

# pass_through is not a remedy if it is known to be in force, nor for Radeon cards, for
# which AMD recommends remapping.
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

# amd_alone is true if all known GPUs are AMD's: their driver treats a path that ACS
# redirects as one through the host bridge, and offers it if the kernel trusts that
# (pci_p2pdma_distance), so NVIDIA's advice does not apply to them.
amd_alone if {
	amd.present
	count({g | some g in input.gpus.devices; g.vendor == "nvidia"}) == 0
}

default caution := ""

caution := concat("", [
	" This host passes devices to guests, so ACS must stay on. If both ends support address translation (ATS), ",
	"enable direct translated P2P on the bridges of the path to restore the speed.",
]) if {
	facts.is_passthrough_host == true
}

# job_shown is true if a text shows a job that runs on GPUs.
job_shown if logs.given

job_shown if count(input.benchmarks) > 0

# fragment_grade: many machines that do not use the path have these bits set. Together
# with a failing job, NVIDIA's guide recommends checking them first. On a switch port they
# hurt in any case.
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

# Commands have BRIDGE for what the text does not name.
fragment_params := params(acs_ports.loose) if {
	count(acs_ports.loose) > 0
} else := params({"BRIDGE"})

fragment_words := bridges_text(acs_ports.loose) if {
	count(acs_ports.loose) > 0
} else := sprintf("%d of the ports that lspci shows", [sum([u.count | some u in acs_ports.unnamed])])

fragment_reason := "The job fails. If these ports are on the path between GPUs, or between a GPU and a NIC, their traffic goes through the root complex and, together with a translating IOMMU, is lost." if {
	benchmarks.job_failed
} else := "Traffic between devices below that switch goes up to the root complex instead of turning around in the switch." if {
	count(acs_ports.loose) > 0
} else := "The text does not show whether these ports are on the path between two GPUs, or between a GPU and a NIC."

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

missing contains {"fact": "pci.devices[].acs", "words": "a virtual machine does not show the bridges of the real topology"} if {
	facts.is_guest == true
	count(facts.gpus) > 1
	count(acs_paths.judged) > 0
}

missing contains {"fact": "pci.devices[].acs", "words": sprintf("the extended configuration space of %s was not readable; it needs root", [facts.few(hidden)])} if {
	not facts.is_guest == true
	hidden := {address | some p in acs_paths.judged; some address in pci.hidden(p)}
	count(hidden) > 0
}

not_applicable contains "no two devices here communicate over PCIe" if {
	count(acs_paths.judged) == 0
	is_set(facts.gpu_pairs)
}

not_applicable contains "fewer than two GPUs" if {
	not facts.several
	not facts.gpu_pairs
}
