# METADATA
# title: Transfers are slower than their links allow
# description: >-
#   All data arrives, but slower than the path's narrowest link allows: on a detour, over host memory or a degraded
#   link, or, if only while all GPUs write at once, over a shared uplink of a switch.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html, description: NVIDIA on slow communication}
#   - {ref: https://github.com/NVIDIA/nvbandwidth, description: The reference measurement of these paths.}
# custom:
#   severity: medium
#   confidence: confirmed
#   symptom: true
#   cause: p2p-broken-platform
#   needs: [transfers-measured]
#   remedies: [disable-acs, update-bios, nccl-p2p-disable, reset-gpu, upgrade-driver, bind-numa, reseat-or-fix-pcie-link]
#   explains: [transfer-failed, collective-slow]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     pairs: >-
#       {pairs} of {tried:ordered pair} are slow: {figures}.[ Whether ACS redirects them at {bridges:few} could not
#       be read, which needs root.]
#     copies: "Copies between host memory and this GPU are slow[ from {some}]: {figures}."
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

# grade: "high" means that more than half of what healthy machines reach is lost.
grade(ts) := "high" if {
	some t in ts
	t.fraction < thresholds.wrong_path * t.threshold
} else := "medium"

findings contains {
	"grade": "pairs",
	"subject": transfers.subject(group),
	"affects": transfers.gpus(group),
	"about": {"pairs": count(group), "tried": count(transfers.tried), "figures": figures(ts), "bridges": bridges},
	"evidence": transfers.evidence(group, {"test", "gbps", "expected_gbps", "fraction", "threshold", "basis", "us"}),
	"accounts_for": transfers.accounted(ts),
	"params": {"bridges": sort(bridges)},
	"severity": severity,
	"remedies": remedies(object.keys(group)),
} if {
	some severity in {grade(ts) | some ts in slow}
	group := {d: ts | some d, ts in slow; grade(ts) == severity}
	ts := transfers.all(group)
	bridges := unread(object.keys(group))
}

# figures says how slow the worst of some transfers is, with all tests.
figures(ts) := sprintf("%s (%s)", [worst, concat(", ", sort(transfers.tests(ts)))]) if {
	worst := sort([[object.get(t, "fraction", 1), object.get(t, "reason", "below what the path allows")] | some t in ts])[0][1]
}

# remedies: where ACS was seen, and is at fault, acs-redirect says so. Host memory is slower than most slow paths.
remedies(directions) := array.concat(["reset-gpu", "upgrade-driver"], staged(directions)) if {
	peers.under_nvlink(directions)
} else := array.flatten([["disable-acs" | count(unread(directions)) > 0; not of_host], staged(directions), "update-bios"])

staged(directions) := staging.remedies([{"a": a, "b": b} | some [a, b] in directions])

of_host if facts.is_guest == true
of_host if facts.is_passthrough_host == true

# unread are the bridges on the way whose ACS bits could not be read.
unread(directions) := {bridge |
	some p in facts.gpu_pairs
	count({[p.a, p.b], [p.b, p.a]} & directions) > 0
	some bridge in pci.hidden(p)
	not pci.emulated(bridge)
}

# Copies between host memory and a GPU: slow from every node points to the GPU's own link; slow from one of several is
# the way of a far node, and memory of the near one is the cure.
host_copies[gpu] contains t if {
	some t in input.transfers.transfers
	t.test in {"host-to-device", "device-to-host"}
	some gpu in [t.source, t.destination]
	facts.is_address(gpu)
}

findings contains {
	"grade": "copies",
	"subject": gpu,
	"affects": [gpu],
	"about": {"figures": figures(slow_copies), "some": ["some NUMA nodes" | far]},
	"evidence": [transfers.shown(gpu, [object.filter(t, fields) | some t in sort(slow_copies)])],
	"accounts_for": transfers.accounted(slow_copies),
	"params": {"node": node | node := pci.device[gpu].numa_node; is_number(node)},
	"severity": {true: "low", false: grade(slow_copies)}[far],
	"remedies": {true: ["bind-numa"], false: ["reseat-or-fix-pcie-link", "update-bios"]}[far],
} if {
	some gpu, ts in host_copies
	slow_copies := {t | some t in ts; t.outcome == "slow"}
	count(slow_copies) > 0
	far := count({t | some t in ts; t.outcome == "ok"; t.test in transfers.tests(slow_copies)}) > 0
	fields := ["test", "source", "destination", "gbps", "expected_gbps", "fraction", "threshold"]
}

not_applicable contains facts.few_offered

not_applicable contains "fewer than two GPUs" if not facts.several
