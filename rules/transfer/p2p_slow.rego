# METADATA
# title: Transfers are slower than their links allow
# description: >-
#   All data arrives, but slower than the path's narrowest link allows. Transfers that are slow one at a time indicate
#   the path (a detour through the root complex, host staging, a degraded link). Transfers that are slow only while all
#   GPUs write at once indicate a shared switch uplink.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NVIDIA on slow GPU-to-GPU communication.
#   - {ref: https://github.com/NVIDIA/nvbandwidth, description: The reference measurement of these paths.}
# custom:
#   severity: medium
#   confidence: confirmed
#   symptom: true
#   cause: p2p-broken-platform
#   needs: [transfers-measured]
#   remedies: [disable-acs, iommu-pt, update-bios, nccl-p2p-disable, nccl-p2p-level, reset-gpu, upgrade-driver, bind-numa, reseat-or-fix-pcie-link]
#   explains: [transfer-failed, collective-slow]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.p2p_slow

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.staging
import data.gpudoctor.lib.transfers
import data.tables.thresholds

# slow are the slow transfers of each ordered pair of GPUs, where nothing worse happened on it.
slow[[t.source, t.destination]] contains t if {
	some k, ts in peers.sluggish
	not peers.trouble[k]
	some t in ts
}

# grade: "high" means that more than half of what healthy machines reach is lost. All at once, the threshold is lax
# since pairs share links that none of them shows; a quarter of a pair's fair share is a collapse even there.
grade(ts) := "high" if {
	some t in ts
	t.fraction < max([thresholds.wrong_path * t.threshold, object.get({"all-at-once": 0.25}, t.test, 0)])
} else := "medium"

# when is "together" for a pair that is slow only while several copies run.
when(ts) := "together" if {
	"all-at-once" in transfers.tests(ts)
	transfers.tests(ts) - {"all-at-once", "bidirectional"} == set()
} else := "alone"

findings contains {
	"subject": transfers.subject(group),
	"affects": transfers.gpus(group),
	"message": sprintf("%d of %d ordered pairs are slow%s: %s.%s", [
		count(group), count(transfers.tried),
		{"together": " while all GPUs write at once, but not one at a time", "alone": ""}[k[1]], figures(ts),
		# ACS on the way is the first suspect where it could not be read.
		concat("", [sprintf(" Whether ACS redirects them at %s could not be read, which needs root.", [facts.few(bridges)]) |
			count(bridges) > 0
		]),
	]),
	"evidence": transfers.evidence(group, {"test", "gbps", "expected_gbps", "fraction", "threshold", "basis", "us"}),
	"accounts_for": transfers.accounted(ts),
	"params": {"bridges": sort(bridges), "level": "PXB"},
	"severity": k[0],
	"remedies": remedies(k[1], object.keys(group)),
} if {
	some k in {[grade(ts), when(ts)] | some ts in slow}
	group := {d: ts | some d, ts in slow; [grade(ts), when(ts)] == k}
	ts := transfers.all(group)
	bridges := unread(object.keys(group))
}

figures(ts) := sprintf("%s GB/s (%s) where at least %s of %s is good", [
	peers.span(rates), tests_text(ts), peers.decimal(min(good)), peers.decimal(min(best)),
]) if {
	rates := {t.gbps | some t in ts}
	good := {g | some t in ts; g := t.expected_gbps * t.threshold}
	best := {t.expected_gbps | some t in ts}
	count(rates) > 0
	count(good) > 0
} else := sprintf("%s (%s)", [concat("; ", sort({r | some t in ts; r := object.get(t, "reason", "below what the path allows")})), tests_text(ts)])

tests_text(ts) := concat(", ", sort(transfers.tests(ts)))

# remedies: parts that are known to work get no remedy. Host memory is slower than most
# slow paths, so it is advised only if it was measured faster.
remedies(time, directions) := array.concat(["reset-gpu", "upgrade-driver"], staged) if {
	peers.under_nvlink(directions)
	staged := [way | time == "together"; some way in staged_way(time, directions)]
} else := array.flatten([unseen, staged_way(time, directions), "update-bios"]) if {
	unseen := [cure | time == "alone"; some cure in unknowns(directions)]
}

# unknowns are the cures of what could not be seen: where it was, and is at
# fault, acs-redirect or iommu-translation says so.
unknowns(directions) := [cure |
	not facts.is_guest == true
	not facts.is_passthrough_host == true
	some [cure, open] in [
		["disable-acs", count(unread(directions)) > 0],
		["iommu-pt", count(undecided(directions)) > 0],
	]
	open
]

# unread are the bridges on the way whose ACS bits could not be read.
unread(directions) := {bridge |
	some d in directions
	some p in pairs_of[peers.key(d[0], d[1])]
	some bridge in pci.hidden(p)
	not pci.emulated(bridge)
}

pairs_of[peers.key(p.a, p.b)] contains p if some p in facts.gpu_pairs

undecided(directions) := {address |
	some d in directions
	some address in d
	not pci.untranslated(address)
	not pci.translated(address)
}

# staged_way: a level, where pairs below common switches are fast and only
# those beyond must be left out; else peer access goes as a whole.
staged_way(time, directions) := [] if {
	some d in directions
	not staged_faster(time, d)
} else := ["nccl-p2p-level", "nccl-p2p-disable"] if {
	count(transfers.tried - directions) > 0
	every d in directions {
		some p in pairs_of[peers.key(d[0], d[1])]
		p.path in {"PHB", "NODE", "SYS"} # It leaves the PCIe switches.
	}
} else := ["nccl-p2p-disable"]

staged_faster("alone", d) if staging.faster(d[0], d[1])
staged_faster("together", d) if staging.beats_crowd(d[0], d[1])

# Copies between host memory and a GPU: slow from every node points to the GPU's own link; slow from one of several is
# the way of a far node, and memory of the near one is the cure.
host_copies[gpu] contains t if {
	some t in input.transfers.transfers
	t.test in {"host-to-device", "device-to-host"}
	some gpu in [t.source, t.destination]
	facts.is_address(gpu)
}

findings contains {
	"subject": gpu,
	"affects": [gpu],
	"message": sprintf("Copies between host memory and this GPU are slow%s: %s.", [k.words, figures(slow_copies)]),
	"evidence": [transfers.shown(gpu, [object.filter(t, fields) | some t in sort(slow_copies)])],
	"accounts_for": transfers.accounted(slow_copies),
	"params": {"node": node | node := pci.device[gpu].numa_node; is_number(node)},
	"severity": k.severity,
	"remedies": k.remedies,
} if {
	some gpu, ts in host_copies
	slow_copies := {t | some t in ts; t.outcome == "slow"}
	count(slow_copies) > 0
	k := copies_kind(slow_copies, ts)
	fields := ["test", "source", "destination", "gbps", "expected_gbps", "fraction", "threshold"]
}

copies_kind(slow_copies, ts) := {"words": " from some NUMA nodes", "severity": "low", "remedies": ["bind-numa"]} if {
	some t in (ts - slow_copies)
	t.outcome == "ok"
	t.test in transfers.tests(slow_copies)
} else := {"words": "", "severity": grade(slow_copies), "remedies": ["reseat-or-fix-pcie-link", "update-bios"]}

not_applicable contains facts.few_offered

not_applicable contains "fewer than two GPUs" if not facts.several
