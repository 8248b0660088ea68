# METADATA
# title: NVLinks are down or unhealthy
# description: >-
#   A GPU has fewer active NVLinks than its like, or the fabric reports that it
#   is degraded. Traffic then shares the links that are left, or falls back to
#   PCIe, and a collective is as slow as its slowest GPU.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/gpu-debug-guidelines/index.html
#     description: How NVIDIA diagnoses NVLink faults.
#   - ref: https://docs.nvidia.com/health-validation/reference/checks/nvlink
#     description: NVIDIA's health validation allows no inactive NVLink, and asks for a reset, then a restart, then service.
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - gpus.devices[].nvlinks
#   remedies: [reset-gpu, reboot, replace-hardware, reseat-nvlink-bridge, reboot-or-reload-driver, start-fabric-manager, match-fabric-manager]
#   explains: [p2p-slow]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.nvlink_down

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.xid

# links are the NVLinks of each GPU that has any, and whose were read. A GPU in
# MIG mode does not use them.
links := {g.address: g.nvlinks |
	some g in facts.named
	not g.mig == true
	is_array(g.nvlinks)
	count(g.nvlinks) > 0
}

active[address] := count([l | some l in links[address]; l.active == true]) if some address, _ in links

inactive(address) := sort([l.link | some l in links[address]; l.active == false])

# switched is true where NVSwitches join the GPUs.
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

# most is the largest number of active links among the GPUs of one model.
most(address) := max(active_of[facts.gpu[address].name])

active_of[facts.gpu[address].name] contains n if some address, n in active

# short is how many links a GPU should have, where that is more than it has.
# Behind NVSwitches every link of a GPU leads to one, and none may be down
# (NVIDIA's health validation allows 0). This holds for all GPUs at once too:
# an NVSwitch that is lost takes links from every one.
short[address] := expected if {
	switched
	some address, ls in links
	not cut(address)
	expected := count([l | some l in ls])
	active[address] < expected
}

short[address] := expected if {
	switched
	some address, _ in links
	cut(address)
	expected := most(address)
	active[address] < expected
}

# Without NVSwitches a GPU may well have no bridge, and then all its links are
# inactive. One that has some, but fewer than its like, has lost them.
short[address] := expected if {
	not switched
	some address, _ in links
	active[address] > 0
	expected := most(address)
	active[address] < expected
}

# A card of four links or fewer has a single bridge, which takes all (RTX 3090,
# A30, A40, RTX A6000).
short[address] := expected if {
	not switched
	some address, ls in links
	expected := count([l | some l in ls])
	expected <= 4
	active[address] > 0
	active[address] < expected
	most(address) == active[address]
}

# A single module (SXM) that was shown alone: its board wires all its links, so
# that some which are up and some which are not are a loss. Part of a machine may
# look like that where a cloud lets it, which a text of one GPU does not tell.
short[address] := expected if {
	not switched
	some address, ls in links
	count(links) == 1
	regex.match(`SXM`, facts.gpu[address].name)
	not cut(address)
	expected := count(ls)
	active[address] > 0
	active[address] < expected
}

findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("%d of %d NVLinks of %s are active; %s.", [active[address], expected, address, which(address, expected)]),
	"evidence": [{
		"fact": sprintf("gpus.devices[%s].nvlinks", [address]),
		"value": {"active": active[address], "expected": expected, "inactive": inactive(address)},
		"source": "nvmlDeviceGetNvLinkState",
	}],
	"params": {"gpu": address, "links": inactive(address)},
	"severity": severity(address),
	"remedies": link_remedies,
} if {
	some address, expected in short
	not all_down
}

default link_remedies := ["reset-gpu", "reseat-nvlink-bridge", "replace-hardware"]

link_remedies := ["reset-gpu", "reboot", "replace-hardware"] if switched

# When no GPU has a link, it is the fabric, not a link of each.
all_down if {
	count(short) > 1
	every address, _ in links {
		active[address] == 0
	}
}

