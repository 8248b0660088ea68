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
#   needs: ["gpus.devices[].name", ["links.pairs[].link_type", "gpus.devices[].kfd.hive"]]
#   remedies: [reboot-or-reload-driver, reset-amd-gpu, replace-hardware]
#   explains: [p2p-slow, "uncorrected > amd-xgmi/corrected", "uncorrected > amd-xgmi/counted"]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     incomplete: >-
#       The xGMI hive is incomplete: {gpus:few} {gpus:lacks/lack} xGMI links[ ({pairs:pair} only over PCIe)][ ({unhived:few}
#       {unhived:is/are} in no hive, and HIP may not offer {unhived:it/them})]. The links did not come up, or the driver
#       could not initialize a GPU (the kernel log of the boot shows why), and RCCL uses PCIe on these paths
#     counted:
#       remedies: [reset-amd-gpu, reboot-or-reload-driver, replace-hardware]
#       text: "AMD's tools or driver have counted {count} errors on the xGMI links of {subject}"
package gpudoctor.rules.amd_xgmi

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts

findings contains {
	"id": "incomplete",
	"subject": "host",
	"affects": [address | some address in sort(lacking); facts.is_address(address)],
	"about": {"gpus": lacking, "pairs": gaps, "unhived": unhived},
	"evidence": array.concat(
		[{
			"fact": sprintf("links.pairs[%s].link_type", [facts.pair_name(p.a, p.b)]),
			"value": p.link_type,
			"source": "amd-smi topology, or rocm-smi --showtopo",
		} |
			some p in sort(gaps)
		],
		[{
			"fact": sprintf("gpus.devices[%s].kfd", [address]),
			"value": "in no hive",
			"source": "/sys/class/kfd/kfd/topology",
		} |
			some address in sort(unhived)
		],
	),
	"params": {"gpus": sort(lacking)},
} if count(lacking) > 0

lacking := (({a | some p in split_pairs; some a in [p.a, p.b]} | unlinked) | severed) | unhived

gaps := split_pairs | {p | some p in links; p.link_type == "pcie"; count({p.a, p.b} & (unlinked | severed)) > 0}

split_pairs := {p |
	some p in links
	p.link_type == "pcie"
	count(joined[p.a] & joined[p.b]) > 0
}

# unlinked are accelerators of a meshed board that xGMI joins to none. Where it joins none at all, all must be of a board.
unlinked contains a if {
	some a in (ends & meshed)
	not joined[a]
	comparable
}

# severed are the accelerators of a board of 8 (16 with two dies each) that xGMI joins to fewer than it joins others to:
# they form a hive of their own. Halves of the same size are cards with bridges.
severed contains a if {
	count(ends) in {8, 16}
	some a in ends
	count(joined[a]) < max({count(joined[b]) | some b in ends})
}

# Hives have 2, 4, 8 or 16 accelerators: one that is next to a meshed hive of an odd number belongs to it.
severed contains a if {
	some a in ends
	not joined[a]
	others := ends - {a}
	count(others) in {3, 7, 15}
	every b in others {
		count(joined[b]) == count(others) - 1
	}
}

comparable if count(joined) > 0
comparable if count(ends - meshed) == 0

ends := {a | some p in links; some a in [p.a, p.b]}

# unhived are accelerators of a meshed board that the compute driver lists outside of any hive, although others of the
# model are in one, or does not list at all. A virtual function sees no hive, and a container not every GPU.
unhived contains g.address if {
	not facts.is_guest == true
	some g in amd.gpus
	g.address in meshed
	object.get(g.kfd, "hive", "") == ""
	g.kfd.node >= 0
	some other in amd.gpus
	other.name == g.name
	other.kfd.hive != ""
}

unhived contains address if {
	not facts.in_container == true
	count(amd.hives) > 0
	some address in amd.kfd_lost
}

# counts are the errors on the links of a GPU that a tool counts, or, since it was loaded, the driver (RAS block
# xgmi_wafl).
counts(g) := {"count": g.xgmi_errors, "fact": "xgmi_errors", "source": "rocm-smi --showxgmierr, or amd-smi metric", "severity": "medium"} if {
	g.xgmi_errors > 0
} else := {"count": n, "fact": "ras[xgmi_wafl].uncorrectable", "source": "ras/xgmi_wafl_err_count", "severity": "high"} if {
	n := amd.errors[g.address].xgmi_wafl.uncorrectable
	n > 0
}

findings contains {
	"id": "counted",
	"subject": g.address,
	"affects": facts.gpus_at(g.address),
	"about": {"count": c.count},
	"severity": c.severity,
	"evidence": [{"fact": sprintf("gpus.devices[%s].%s", [g.address, c.fact]), "value": c.count, "source": c.source}],
	"params": {"gpu": g.address},
} if {
	some g in amd.gpus
	c := counts(g)
}

not_applicable contains "fewer than two AMD GPUs" if amd.no_pair

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

joined[a] contains b if {
	some p in links
	p.link_type == "xgmi"
	some [a, b] in [[p.a, p.b], [p.b, p.a]]
}

# meshed are the accelerators of boards on which each is joined to each.
meshed := {g.address |
	some g in input.gpus.devices
	regex.match(`MI(250|300X|308X|325X|350X|355X)`, g.name)
}
