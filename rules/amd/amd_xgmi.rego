# METADATA
# title: An xGMI hive is incomplete or faulty
# description: >-
#   In an xGMI hive, every pair of accelerators is connected over xGMI. If two GPUs that have xGMI links to others are
#   connected only by PCIe, or if an accelerator of a fully meshed board is outside the hive, a link did not come up.
#   Traffic on that path is slower by an order of magnitude. The driver counts link errors as RAS block xgmi_wafl. This
#   rule has not been tested on AMD hardware.
# related_resources:
#   - ref: https://rocm.docs.amd.com/en/latest/conceptual/gpu-arch/mi300.html
#     description: The accelerators of a board of MI300X are fully meshed
#   - ref: https://github.com/torvalds/linux/blob/master/drivers/gpu/drm/amd/amdgpu/amdgpu_xgmi.c
#     description: How the driver forms a hive, and its messages when that fails
# custom:
#   severity: high
#   confidence: likely
#   areas: [paths]
#   needs: ["gpus.devices[].name", ["links.pairs[].link_type", "gpus.devices[].xgmi_errors", "gpus.devices[].kfd.hive"]]
#   remedies: [reboot-or-reload-driver, reset-amd-gpu, replace-hardware]
#   first_of: [missed, outside, hiveless]
#   explains: [p2p-slow, "uncorrected > amd-xgmi/corrected", "uncorrected > amd-xgmi/counted"]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     missed: >-
#       {count} pairs of a hive are connected only by PCIe, {pairs}, although both GPUs of each have xGMI links to
#       others: the links between them did not come up
#     outside: >-
#       {gpus} has no xGMI link to any other GPU, although xGMI connects the rest of the board: the hive is incomplete,
#       and RCCL uses PCIe to reach it
#     none:
#       remedies: [reboot-or-reload-driver, replace-hardware]
#       text: >-
#         No xGMI link connects the {count} accelerators, which are fully meshed on their board: the hive did not form,
#         and they use PCIe to reach each other
#     bridged:
#       severity: low
#       confidence: possible
#       remedies: [replace-hardware, reboot-or-reload-driver]
#       text: >-
#         The {count} accelerators are connected only by PCIe. That is normal without a bridge (Infinity Fabric Link).
#         With a bridge, the hive did not form: the bridge needs a card in each of its slots, all cards must be seated
#         in it, and the host's firmware, not a virtual machine, must initialize them together.
#     counted:
#       remedies: [reset-amd-gpu, reboot-or-reload-driver, replace-hardware]
#       text: "AMD's tools or driver have counted {count} errors on the xGMI links of {subject}"
#     hiveless: >-
#       {gpus} {gpus:is/are} in no xGMI hive, although {others} others of the same model are: its links did not come up,
#       or the driver could not initialize it. The hive is incomplete, and HIP may not offer that GPU. The kernel log of
#       the boot shows why
package gpudoctor.rules.amd_xgmi

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models

# incomplete is a finding on the hive.
incomplete(kind, gpus, about, evidence) := {
	"id": kind,
	"subject": "host",
	"affects": [address | some address in sort(gpus); facts.is_address(address)],
	"about": object.union({"gpus": gpus, "count": count(gpus), "others": count(others_in_hives)}, about),
	"evidence": evidence,
	"params": {"gpus": sort(gpus)},
}

pairs_evidence(ps) := [{
	"fact": sprintf("links.pairs[%s].link_type", [facts.pair_name(p.a, p.b)]),
	"value": p.link_type,
	"source": "amd-smi topology, or rocm-smi --showtopo",
} |
	some p in sort(ps)
]

findings contains incomplete("missed", gpus, {"count": count(missed), "pairs": {facts.pair_name(p.a, p.b) | some p in missed}}, pairs_evidence(missed)) if {
	count(missed) > 0
	gpus := {a | some p in missed; some a in [p.a, p.b]}
}

findings contains incomplete("outside", outside, {}, pairs_evidence({p | some p in links; count({p.a, p.b} & outside) > 0})) if count(outside) > 0

# A board of accelerators that are all connected only by PCIe, and cards that a bridge can join.
findings contains incomplete(kind, gpus, {}, pairs_evidence(links)) if {
	some kind, gpus in {"none": meshed, "bridged": bridged}
	by_pcie_alone(gpus)
}

