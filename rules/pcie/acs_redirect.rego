# METADATA
# title: ACS redirects peer-to-peer traffic
# description: >-
#   A PCIe bridge between two GPUs, or between a GPU and a NIC, has Access Control Services bits set that redirect peer
#   requests or completions to the root complex. Traffic that should turn around in a switch then crosses the CPU. It is
#   slow and, together with a translating IOMMU, may hang or be lost while the driver reports success.
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
#   since: "0.1"
#   grades:
#     on-path: >-
#       ACS redirects traffic on {bridges:few} ({bits}), between {pairs}.[ {measured}][ {meaning}][ This host passes
#       devices to {guests}, so ACS must stay on. If both ends support address translation (ATS), enable direct translated
#       P2P on the bridges of the path to restore the speed.]
#     in-text: >-
#       ACS redirects peer-to-peer traffic at {ports:few} ({bits}). If these ports are on the path between GPUs, or between
#       a GPU and a NIC, their traffic goes through the root complex and, together with a translating IOMMU, is lost
package gpudoctor.rules.acs_redirect

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.staging
import data.gpudoctor.lib.surroundings

# grades are those of the standings, the worst first, with what to say of pairs of which nothing bad was measured.
grades := [
	["failed", "critical", "confirmed", ""],
	["slow", "high", "confirmed", ""],
	["implied", "high", "likely", "Their peer-to-peer traffic goes through the root complex; no probe has measured it."],
	["unsure", "medium", "possible", "Unless NVLink connects them, their traffic goes through the root complex."],
	["rdma", "medium", "likely", "GPUDirect RDMA between them goes through the root complex."],
	["works", "info", "likely", "The probe copied over these paths correctly and at full speed, so no action is needed."],
	["passed-on", "info", "likely", "The devices are passed to guests, whose isolation depends on ACS: leave it on."],
]

# The weak standings do not explain trouble between two GPUs.
silenced(name) if {
	name in {"rdma", "works", "passed-on"}
	peers.in_trouble
}

# standings are, for each bridge, the ranks of all pairs that cross it.
standings[bridge] contains rank if {
	some p, bridges in affected
	some rank, [name, _, _, _] in grades
	standing(p) == name
	not silenced(name)
	some bridge in bridges
}

# bridges_of are the bridges with this worst pair.
bridges_of[min(ranks)] contains bridge if some bridge, ranks in standings

findings contains {
	"grade": "on-path",
	"subject": peers.shorten(bridges),
	"affects": sort(peers.ends(pairs) - {p.b | some p in pairs; p.kind == "gpu-nic"}),
	"about": {
		"bridges": bridges,
		"bits": {bit | some bridge in bridges; some bit in pci.redirects(bridge)},
		"pairs": {true: sprintf("%d pairs of a GPU and a NIC", [count(pairs)]), false: peers.pairs_text(pairs)}[name == "rdma"],
		"measured": peers.measured_words(pairs),
		"meaning": words,
		"guests": ["guests" | facts.is_passthrough_host == true],
	},
	"evidence": array.concat(control_evidence(bridges), peers.transfer_evidence(pairs)),
	"params": params(bridges),
	"severity": severity,
	"confidence": confidence,
	"remedies": remedies(name, pairs),
} if {
	some rank, bridges in bridges_of
	[name, severity, confidence, words] := grades[rank]
	pairs := {p |
		some p, on_path in affected
		standing(p) == name
		count(on_path & bridges) > 0
	}
}

params(bridges) := {"bridges": sort(bridges), "bridge": sort(bridges)[0]}

control_evidence(bridges) := [{
	"fact": sprintf("pci.devices[%s].acs.control", [bridge]),
	"value": pci.device[bridge].acs.control,
	"source": pci.port_at(bridge),
} |
	some bridge in sort(bridges)
]

# Where this kernel gives devices to guests, ACS must stay on. What is redirected goes up to the root complex whether the
# IOMMU translates or not: pass-through helps only where data is lost in a translating IOMMU. The way through host memory
# is slower than most slow paths, and is named where transfers fail, or where it was measured faster.
remedies(name, pairs) := [] if {
	name in {"works", "passed-on"}
} else := array.concat(["nccl-p2p-disable"], array.concat(off, pass_through(pairs))) if {
	name == "failed"
} else := ["disable-acs", "nccl-p2p-disable"] if {
	# Who sends texts has trouble with a job, and can try this at once.
	name in {"implied", "unsure"}
	count(input.texts) > 0
	not facts.is_passthrough_host == true
} else := array.concat(off, staging.remedies(pairs))

off := [r | some r in ["disable-acs"]; not facts.is_passthrough_host == true]

# pass_through is not a remedy if it is known to be in force, nor for Radeon cards, for which AMD recommends remapping.
pass_through(pairs) := [cure |
	some cure in ["iommu-pt"]
	not facts.is_passthrough_host == true
	not amd.only_radeon
	not pci.all_untranslated(peers.ends(pairs))
]