findings contains {
	"subject": "host",
	"affects": sort(object.keys(short)),
	"message": sprintf("No NVLink of any of %d GPUs is active, on a machine with NVSwitches: the fabric is not up.", [count(short)]),
	"evidence": [{
		"fact": sprintf("gpus.devices[%s].nvlinks", [address]),
		"value": {"active": 0, "expected": expected},
		"source": "nvmlDeviceGetNvLinkState",
	} |
		some address, expected in short
	],
	"params": {"gpus": sort(object.keys(short))},
	"severity": "high",
	"remedies": fabric_remedies,
} if {
	all_down
}

# A fabric manager that runs was started already.
default fabric_remedies := ["start-fabric-manager", "reboot", "reset-gpu"]

fabric_remedies := ["reboot", "reset-gpu"] if input.gpus.driver.fabric_manager.running == true

which(address, _) := sprintf("inactive: %s", [concat(", ", [sprintf("%d", [n]) | some n in inactive(address)])]) if {
	count(inactive(address)) > 0
} else := sprintf("others of its model have %d", [most(address)])

severity(_) := "high" if {
	switched
} else := "medium"

# unhealthy says what each part of the fabric's health mask means for traffic.
unhealthy := {
	"degraded-bandwidth": ["high", "the fabric runs with less bandwidth"],
	"route-unhealthy": ["high", "a route of the fabric is unhealthy"],
	"incorrect-configuration": ["high", "the fabric is configured wrongly"],
	"route-recovery": ["medium", "a route of the fabric is being recovered"],
	"access-timeout-recovery": ["medium", "the fabric recovers from a timed-out access"],
}

# gravest first, so that one finding for each set of parts has one severity.
health_severity(parts) := "high" if {
	some part in parts
	unhealthy[part][0] == "high"
} else := "medium"

ill := {g.address: parts |
	some g in facts.named
	parts := {part | some part in g.fabric.unhealthy; unhealthy[part]}
	count(parts) > 0
}

findings contains {
	"subject": subject(gpus),
	"affects": sort(gpus),
	"message": sprintf("NVML says of %d GPUs that %s.", [count(gpus), concat(", and ", sort({unhealthy[part][1] | some part in parts}))]),
	"evidence": [{
		"fact": sprintf("gpus.devices[%s].fabric.unhealthy", [address]),
		"value": sort(parts),
		"source": "nvmlDeviceGetGpuFabricInfoV",
	} |
		some address in sort(gpus)
	],
	"params": {"gpus": sort(gpus)},
	"severity": health_severity(parts),
	"confidence": "confirmed",
	"remedies": health_remedies(parts),
} if {
	some parts in {p | some p in ill}
	gpus := {address | some address, p in ill; p == parts}
}

subject(gpus) := facts.list(gpus) if {
	count(gpus) == 1
} else := "host"

health_remedies(parts) := ["start-fabric-manager", "match-fabric-manager", "reset-gpu"] if {
	"incorrect-configuration" in parts
} else := ["reset-gpu", "reboot", "replace-hardware"]

# Counters since the driver was loaded cannot tell a burst at start from a
# link that is failing now, so they are worth knowing and no more. DCGM warns
# at the first replay or recovery within its interval; CRC errors are corrected
# and matter at a rate, which one reading does not give.
errors[address] := {"replay": replays, "recovery": recoveries} if {
	some address, ls in links
	replays := sum([l.replay_errors | some l in ls])
	recoveries := sum([l.recovery_errors | some l in ls])
	replays + recoveries > 0
}

findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("NVLinks of %s have counted %d recoveries and %d replays since the driver was loaded. If the counts grow, a link is failing.", [address, e.recovery, e.replay]),
	"evidence": [{
		"fact": sprintf("gpus.devices[%s].nvlinks[].recovery_errors", [address]),
		"value": e,
		"source": "nvmlDeviceGetNvLinkErrorCounter",
	}],
	"params": {"gpu": address},
	"severity": error_severity(e),
	"confidence": "possible",
	"remedies": ["reset-gpu", "replace-hardware"],
} if {
	some address, e in errors
	not short[address]
}

error_severity(e) := "low" if {
	e.recovery > 0
} else := "info"

