# METADATA
# title: Peer-to-peer transfers fail although the driver offers them
# description: >-
#   The driver reports peer access between GPUs, but transfers between them hang, fail, or report success and deliver
#   wrong data. Programs that rely on the driver, including NCCL, then hang or compute with garbage.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html, description: Peer access that does not work}
#   - {ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PEER__ACCESS.html, description: What cuDeviceCanAccessPeer guarantees}
#   - {ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#iommu-on-linux, description: Peer copies and the IOMMU}
# custom:
#   severity: critical
#   confidence: confirmed
#   symptom: true
#   needs: [transfers-tried]
#   remedies: [nccl-p2p-disable, iommu-pt, iommu-off, disable-acs, update-bios, upgrade-driver, reset-gpu, reboot-or-reload-driver, nccl-cumem-disable, replace-hardware]
#   explains: [transfer-failed, control-experiment/p2p-broken-platform, collective-hang/on-one-host, collective-failed/p2p, collective-slow]
#   first_of: [failing, wrong, sign]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     failing: >-
#       Transfers over {pairs} of {tried:ordered pair} of GPUs ({gpus:few}) {became}, although the driver offers peer
#       access[ and {exported}].[ Up to {amount} are wrong.][ The probe reports: {reasons}.]
#     wrong: >-
#       Data that one GPU copied to another arrived wrong, although the copy reported success ({copies:few}). Without NVLink
#       and on bare metal, an IOMMU that translates, or ACS that redirects, on the path is likely.
#     sign:
#       confidence: likely
#       text: >-
#         The driver offers peer access that does not work on this platform: {signs}. On bare metal, the first suspects
#         are an IOMMU that translates and ACS that redirects
package gpudoctor.rules.p2p_broken_platform

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.staging
import data.gpudoctor.lib.transfers
import data.tables.thresholds

# failures are the failed transfers of each ordered pair. If data is also lost through host memory, the GPU is at fault,
# not the path between them.
failures[[t.source, t.destination]] contains t if {
	some ts in peers.trouble
	some t in ts
	not staging.failed(t.source, t.destination)
}

# kind groups ordered pairs that fail alike, so that a broken platform with eight GPUs gives one finding, not 56. Only
# between processes, the driver's export of memory is at fault, and a single process works.
kind(ts) := {"worst": became(ts)[0][0], "exported": {t.test | some t in ts} == {"between-processes"}}

# became are the outcomes of transfers, the worst first, each in words with its tests.
became(ts) := [[outcome, sprintf("%s (%s)", [words, concat(", ", sort(tests))])] |
	some [outcome, words] in [["hang", "hang"], ["corrupt", "report success and deliver wrong data"], ["error", "fail"]]
	tests := {concat(" by ", [t[field] | some field in ["test", "way"]; t[field] != ""]) | some t in ts; t.outcome == outcome}
	count(tests) > 0
]

findings contains {
	"id": "failing",
	"severity": {true: "high", false: "critical"}[k.exported],
	"subject": transfers.subject(group),
	"affects": transfers.gpus(group),
	"about": {
		"pairs": count(group), "tried": count(transfers.tried), "gpus": transfers.gpus(group),
		"became": concat("; others ", [words | some [_, words] in became(ts)]),
		"exported": ["they work within one process" | k.exported],
		"amount": [facts.bytes(max(wrong_bytes)) | wrong_bytes := {t.bad_bytes | some t in ts; t.bad_bytes > 0}; count(wrong_bytes) > 0],
		"reasons": concat("; ", sort({t.reason | some t in ts; t.reason != ""})),
	},
	"evidence": transfers.evidence(group, {"test", "way", "outcome", "reason", "found", "bad_bytes", "first_bad", "error_name", "repeats"}),
	"accounts_for": transfers.accounted(ts | {t | some pair in peers.sluggish; some t in pair; group[[t.source, t.destination]]}),
	"remedies": remedies(k, group),
} if {
	some k in {kind(ts) | some ts in failures}
	group := {direction: ts | some direction, ts in failures; kind(ts) == k}
	ts := transfers.all(group)
}

# Memory that is at fault stays so without peer-to-peer. Over NVLink neither firmware nor IOMMU has a part in it, and in
# a virtual machine both are the host's. Pass-through cures only what it is not known to be in force for.
remedies(k, group) := array.concat(other_way(failing, working), ["upgrade-driver"]) if {
	k.exported
	failing := {t.way | some t in transfers.all(group)}
	working := {t.way | some d, _ in group; some t in peers.transfers_of[peers.key(d[0], d[1])]; t.outcome in {"ok", "slow"}}
} else := ["reset-gpu", "reboot-or-reload-driver", "replace-hardware"] if {
	some t in transfers.all(group)
	t.error_code in driver_errors.in_gpu
} else := ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "upgrade-driver"] if {
	peers.under_nvlink(object.keys(group))
} else := ["nccl-p2p-disable", "upgrade-driver"] if {
	facts.is_guest == true
} else := array.flatten([
	"nccl-p2p-disable",
	["iommu-pt" | not amd.only_radeon; not pci.all_untranslated(transfers.gpus(group))],
	"update-bios", "upgrade-driver",
])

# other_way: where one of the ways of giving memory to another process fails, the other may work. NCCL prefers cuMem.
default other_way(_, _) := ["nccl-p2p-disable"]

other_way({"cuMem"}, {"cudaIpc"}) := ["nccl-cumem-disable"]
other_way({"cudaIpc"}, {"cuMem"}) := []

# told is what texts show without the probe.
told(id, about, evidence) := {
	"id": id, "subject": "host", "about": about, "evidence": evidence, "remedies": cures,
	"params": object.union(iommu.params, {"gpus": [address | some address in facts.gpus]}),
}

cures := ["nccl-p2p-disable", "upgrade-driver"] if {
	facts.is_guest == true
} else := ["nccl-p2p-disable", "iommu-pt", "iommu-off", "disable-acs", "update-bios", "upgrade-driver"]

# Copies that benchmarks which check (simpleP2P), or tensors that were printed before and after, show to be wrong.
findings contains told("wrong", {"copies": {b.test | some b in wrong}}, [benchmarks.evidence(b, "wrong", b.wrong) | some b in wrong]) if {
	count(wrong) > 0
}

wrong := [b |
	some b in sort(benchmarks.wrong)
	b.what in {"copy", "copy-read", "bidirectional"}
	not b.p2p == false
]

findings contains told("sign", {"signs": {words | some [words, _] in shown}}, [e | some [_, e] in sort(shown)]) if count(shown) > 0

# A latency with peer access that no path has: the kernel of p2pBandwidthLatencyTest waits for a word that does not
# arrive until a limit of tens of milliseconds ends the wait.
shown contains [
	sprintf("the latency between GPUs with it is %d us, although any path takes less than 100", [round(p.microseconds)]),
	benchmarks.evidence(b, "points", p.microseconds),
] if {
	some b in input.benchmarks
	[b.what, b.p2p] == ["latency", true]
	some p in b.points
	p.microseconds > thresholds.late_us
}

# A table that stops where peer access comes on. Where the driver refused a mapping, that is why.
shown contains [sprintf("%s does not finish", [b.tool]), benchmarks.evidence(b, "complete", false)] if {
	some b in input.benchmarks
	b.tool in {"p2pBandwidthLatencyTest", "simpleP2P"}
	b.complete == false
	count(logs.mapping_refused) == 0
}

not_applicable contains facts.few_offered

not_applicable contains "fewer than two GPUs" if not facts.several

not_applicable contains "the driver offers no peer access between these GPUs" if {
	{answer | some answer in peers.access} == {false}
}