# counted are the errors on the links of each GPU that a tool counts, or, since it was loaded, the driver (RAS block
# xgmi_wafl).
counted[g.address] := c if {
	some g in amd.gpus
	c := counts(g)
}

counts(g) := {"count": g.xgmi_errors, "fact": "xgmi_errors", "source": "rocm-smi --showxgmierr, or amd-smi metric", "severity": "medium"} if {
	g.xgmi_errors > 0
} else := {"count": n, "fact": "ras[xgmi_wafl].uncorrectable", "source": "ras/xgmi_wafl_err_count", "severity": "high"} if {
	n := amd.errors[g.address].xgmi_wafl.uncorrectable
	n > 0
}

findings contains {
	"id": "counted",
	"subject": address,
	"affects": facts.gpus_at(address),
	"about": {"count": c.count},
	"severity": c.severity,
	"evidence": [{"fact": sprintf("gpus.devices[%s].%s", [address, c.fact]), "value": c.count, "source": c.source}],
	"params": {"gpu": address},
} if some address, c in counted

findings contains incomplete("hiveless", hiveless, {}, [
{"fact": sprintf("gpus.devices[%s].kfd", [address]), "value": "in no hive", "source": "/sys/class/kfd/kfd/topology"} | some address in sort(hiveless)]) if {
	count(hiveless) > 0
}

seen if count(links) > 0
seen if count(counted) > 0
seen if count(hives) > 0

seen if {
	some e in input.kernel_log.events
	startswith(e.id, "amdgpu-xgmi-")
}

missing contains {"fact": "links.pairs[].link_type", "words": "it is not known how the GPUs are connected"} if {
	not seen
	not amd.no_pair
}

not_applicable contains "fewer than two AMD GPUs" if {
	amd.no_pair
	not seen
}

# links are the pairs of which it is known how they are joined. Partitions of
# one accelerator differ in the function of their address alone.
links := {p |
	some p in input.links.pairs
	p.link_type in {"xgmi", "pcie"}
	not one_device(p)
}

one_device(p) if {
	facts.is_address(p.a)
	facts.is_address(p.b)
	split(p.a, ".")[0] == split(p.b, ".")[0]
}

# joined are the GPUs that xGMI joins to each one.
joined[a] contains b if {
	some p in links
	p.link_type == "xgmi"
	some [a, b] in [[p.a, p.b], [p.b, p.a]]
}

# missed are the pairs within one hive that PCIe connects.
missed := {p |
	some p in links
	p.link_type == "pcie"
	count(joined[p.a] & joined[p.b]) > 0
}

# meshed are the accelerators of boards on which each is joined to each.
meshed := {g.address |
	some g in input.gpus.devices
	regex.match(`MI(250|300X|308X|325X|350X|355X)`, g.name)
}

# outside are those that xGMI joins to none, though it joins others of the board.
outside := {a |
	some p in links
	some a in [p.a, p.b]
	a in meshed
	not joined[a]
} if {
	count(joined) > 0
} else := set()

by_pcie_alone(gpus) if {
	count(links) > 0
	count(joined) == 0
	count(gpus) > 1
	every p in links {
		p.a in gpus
		p.b in gpus
	}
}

# bridged are accelerators on cards that a bridge (Infinity Fabric Link) can join: without one PCIe alone is right, and
# a bridge that is fitted and not up looks the same (ROCm/legacy-rocm-build issues 1503 and 2722).
bridged := {g.address |
	some g in amd.gpus
	gpu_models.model[g.name].xgmi_bridge
} | {g.address | some g in amd.gpus; g.architecture == "gfx908"}

# hives are the GPUs of each hive, as the compute driver numbers them.
hives[g.kfd.hive] contains g.address if {
	some g in amd.gpus
	g.kfd.hive != ""
}

# hiveless are accelerators of a meshed board that the compute driver lists outside of any hive, although others of the
# model are in one, or does not list at all. A virtual function sees no hive, and a container not every GPU.
hiveless contains g.address if {
	not facts.is_guest == true
	some g in amd.gpus
	g.address in meshed
	object.get(g.kfd, "hive", "") == ""
	g.kfd.node >= 0
	some other in amd.gpus
	other.name == g.name
	other.kfd.hive != ""
}

hiveless contains address if {
	not facts.in_container == true
	count(others_in_hives) > 0
	some address in amd.kfd_lost
}

others_in_hives := {address | some members in hives; some address in members}