# NVML's own word on NVLink between two GPUs that active links join.
findings contains {
	"subject": facts.pair_name(p.a, p.b),
	"affects": sort([p.a, p.b]),
	"message": sprintf("%d active NVLinks join %s and %s, yet NVML says of NVLink between them: %s.", [p.nvlinks, p.a, p.b, p.p2p.nvlink]),
	"evidence": [{
		"fact": sprintf("links.pairs[%s].p2p.nvlink", [facts.pair_name(p.a, p.b)]),
		"value": p.p2p.nvlink,
		"source": "nvmlDeviceGetP2PStatus",
	}],
	"params": {"gpus": sort([p.a, p.b])},
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["reset-gpu", "start-fabric-manager", "reboot"],
} if {
	some p in facts.gpu_pairs
	p.nvlinks > 0
	p.p2p.nvlink
	not p.p2p.nvlink in {"ok", "unknown", ""}
	peers.whole(p.a)
	peers.whole(p.b)
}

# What logs say of a link. NCCL refuses to start where NVLink joins two GPUs and
# the driver refuses peer access over it; CUDA has two errors of its own (220, 226).
claims := {
	"refused": {m | some m in logs.complaints; contains(m.text, "P2P is disabled between NVLINK connected GPUs")},
	"error": {m |
		some m in logs.complaints
		m.role != "consequence"
		regex.match(`uncorrectable NVLink error|ErrorNvlinkUncorrectable|ERROR_NVLINK_UNCORRECTABLE`, m.text)
	},
	"contained": {m |
		some m in logs.complaints
		m.role != "consequence"
		regex.match(`CUDA_ERROR_CONTAINED|cudaErrorContained|Invalid access of peer GPU memory over nvlink`, m.text)
	},
}

claim_words := {
	"refused": "NVLink joins two GPUs, yet the driver refuses peer access over it, which NCCL takes for a fault of the hardware",
	"error": "CUDA met an NVLink error that cannot be corrected (220)",
	"contained": "CUDA met an invalid access to a peer over NVLink, or an error of the hardware (226)",
}

findings contains {
	"subject": "host",
	"message": sprintf("%s. The kernel log tells by Xid and SXid which link it is.", [claim_words[kind]]),
	"evidence": logs.all_evidence(ms),
	"order": logs.first(ms).order,
	"params": {"gpus": all_gpus},
	"severity": "critical",
	"confidence": claim_confidence(kind),
	"remedies": ["reset-gpu", "reboot", "replace-hardware"],
} if {
	some kind, ms in claims
	count(ms) > 0
}

# told are the ranks of a job whose GPUs have NVLinks that are down, or other
# numbers or speeds of them than the rest, by NCCL's diagnostics.
told[id] contains m if {
	some id in {"nccl-diag-link-down", "nccl-diag-link-differs"}
	some m in logs.by_id[id]
	m.fields.link == "NVLink"
}

findings contains {
	"subject": "host",
	"message": sprintf("NCCL's diagnostics find that the GPUs of ranks %s %s.", [facts.list({m.fields.ranks | some m in ms}), {
		"nccl-diag-link-down": "have NVLinks that are down",
		"nccl-diag-link-differs": "have NVLinks in other number or of other speed than those of the rest",
	}[id]]),
	"evidence": logs.all_evidence(ms),
	"order": logs.first(ms).order,
	"params": {"gpus": all_gpus},
	"severity": {"nccl-diag-link-down": "high", "nccl-diag-link-differs": "medium"}[id],
	"confidence": {"nccl-diag-link-down": "confirmed", "nccl-diag-link-differs": "possible"}[id],
	"remedies": ["reset-gpu", "reboot", "replace-hardware"],
} if {
	some id, ms in told
}

default all_gpus := []

all_gpus := sort(facts.gpus)

claim_confidence("contained") := "likely"

claim_confidence(kind) := "confirmed" if kind != "contained"

# link_events are the Xids by which the driver reports a fault of an NVLink: 74, and
# 144 to 150 of NVLink 5. Xid 45 tears down what ran over it, and names the Xid
# that it follows; often it is all that a text shows of the first one.
link_events contains e if {
	some e in input.kernel_log.events
	e.kind == "xid"
	link_code(e.code)
}

link_events contains e if {
	some e in input.kernel_log.events
	e.kind == "xid"
	e.code == 45
	some m in regex.find_all_string_submatch_n(`caused by previous Xid (\d+)`, e.message, 1)
	link_code(to_number(m[1]))
}

