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
#   needs: [links.pairs, pci.devices]
#   remedies: [disable-acs, iommu-pt, nccl-p2p-disable, other]
#   explains: [p2p-broken-platform, p2p-slow]
#   first_of: [failed, slow, implied, unsure, rdma]
#   since: "0.1"
#   grades:
#     on-path: >-
#       ACS redirects traffic on {bridges:few} ({bits}), between {pairs}[ that {unsure} may connect].[
#       {measured}][ This host passes devices to {guests}, so ACS must stay on. If both ends support address translation
#       (ATS), enable direct translated P2P on the bridges of the path to restore the speed.]
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

findings contains {
	"id": name,
	"grade": "on-path",
	"subject": peers.shorten(bridges),
	"affects": [address | some address in sort(peers.ends(pairs)); address in facts.gpus],
	"about": {
		"bridges": bridges,
		"bits": {bit | some bridge in bridges; some bit in pci.redirects(bridge)},
		"pairs": {true: sprintf("%d pairs of a GPU and a NIC", [count(pairs)]), false: peers.pairs_text(pairs)}[name == "rdma"],
		"unsure": ["NVLink" | name == "unsure"],
		"measured": peers.measured_words(pairs),
		"guests": ["guests" | facts.is_passthrough_host == true],
	},
	"evidence": array.concat(control_evidence(bridges), peers.transfer_evidence(pairs)),
	"params": params(bridges),
	"severity": weight[0],
	"confidence": weight[1],
	"remedies": remedies(name, pairs),
} if {
	some name, pairs in affected
	weight := object.union(peers.weight, {"rdma": ["medium", "likely"]})[name]
	bridges := {bridge | some p in pairs; some bridge in pci.redirecting(p)}
}

params(bridges) := {"bridges": sort(bridges), "bridge": sort(bridges)[0]}

control_evidence(bridges) := [{
	"fact": sprintf("pci.devices[%s].acs.control", [bridge]),
	"value": pci.device[bridge].acs.control,
	"source": pci.port_at(bridge),
} |
	some bridge in sort(bridges)
]

# Where this kernel gives devices to guests, ACS must stay on. Pass-through helps only where data is lost in a translating
# IOMMU, unless it is in force, and not Radeon cards, for which AMD recommends remapping.
remedies(name, pairs) := array.flatten(["nccl-p2p-disable", off, ["iommu-pt" |
	count(off) > 0
	not amd.only_radeon
	not pci.all_untranslated(peers.ends(pairs))
]]) if {
	name == "failed"
} else := array.concat(off, ["nccl-p2p-disable"]) if {
	# Who sends texts has trouble with a job, and can try this at once.
	name in {"implied", "unsure"}
	count(input.texts) > 0
} else := array.concat(off, staging.remedies(pairs))

off := ["disable-acs" | not facts.is_passthrough_host == true]

# Texts that are cut off ("lspci -vvv | grep ACSCtl", a switch's ports alone) do not show who communicates through a port.
# Many machines that do not use the path have these bits set; if a job fails, NVIDIA's guide checks them first.
findings contains {
	"grade": "in-text",
	"subject": in_text.subject,
	"about": {
		"ports": (loose | {sprintf("%d of the ports that lspci shows", [n]) | n := sum([u.count | some u in unnamed]); n > 0}),
		"bits": ({bit | some port in loose; some bit in pci.redirects(port)} | {bit | some u in unnamed; some bit in u.redirects}),
	},
	"evidence": array.concat(
		control_evidence(loose),
		[{"fact": "pci.unnamed_acs", "value": u.control, "source": logs.at(u)} | some u in sort(unnamed)],
	),
	"params": in_text.params,
	"severity": text_weight[0],
	"confidence": text_weight[1],
	"remedies": array.concat(off, ["nccl-p2p-disable" | text_weight[0] == "high"]),
} if {
	count(loose) + count(unnamed) > 0
	count(redirecting) == 0
	not facts.is_guest == true
}

# On a switch port they hurt in any case.
text_weight := ["high", "likely"] if {
	count({"job" | benchmarks.job_failed} | {port | some port in loose; logs.given}) > 0
} else := ["low", "possible"]

in_text := {"subject": peers.shorten(loose), "params": params(loose)} if {
	count(loose) > 0
} else := {"subject": "host", "params": params({"BRIDGE"})} # Commands have it for what the text does not name.

# loose are the ports on no known path that redirect, of switches (PLX, Broadcom and PMC-Sierra make no root ports) or of
# unknown kind: setpci shows the register of a port, but not what port it is.
loose contains d.address if {
	some d in input.pci.devices
	count(pci.redirects(d.address)) > 0
	suspect(d)
	not pci.emulated(d.address)
	not d.address in on_path
}

on_path := {bridge | some p in facts.pairs; some bridge in p.bridges}

suspect(d) if {
	input.pci.partial == true
	d.kind == "bridge"
	count({d.vendor, object.get(d, "port_type", "")} & {"0x10b5", "0x1000", "0x11f8", "downstream-port"}) > 0
}

suspect(d) if {
	benchmarks.job_failed
	object.get(d, "kind", "") == ""
}

unnamed := {object.union(u, {"redirects": bits}) |
	some u in input.pci.unnamed_acs
	bits := {bit | some bit in u.control} & pci.redirecting_bits
	count(bits) > 0
}

missing contains {"fact": "pci.devices[].acs", "words": "a virtual machine hides the ACS of the real bridges, and reading it needs root"} if {
	some p in judged
	unseen(p)
}

unseen(_) if {
	facts.is_guest == true
	count(facts.gpus) > 1
}

unseen(p) if count(pci.hidden(p)) > 0

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

redirecting := {bridge | some p in judged; some bridge in pci.redirecting(p)}

# affected are the judged pairs with a redirecting bridge on their path, by their standing. The bridges of a virtual
# machine are the hypervisor's own, whatever vendor ids they have (QEMU has Intel root ports and TI switches).
affected[standing(p)] contains p if {
	not facts.is_guest == true
	some p in judged
	count(pci.redirecting(p)) > 0
}

standing(p) := "rdma" if {
	p.kind == "gpu-nic"
	p.b in surroundings.rdma_nics
	not peers.in_trouble # It does not explain trouble between two GPUs.
} else := peers.standing(p)
