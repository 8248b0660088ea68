# METADATA
# title: An xGMI hive is incomplete or faulty
# description: >-
#   In an xGMI hive, every pair of accelerators is connected over xGMI. If two GPUs that have xGMI links to others are
#   connected only by PCIe, or if an accelerator of a fully meshed board has no xGMI link, a link did not come up.
#   Traffic on that path is slower by an order of magnitude. This rule has not been tested on AMD hardware.
# related_resources:
#   - ref: https://rocm.docs.amd.com/en/latest/conceptual/gpu-arch/mi300.html
#     description: The accelerators of a board of MI300X are fully meshed
#   - ref: https://github.com/torvalds/linux/blob/master/drivers/gpu/drm/amd/amdgpu/amdgpu_xgmi.c
#     description: How the driver forms a hive, and its messages when that fails
# custom:
#   severity: high
#   confidence: likely
#   areas: [paths]
#   needs: ["gpus.devices[].name", "links.pairs[].link_type"]
#   remedies: [reboot-or-reload-driver, reset-amd-gpu, replace-hardware]
#   explains: [p2p-slow, "uncorrected > amd-xgmi/corrected", "uncorrected > amd-xgmi/counted"]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     incomplete: >-
#       The xGMI hive is incomplete: {gpus:few} {gpus:lacks/lack} xGMI links ({pairs:pair} only over PCIe). The links did
#       not come up, or the driver could not initialize a GPU (the kernel log of the boot shows why), and RCCL uses PCIe
#       on these paths
#     counted:
#       severity: medium
#       remedies: [reset-amd-gpu, reboot-or-reload-driver, replace-hardware]
#       text: "AMD's tools or driver have counted {count} errors on the xGMI links of {subject}"
package gpudoctor.rules.amd_xgmi

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts

findings contains {
	"id": "incomplete",
	"subject": "host",
	"affects": [address | some address in sort(lacking); facts.is_address(address)],
	"about": {"gpus": lacking, "pairs": gaps},
	"evidence": [{"fact": "links.pairs", "value": facts.pair_name(p.a, p.b), "source": "amd-smi topology"} | some p in sort(gaps)],
	"params": {"gpus": sort(lacking)},
} if count(gaps) > 0

lacking := unlinked | {a | some p in split_pairs; some a in [p.a, p.b]}

gaps := split_pairs | {p | some p in links; count({p.a, p.b} & unlinked) > 0}

split_pairs := {p | some p in links; p.link_type == "pcie"; count(joined[p.a] & joined[p.b]) > 0}

# unlinked are accelerators of a meshed board that xGMI joins to none. Where it joins none at all, all must be of a board.
unlinked := {a | some a in (ends & meshed); not joined[a]; comparable}

comparable if count(joined) > 0
comparable if count(ends - meshed) == 0

ends := {a | some p in links; some a in [p.a, p.b]}

findings contains {
	"id": "counted",
	"subject": g.address,
	"affects": facts.gpus_at(g.address),
	"about": {"count": g.xgmi_errors},
	"evidence": [{"fact": sprintf("gpus.devices[%s].xgmi_errors", [g.address]), "value": g.xgmi_errors, "source": "amd-smi, or the driver"}],
	"params": {"gpu": g.address},
} if {
	some g in amd.gpus
	g.xgmi_errors > 0
}

not_applicable contains "fewer than two AMD GPUs" if amd.no_pair

# links are the pairs of which it is known how they are joined. Partitions of one accelerator differ in the function of their
# address alone.
links := {p | some p in input.links.pairs; p.link_type in {"xgmi", "pcie"}; not one_device(p)}

one_device(p) if {
	facts.is_address(p.a)
	split(p.a, ".")[0] == split(p.b, ".")[0]
}

# joined are the GPUs to which each is joined. Looked up in neighbours, they would be collected for each GPU again.
joined := {a: others | some a, others in neighbours}

neighbours[a] contains b if {
	some p in links
	p.link_type == "xgmi"
	some [a, b] in [[p.a, p.b], [p.b, p.a]]
}

# meshed are the accelerators of boards on which each is joined to each.
meshed := {g.address | some g in amd.gpus; regex.match(`MI(250|300X|308X|325X|350X|355X)`, g.name)}
