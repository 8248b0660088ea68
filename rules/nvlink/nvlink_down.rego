# METADATA
# title: NVLinks are down or unhealthy
# description: >-
#   A GPU has fewer active NVLinks than GPUs of the same model, or the fabric reports that it is degraded. Traffic then
#   shares the remaining links or falls back to PCIe, and a collective is as slow as its slowest GPU.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/gpu-debug-guidelines/index.html
#     description: How NVIDIA diagnoses NVLink faults.
#   - ref: https://docs.nvidia.com/health-validation/reference/checks/nvlink
#     description: >-
#       NVIDIA's health validation allows no inactive NVLink, and recommends a reset, then a reboot, then service.
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - gpus.devices[].nvlinks
#   remedies: [reset-gpu, reboot, replace-hardware, reseat-nvlink-bridge, reboot-or-reload-driver, start-fabric-manager, match-fabric-manager]
#   explains: [p2p-slow]
#   since: "0.1"
package gpudoctor.rules.nvlink_down

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.xid

lost[address] := {"active": active[address], "expected": expected, "evidence": [{
	"fact": sprintf("gpus.devices[%s].nvlinks", [address]),
	"value": {
		"active": active[address], "expected": expected,
		"inactive": sort([l.link | some l in links[address]; l.active == false]),
	},
	"source": "nvmlDeviceGetNvLinkState",
}]} if some address, expected in short

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

findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("%d of %d NVLinks of %s are active", [l.active, l.expected, address]),
	"evidence": l.evidence,
	"severity": grade[0],
	"remedies": grade[1],
} if {
	some address, l in lost
	not all_down
}

grade := ["high", ["reset-gpu", "reboot", "replace-hardware"]] if {
	switched
} else := ["medium", ["reset-gpu", "reseat-nvlink-bridge", "replace-hardware"]]

findings contains {
	"subject": "host",
	"affects": sort(object.keys(short)),
	"message": sprintf("None of the NVLinks of %s is active, on a machine with NVSwitches: the fabric is not up", [facts.counted(count(short), "GPU")]),
	"evidence": [e | some l in lost; some e in l.evidence],
	"remedies": array.concat(
		["start-fabric-manager" | not input.gpus.driver.fabric_manager.running == true],
		["reboot", "reset-gpu"],
	),
} if all_down

# unhealthy are the parts of the fabric's health mask that matter to traffic.
unhealthy := {
	"degraded-bandwidth": "high", "route-unhealthy": "high", "incorrect-configuration": "high",
	"route-recovery": "medium", "access-timeout-recovery": "medium",
}

ill[parts] contains g.address if {
	some g in facts.named
	parts := {part | some part in g.fabric.unhealthy; unhealthy[part]}
	count(parts) > 0
}

findings contains {
	"subject": {true: facts.list(gpus), false: "host"}[count(gpus) == 1],
	"affects": sort(gpus),
	"message": sprintf("NVML reports that the NVLink fabric of %s is unhealthy (%s).", [facts.counted(count(gpus), "GPU"), replace(facts.list(parts), "-", " ")]),
	"evidence": [{
		"fact": sprintf("gpus.devices[%s].fabric.unhealthy", [address]),
		"value": sort(parts),
		"source": "nvmlDeviceGetGpuFabricInfoV",
	} |
		some address in sort(gpus)
	],
	"severity": min({unhealthy[part] | some part in parts}), # "high" sorts before "medium".
	"confidence": "confirmed",
	"remedies": {
		true: ["start-fabric-manager", "match-fabric-manager", "reset-gpu"],
		false: ["reset-gpu", "reboot", "replace-hardware"],
	}["incorrect-configuration" in parts],
} if some parts, gpus in ill

# Counters since the driver was loaded cannot distinguish a burst at start from a link that is failing now, so they give
# only a low finding. DCGM warns at the first replay or recovery within its interval; CRC errors are corrected and
# matter at a rate, which one reading does not give.
findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("NVLinks of %s have counted %d recoveries and %d replays since the driver was loaded. If the counts grow, a link is failing.", [address, recoveries, replays]),
	"evidence": [{
		"fact": sprintf("gpus.devices[%s].nvlinks[].recovery_errors", [address]),
		"value": {"replay": replays, "recovery": recoveries},
		"source": "nvmlDeviceGetNvLinkErrorCounter",
	}],
	"severity": {true: "low", false: "info"}[recoveries > 0],
	"confidence": "possible",
	"remedies": ["reset-gpu", "replace-hardware"],
} if {
	some address, ls in links
	replays := sum([l.replay_errors | some l in ls])
	recoveries := sum([l.recovery_errors | some l in ls])
	replays + recoveries > 0
	not short[address]
}