# What texts show that are cut off, so that it is not known which devices communicate through a port: "lspci -vvv | grep
# ACSCtl", a switch's ports alone. Many machines that do not use the path have these bits set. Together with a failing
# job, NVIDIA's guide recommends checking them first. On a switch port they hurt in any case.
text_grade := ["high", "likely"] if {
	in_use
} else := ["low", "possible"]

in_use if benchmarks.job_failed

in_use if {
	count(loose) > 0
	logs.given
}

in_use if count(loose) * count(input.benchmarks) > 0

findings contains {
	"grade": "in-text",
	"subject": in_text.subject,
	"about": {
		"ports": (loose | {sprintf("%d of the ports that lspci shows", [n]) | n := sum([u.count | some u in unnamed]); n > 0}),
		"bits": port_bits,
	},
	"evidence": array.concat(
		control_evidence(loose),
		[{"fact": "pci.unnamed_acs", "value": u.control, "source": logs.at(u)} | some u in sort(unnamed)],
	),
	"params": in_text.params,
	"severity": text_grade[0],
	"confidence": text_grade[1],
	"remedies": array.concat(off, [r | some r in ["nccl-p2p-disable", "iommu-pt"]; benchmarks.job_failed]),
} if {
	count(loose) + count(unnamed) > 0
	count(affected) == 0
	not facts.is_guest == true
}

in_text := {"subject": peers.shorten(loose), "params": params(loose)} if {
	count(loose) > 0
} else := {"subject": "host", "params": params({"BRIDGE"})} # Commands have it for what the text does not name.

missing contains {"fact": "pci.devices[].acs", "words": "a virtual machine does not show the bridges of the real topology"} if {
	facts.is_guest == true
	count(facts.gpus) > 1
	count(judged) > 0
}

missing contains {"fact": "pci.devices[].acs", "words": sprintf("the extended configuration space of %s was not readable; it needs root", [facts.few(hidden)])} if {
	not facts.is_guest == true
	hidden := {address | some p in judged; some address in pci.hidden(p)}
	count(hidden) > 0
}

not_applicable contains "no two devices here communicate over PCIe" if {
	count(judged) == 0
	is_set(facts.gpu_pairs)
}

not_applicable contains "fewer than two GPUs" if {
	not facts.several
	not facts.gpu_pairs
}

# judged are the pairs whose traffic would cross PCIe bridges as it stands: GPUs that NVLink does not join and to which
# the driver does not refuse peer access, and a GPU with a NIC below the same switch (NCCL uses GPUDirect RDMA up to
# PXB, src/graph/paths.cc; beyond that traffic goes through the CPU by choice).
judged contains p if {
	some p in facts.gpu_pairs
	peers.joined(p) != "nvlink"
	not p.link_type == "xgmi"
	not peers.refused(p)
}

judged contains p if {
	some p in facts.pairs
	p.kind == "gpu-nic"
	p.common_bridge != ""
}

# affected are the judged pairs with a redirecting bridge on their path. The bridges of a virtual machine are the
# hypervisor's own, whatever vendor ids they have (QEMU has Intel root ports and TI switches).
affected := {p: bridges |
	not facts.is_guest == true
	some p in judged
	bridges := pci.redirecting(p)
	count(bridges) > 0
}

standing(p) := peers.standing(p) if {
	peers.standing(p)
} else := "passed-on" if {
	peers.passed_on(p)
} else := "rdma" if {
	p.b in surroundings.rdma_nics
} else := "implied" if {
	peers.both_nvidia(p) # amdgpu accepts a way through the host bridge on Zen (p2pdma.c).
	peers.joined(p) == "pcie"
} else := "unsure" if {
	peers.both_nvidia(p)
	peers.joined(p) == "unknown"
}

# loose are the ports that are known to redirect and stand on no known path of a
# pair: those of switches, and root ports right above a GPU.
loose contains d.address if {
	some d in input.pci.devices
	count(pci.redirects(d.address)) > 0
	not pci.emulated(d.address)
	not d.address in on_path
	suspect(d)
}

suspect(d) if {
	input.pci.partial == true
	d.kind == "bridge"
	switch_port(d)
}

# setpci shows the register of a port, but not what port it is.
suspect(d) if {
	benchmarks.job_failed
	object.get(d, "class", "") == ""
	object.get(d, "kind", "") == ""
}

on_path contains bridge if {
	some p in facts.pairs
	some bridge in p.bridges
}

# switch_vendors make PCIe switches and no root ports: PLX, Broadcom (LSI) and
# PMC-Sierra (Microsemi, Microchip), as the PCI ID database names them.
switch_vendors := {"0x10b5", "0x1000", "0x11f8"}

switch_port(d) if d.vendor in switch_vendors
switch_port(d) if d.port_type == "downstream-port"

switch_port(d) if {
	some g in input.pci.devices
	g.kind == "gpu"
	g.ancestors[count(g.ancestors) - 1] == d.address
}

unnamed := {u | some u in input.pci.unnamed_acs; some bit in u.control; bit in pci.redirecting_bits}

port_bits := union({pci.redirects(address) | some address in loose}) | {bit |
	some u in unnamed
	some bit in u.control
	bit in pci.redirecting_bits
}