link_code(code) if code == 74

link_code(code) if code in numbers.range(144, 150)

findings contains {
	"subject": link_subject,
	"affects": sort({e.address | some e in link_events; e.address in facts.gpus}),
	"message": sprintf("The kernel log has errors of NVLinks (Xid %s): what ran over them was torn down, and collectives hang or fail until the GPUs are reset.", [
		concat(", ", sort({sprintf("%d", [e.code]) | some e in link_events})),
	]),
	"evidence": [{"fact": "kernel_log.events[xid]", "value": e.message, "source": xid.source} | some e in sort(link_events)],
	"params": {"gpus": sort({e.address | some e in link_events; e.address})},
	"severity": "high",
	"confidence": "likely",
	"remedies": ["reset-gpu", "reboot-or-reload-driver", "replace-hardware"],
} if {
	count(link_events) > 0
}

link_subject := address if {
	addresses := {e.address | some e in link_events; e.address}
	count(addresses) == 1
	some address in addresses
} else := "host"

# A matrix of topology counts the NVLinks of each pair. Behind NVSwitches all
# pairs of whole GPUs have the same number, and one GPU whose pairs have fewer has
# lost links.
switched_pairs := {p | some p in facts.gpu_pairs; p.nvswitch == true; is_number(p.nvlinks)}

switched_of[address] contains p if {
	some p in switched_pairs
	some address in [p.a, p.b]
}

widest := max({p.nvlinks | some p in switched_pairs})

narrow[address] := most_of if {
	some p in switched_pairs
	some address in [p.a, p.b]
	not links[address]
	most_of := max({q.nvlinks | some q in switched_of[address]})
	most_of < widest
}

findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("%s reaches every other GPU over %d NVLinks, other pairs have %d: it has lost NVLinks.", [address, n, widest]),
	"evidence": [{
		"fact": sprintf("links.pairs[%s].nvlinks", [facts.pair_name(p.a, p.b)]),
		"value": p.nvlinks,
		"source": "nvidia-smi topo -m",
	} |
		some p in sort(switched_of[address])
	],
	"params": {"gpu": address},
	"severity": "high",
	"remedies": ["reset-gpu", "reboot", "replace-hardware"],
} if {
	some address, n in narrow
	not links[address]
}

# On modules for NVLink boards (SXM) nvidia-smi says that all links are inactive.
# A card without a bridge looks the same and is healthy.
modules := {g.address | some g in facts.named; regex.match(`SXM|HBM3|\bH[12]00$|\bB[23]00\b`, object.get(g, "name", ""))}

findings contains {
	"subject": "host",
	"affects": sort(modules),
	"message": "nvidia-smi shows no active NVLink on GPU modules that are sold for NVLink boards. In a part of a machine that is let without NVLink that is as it must be; else the fabric is not up.",
	"evidence": logs.all_evidence(dark),
	"order": logs.first(dark).order,
	"params": {"gpus": sort(modules)},
	"severity": dark_severity,
	"confidence": "possible",
	"remedies": ["start-fabric-manager", "reboot", "reset-gpu"],
} if {
	dark := logs.messages({"nvlink-all-inactive"})
	count(dark) > 0
	count(modules) > 1
}

default dark_severity := "low"

dark_severity := "high" if logs.failed

missing contains {"fact": "gpus.devices[].nvlinks", "words": "NVML did not say what NVLinks there are"} if {
	unread
	count([1 | some _, ms in claims; count(ms) > 0]) == 0
	count(told) == 0
	not no_gpu
}

missing contains {"fact": "gpus.devices[].fabric", "words": "NVML did not say how the fabric stands"} if {
	surroundings.multicast
	count([g | some g in facts.named; g.fabric]) == 0
}

unread if not facts.gpus

unread if {
	some g in input.gpus.devices
	g.vendor == "nvidia"
	not listed(g)
}

unread if {
	some address in facts.offered
	not facts.gpu[address]
}

listed(g) if is_array(g.nvlinks)

no_gpu if count(facts.gpus) == 0

not_applicable contains "no NVLink here" if {
	is_set(facts.gpus)
	count(links) == 0
	not unread
}
