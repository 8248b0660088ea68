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
#   remedies: [nccl-p2p-disable, iommu-pt, iommu-off, disable-acs, unset-env, update-bios, upgrade-driver, reset-gpu, reboot-or-reload-driver, nccl-cumem-disable, replace-hardware, disable-custom-all-reduce]
#   explains: [size > oom, transfer-failed, control-experiment/p2p-broken-platform, collective-hang/on-one-host, collective-failed/p2p, collective-slow, failure-area]
#   first_of: [failing, wrong, sign, no-progress]
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
#     forced: >-
#       {subject} is set (to {value}), which makes the program use peer access between the GPUs without a check, and no
#       NVLink connects them: peer copies over PCIe are lost on machines whose IOMMU or ACS blocks them, and the model
#       then produces garbage.[ {here}]
#     no-progress:
#       confidence: possible
#       text: >-
#         {signs}, on one machine whose GPUs communicate over PCIe. Either peer-to-peer transfers are lost on the path,
#         because of a translating IOMMU, ACS or a driver that offers access which does not work, or a rank was late;
#         NCCL_P2P_DISABLE=1 distinguishes the two
package gpudoctor.rules.p2p_broken_platform

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.staging
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.transfers
import data.gpudoctor.lib.trials
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

# A job on one machine that does not get past its first collective, with nothing else known against it. A watchdog names no
# cause: a slow rank looks the same where nothing shows the GPUs busy (vllm issues 5484 and 14025, lightning issue 19425).
findings contains object.union(told("no-progress", {"signs": {words | some [words, _] in unmoved}}, sort({e | some [_, e] in unmoved; e.fact})), {
	"messages": {m | some [_, m] in unmoved; m.id},
	"severity": {true: "high", false: "low"}[logs.failed],
	"confidence": {true: "likely", false: "possible"}[all_busy],
	"remedies": array.concat(cures, ["disable-custom-all-reduce" | logs.said("vllm-workers-stuck")]),
}) if {
	count(unmoved) > 0
	on_pcie
	not kept_off
	not excluded
}

unmoved contains ["The first collective of the job never ended", m] if {
	some [id, field, value] in [["torch-watchdog-timeout", "seq", "1"], ["torch-work-status", "completed", "-1"]]
	some m in logs.by_id[id]
	m.fields[field] == value
}

unmoved contains ["vLLM's workers do not answer while their GPUs compute without end", m] if {
	all_busy
	some m in logs.by_id["vllm-workers-stuck"]
}

unmoved contains ["A collective over peer-to-peer transfers started and has not moved any data", e] if {
	some e in logs.stalled
	some t in input.logs.transports
	startswith(t.kind, "p2p")
}

# The kernels of a collective wait in a loop: where all GPUs are busy, its ranks have come to it, and none is late.
default all_busy := false

all_busy if {
	count(input.gpus.devices) > 1
	every g in input.gpus.devices {
		g.utilization_percent >= thresholds.spinning_percent
	}
}

# on_pcie is true on one machine of NVIDIA GPUs of which PCIe is shown, or that are cards, and no NVLink.
on_pcie if {
	over_pcie
	not networks.multi_node
	not amd.present
	count(peers.bridged) + count({g | some g in input.gpus.devices; count(g.nvlinks) > 0}) == 0
}

over_pcie if peers.over_pcie

over_pcie if {
	some m in gpu_models.model
	m.form == "card"
	not m.nvlink == "pair"
}

# kept_off is true if peer access was also off in the run that failed. A command line that disables it is a trial.
kept_off if {
	some v in input.env.variables
	v.name in {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"}
	v.value in {"1", "LOC"}
	count({l | some l in input.launches; l.variables.NCCL_P2P_DISABLE == "1"; l.source == v.source; l.line == v.line}) == 0
}

# excluded is true where a log states a cause, collectives ran, a transport shows that peer access is not used, or a job
# fails just as well without it.
excluded if "cause" in {m.role | some m in logs.complaints}
excluded if count([b | some b in input.benchmarks; b.what == "collective"; count(b.points) > 0]) > 0
excluded if "p2p-broken-platform" in trials.cleared
excluded if count({t.kind | some t in input.logs.transports} & {"shm", "net", "collnet"}) > 0

# Variables that make a program use peer access which it would otherwise not use, or check first. Over NVLink they are
# right. llama.cpp checks only that its own is set, not the value.
findings contains {
	"grade": "forced",
	"subject": name,
	"about": {"value": sprintf("%q", [v.value]), "here": ["This happens here." | count(garbage) > 0]},
	"severity": {true: "critical", false: "low"}[count(garbage) > 0],
	"confidence": {true: "likely", false: "possible"}[count(garbage) > 0],
	"evidence": [surroundings.variable_evidence(v)],
	"messages": garbage,
	"params": {"variable": name},
	"remedies": array.flatten(["unset-env", ["nccl-p2p-disable" | count(radeons) > 1], "iommu-pt"]),
} if {
	some name, off in {"GGML_CUDA_P2P": set(), "VLLM_SKIP_P2P_CHECK": {"0", "", "false"}, "SGLANG_SKIP_P2P_CHECK": {"0", "", "false"}}
	v := facts.variable[name]
	not lower(v.value) in off
	only_pcie
	count(wrong) + count(failures) == 0
}

garbage := logs.messages({"model-output-degenerate"})

# Radeon cards have no link but PCIe, except a few with a bridge (Radeon Pro VII, W6800X Duo).
only_pcie if peers.over_pcie
only_pcie if count(radeons) > 1

radeons := {m.fields.index |
	some m in logs.by_id["ggml-rocm-device"]
	regex.match(`Radeon.*(?:RX|R9700|W[67][0-9]{3}\b)`, m.fields.name)
}

not_applicable contains facts.few_offered

not_applicable contains "fewer than two GPUs" if not facts.several

not_applicable contains "the driver offers no peer access between these GPUs" if {
	{answer | some answer in peers.access} == {false}
}