# link_events are the Xids of NVLinks. Xid 45 tears down what ran over one, and names
# the Xid that it follows; often it is all that a text shows of the first one.
link_events contains e if {
	some e in pci.events.xid
	e.code in xid.of_nvlink
}

link_events contains e if {
	some e in input.kernel_log.events
	e.id == "kernel-xid-after"
	e.code == 45
	to_number(e.fields.previous) in xid.of_nvlink
}

findings contains {
	"subject": {true: concat("", gpus), false: "host"}[count(gpus) == 1],
	"affects": [address | some address in gpus; address in facts.gpus],
	"message": sprintf("The kernel log has NVLink errors (Xid %s): they terminated what ran over the links, and collectives hang or fail until the GPUs are reset.", [
		concat(", ", {sprintf("%d", [e.code]) | some e in link_events}),
	]),
	"evidence": pci.event_evidence(link_events),
	"params": {"gpus": gpus},
	"remedies": ["reset-gpu", "reboot-or-reload-driver", "replace-hardware"],
} if {
	count(link_events) > 0
	gpus := sort({e.address | some e in link_events; e.address})
}

# On modules for NVLink boards (SXM) nvidia-smi says that all links are inactive.
# A card without a bridge looks the same and is healthy.
modules := {g.address | some g in facts.named; regex.match(`SXM|HBM3|\bH[12]00$|\bB[23]00\b`, object.get(g, "name", ""))}

findings contains {
	"subject": "host",
	"affects": sort(modules),
	"message": "nvidia-smi shows no active NVLink on GPU modules that are sold for NVLink boards. This is normal on part of a machine that is rented out without NVLink; otherwise the fabric is not up.",
	"messages": dark,
	"severity": {true: "high", false: "low"}[count(logs.complaints) > 0],
	"confidence": "possible",
	"remedies": ["start-fabric-manager", "reboot", "reset-gpu"],
} if {
	dark := logs.by_id["nvlink-all-inactive"]
	count(modules) > 1
}

missing contains {"fact": "gpus.devices[].nvlinks", "words": "NVML did not report the NVLinks"} if count(unread) > 0

unread := {address | some address in facts.gpus; not address in read; not facts.is_amd(address)}

read := {g.address | some g in facts.named; is_array(g.nvlinks)}

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

switched if count(switched_pairs) > 0
switched if input.gpus.nvswitches > 0

switched if {
	some ls in links
	some l in ls
	l.remote_type == "switch"
}

switched if {
	some g in facts.named
	g.fabric.state == "completed"
}

# cut are models sold with some links off, which NVML lists as inactive.
cut(address) if regex.match(`\b[AH]800\b`, facts.gpu[address].name)

# short is how many links a GPU should have, if that is more than it has. Behind NVSwitches every link of a GPU leads to
# one, and none may be down (NVIDIA's health validation allows 0). This also holds for all GPUs at once: an NVSwitch
# that is lost takes links from every one.
#
# Without NVSwitches a GPU may well have no bridge, and then all its links are inactive. One that has some, but fewer than
# it should have, has lost them.
short[address] := expected if {
	some address, n in active
	expected := due(address)
	n < expected
	bridged(address)
}

bridged(_) if switched
bridged(address) if active[address] > 0

due(address) := count(links[address]) if {
	wholly_wired(address)
} else := max(active_of[facts.gpu[address].name])

active_of[facts.gpu[address].name] contains n if some address, n in active

wholly_wired(address) if {
	switched
	not cut(address)
}

# A card of four links or fewer has a single bridge, which takes all (RTX 3090, A30, A40, RTX A6000). The board of a single
# module (SXM) that was shown alone wires all its links; part of a machine may look like that where a cloud lets it,
# which a text of one GPU does not tell. All others are compared with their like.
wholly_wired(address) if {
	not switched
	count(links[address]) <= 4
}

wholly_wired(address) if {
	count(links) == 1
	contains(facts.gpu[address].name, "SXM")
	not cut(address)
}

# When no GPU has a link, it is the fabric, not a link of each.
all_down if {
	count(short) > 1
	every address, _ in links {
		active[address] == 0
	}
}

# A matrix of topology counts the NVLinks of each pair. Behind NVSwitches all pairs of whole GPUs have the same number,
# and one GPU whose pairs have fewer has lost links.
switched_pairs := {p | some p in facts.gpu_pairs; p.nvswitch == true; is_number(p.nvlinks)}

switched_of[address] contains p if {
	some p in switched_pairs
	some address in [p.a, p.b]
}

widest := max({p.nvlinks | some p in switched_pairs})
