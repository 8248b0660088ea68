# METADATA
# title: NVLinks are down or unhealthy
# description: >-
#   A GPU has fewer active NVLinks than GPUs of the same model, or the fabric reports that it is degraded. Traffic then
#   shares the remaining links or falls back to PCIe, and a collective is as slow as its slowest GPU.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/gpu-debug-guidelines/index.html
#     description: How NVIDIA diagnoses NVLink faults.
#   - ref: https://docs.nvidia.com/health-validation/reference/checks/nvlink
#     description: NVIDIA allows no inactive NVLink, and recommends a reset, then a reboot, then service.
# custom:
#   severity: high
#   confidence: likely
#   needs: ["gpus.devices[].nvlinks"]
#   remedies: [reset-gpu, reboot, replace-hardware, reseat-nvlink-bridge, reboot-or-reload-driver, start-fabric-manager, match-fabric-manager]
#   explains: [p2p-slow, measured-transfers]
#   since: "0.1"
#   grades:
#     lost: "{active} of {expected} NVLinks of {subject} are active"
#     fabric:
#       confidence: confirmed
#       text: "NVML reports that the NVLink fabric of {gpus:GPU} is unhealthy ({parts})"
#     xids:
#       remedies: [reset-gpu, reboot-or-reload-driver, replace-hardware]
#       text: >-
#         The kernel log has NVLink errors (Xid {codes}): they terminated what ran over the links, and collectives hang or
#         fail until the GPUs are reset
package gpudoctor.rules.nvlink_down

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.xid

lost[address] := {"active": active[address], "expected": expected, "evidence": [{
	"fact": sprintf("gpus.devices[%s].nvlinks", [address]),
	"value": {"active": active[address], "inactive": sort([l.link | some l in links[address]; l.active == false])},
	"source": "nvmlDeviceGetNvLinkState",
}]} if some address, expected in short

# A matrix of topology counts the NVLinks of each pair. Behind NVSwitches all pairs of whole GPUs have the same number,
# and one GPU whose pairs have fewer has lost links.
lost[address] := {"active": n, "expected": widest, "evidence": [{
	"fact": sprintf("links.pairs[%s].nvlinks", [facts.pair_name(p.a, p.b)]),
	"value": p.nvlinks,
	"source": "nvidia-smi topo -m",
} |
	some p in sort(ps)
]} if {
	some address, ps in switched_of
	not links[address]
	n := max({p.nvlinks | some p in ps})
	n < widest
}

switched_pairs := {p | some p in facts.gpu_pairs; p.nvswitch == true; is_number(p.nvlinks)}

switched_of[address] contains p if {
	some p in switched_pairs
	some address in [p.a, p.b]
}

widest := max({p.nvlinks | some p in switched_pairs})

findings contains {
	"grade": "lost",
	"subject": address,
	"affects": [address],
	"about": l,
	"evidence": l.evidence,
	"severity": {true: "high", false: "medium"}[address in wired],
	"remedies": ["reset-gpu", {true: "reboot", false: "reseat-nvlink-bridge"}[address in wired], "replace-hardware"],
} if some address, l in lost

ill[parts] contains g.address if {
	some g in facts.named
	parts := {part | some part in g.fabric.unhealthy}
	count(parts) > 0
}

findings contains {
	"grade": "fabric",
	"subject": {true: facts.list(gpus), false: "host"}[count(gpus) == 1],
	"affects": sort(gpus),
	"about": {"gpus": gpus, "parts": parts},
	"evidence": [{"fact": sprintf("gpus.devices[%s].fabric.unhealthy", [gpu]), "value": parts, "source": "nvmlDeviceGetGpuFabricInfoV"} |
		some gpu in sort(gpus)
	],
	"severity": {true: "medium", false: "high"}[count(parts - {"route-recovery", "access-timeout-recovery"}) == 0],
	"remedies": {
		true: ["start-fabric-manager", "match-fabric-manager", "reset-gpu"],
		false: ["reset-gpu", "reboot", "replace-hardware"],
	}["incorrect-configuration" in parts],
} if some parts, gpus in ill

# link_events are the Xids of NVLinks. Xid 45 tears down what ran over one, and names the Xid that it follows; often it is
# all that a text shows of the first one.
link_events contains e if {
	some e in pci.events.xid
	to_number(object.get(e, ["fields", "previous"], e.code)) in xid.of_nvlink
}

findings contains {
	"grade": "xids",
	"subject": {true: concat("", gpus), false: "host"}[count(gpus) == 1],
	"affects": [address | some address in gpus; address in facts.gpus],
	"about": {"codes": {e.code | some e in link_events}},
	"evidence": pci.event_evidence(link_events),
	"params": {"gpus": gpus},
} if {
	count(link_events) > 0
	gpus := sort({e.address | some e in link_events; e.address})
}

missing contains {"fact": "gpus.devices[].nvlinks", "words": "NVML did not report the NVLinks"} if count(unread) > 0

unread := {address |
	some address in facts.gpus
	not facts.is_amd(address)
	object.get(facts.gpu, [address, "nvlinks"], null) == null
}

asks contains "gpus.devices[].fabric" if surroundings.multicast

not_applicable contains "no NVLink here" if {
	is_set(facts.gpus)
	count(links) == 0
	count(unread) == 0
}

# links are the NVLinks of each GPU that has any, and whose were read. A GPU in MIG mode does not use them.
links := {g.address: g.nvlinks |
	some g in facts.named
	not g.mig == true
	is_array(g.nvlinks)
	count(g.nvlinks) > 0
}

active[address] := count([l | some l in ls; l.active == true]) if some address, ls in links

default switched := false

switched if surroundings.nvswitch
switched if "switch" in {l.remote_type | some ls in links; some l in ls}

switched if {
	some g in facts.named
	g.fabric.state == "completed"
}

# short is how many links a GPU should have, if that is more than it has. Without NVSwitches a GPU may well have no
# bridge, and then all its links are inactive. One that has some, but fewer than it should have, has lost them.
short[address] := expected if {
	some address, n in active
	expected := due(address)
	n < expected
	bridged(address)
}

bridged(address) if address in wired
bridged(address) if active[address] > 0

# wired are the GPUs whose board wires them to the others or to NVSwitches: no bridge may be missing.
wired contains g.address if {
	some g in facts.named
	true in {switched, contains(object.get(g, "name", ""), "SXM")}
}

due(address) := count(links[address]) if {
	wholly_wired(address)
} else := max(active_of[facts.gpu[address].name])

active_of[facts.gpu[address].name] contains n if some address, n in active

# Behind NVSwitches every link of a GPU leads to one, and none may be down. This also holds for all GPUs at once: an
# NVSwitch that is lost takes links from every one. Models that are sold with some links off list them as inactive. A card
# of four links or fewer has a single bridge, which takes all (RTX 3090, A30, A40, RTX A6000).
wholly_wired(address) if {
	switched
	not regex.match(`\b[AH]800\b`, object.get(facts.gpu, [address, "name"], ""))
}

wholly_wired(address) if {
	not switched
	count(links[address]) <= 4
}
