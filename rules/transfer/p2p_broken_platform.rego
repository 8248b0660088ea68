# METADATA
# title: Peer-to-peer transfers fail although the driver offers them
# description: >-
#   The driver reports peer access between GPUs, but transfers between them hang, fail, or report success and deliver
#   wrong data. Programs that rely on the driver, including NCCL, then hang or compute with garbage.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NVIDIA on peer access that is reported but does not work.
#   - ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PEER__ACCESS.html
#     description: What cuDeviceCanAccessPeer guarantees.
#   - ref: https://github.com/ggml-org/llama.cpp/blob/master/docs/multi-gpu.md
#     description: >-
#       llama.cpp uses peer access only if GGML_CUDA_P2P is set, to any value, because it corrupts outputs on some
#       boards.
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#iommu-on-linux
#     description: Peer copies through a translating IOMMU are not supported on bare metal.
# custom:
#   severity: critical
#   confidence: confirmed
#   symptom: true
#   needs: [transfers-tried]
#   remedies: [nccl-p2p-disable, iommu-pt, iommu-off, iommu-remap, disable-acs, unset-env, update-bios, upgrade-driver, reset-gpu, reboot-or-reload-driver, nccl-cumem-disable, replace-hardware, disable-custom-all-reduce]
#   explains: [transfer-failed, control-experiment/p2p-broken-platform, collective-hang/on-one-host, collective-failed/p2p, collective-slow]
#   first_of: [failing, wrong, sign, no-progress]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     failing: >-
#       Transfers over {pairs} of {tried:ordered pair} of GPUs ({gpus:few}) {became}, although the driver offers peer
#       access[ and {exported}].[ The error is {errors}.][ Up to {amount} are wrong[: {found}].][ The probe reports:
#       {reasons}.]
#     wrong: >-
#       Data that one GPU copied to another arrived wrong, although the copy reported success ({copies:few}).[ Without
#       NVLink and on bare metal, an IOMMU that translates, or ACS that redirects, on the path is {likely}.]
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
#         because of a translating IOMMU, ACS or a driver that offers access which does not work (525 to 535 did so for
#         GeForce cards, modified drivers do), or a rank was late; NCCL_P2P_DISABLE=1 distinguishes the two
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
kind(ts) := {"worst": became(ts)[0][0], "paths": paths, "exported": paths == {"between processes"}} if {
	paths := {path[t.test] | some t in ts}
}

# path is the way within a GPU that a test takes, or memory that another process exported.
path := {
	"copy": "copy engine", "copy-read": "copy engine", "bidirectional": "copy engine", "all-at-once": "copy engine",
	"sm-store": "SM", "sm-load": "SM", "handshake": "SM", "atomics": "SM", "latency": "SM",
	"between-processes": "between processes",
}

# became are the outcomes of transfers, the worst first, each in words with its tests.
became(ts) := [[outcome, sprintf("%s (%s)", [words, concat(", ", sort(tests))])] |
	some [outcome, words] in [["hang", "hang"], ["corrupt", "report success and deliver wrong data"], ["error", "fail"]]
	alike := {t | some t in ts; t.outcome == outcome}
	tests := {concat(" by ", [t[field] | some field in ["test", "way"]; t[field] != ""]) | some t in alike}
	count(tests) > 0
]

# arrived is what the probe found where the data should be (Found in checks/probe).
arrived := {
	"poison": "nothing arrived", "zeros": "zeros arrived", "foreign": "the data of another transfer arrived",
	"other": "other bytes arrived", "source": "the source was changed", "overrun": "bytes beside the destination were changed",
}

findings contains {
	"id": "failing",
	"severity": {true: "high", false: "critical"}[k.exported],
	"subject": transfers.subject(group),
	"affects": transfers.gpus(group),
	"about": {
		"pairs": count(group), "tried": count(transfers.tried), "gpus": transfers.gpus(group),
		"became": concat("; others ", [words | some [_, words] in became(ts)]),
		"exported": ["they work within one process" | k.exported],
		"errors": errors,
		"amount": [facts.bytes(max(wrong)) | wrong := {t.bad_bytes | some t in ts; t.bad_bytes > 0}; count(wrong) > 0],
		"found": {arrived[t.found] | some t in ts},
		"reasons": concat("; ", sort({t.reason | some t in ts; t.reason != ""} - errors)),
	},
	"evidence": array.concat(
		[{"fact": sprintf("transfers.peers[%s].access", [facts.pair_name(d[0], d[1])]), "value": true, "source": "cuDeviceCanAccessPeer"} |
			some d in sort(object.keys(group))
			peers.access[d] == true
		],
		transfers.evidence(group, {"test", "way", "outcome", "reason", "found", "bad_bytes", "first_bad", "error_name", "repeats"}),
	),
	"accounts_for": transfers.accounted(ts | slow),
	"remedies": remedies(k, group),
} if {
	some k in {kind(ts) | some ts in failures}
	group := {direction: ts | some direction, ts in failures; kind(ts) == k}
	ts := transfers.all(group)
	errors := {t.error_name | some t in ts; t.error_name != ""}
	slow := {t | some pair in peers.sluggish; some t in pair; group[[t.source, t.destination]]}
}

# Memory that is at fault stays so without peer-to-peer. Over NVLink neither firmware nor IOMMU has a part in it, and in
# a virtual machine both are the host's. Pass-through cures only what it is not known to be in force for.
remedies(k, group) := array.concat(other_way(group), ["upgrade-driver"]) if {
	k.exported
} else := ["reset-gpu", "reboot-or-reload-driver", "replace-hardware"] if {
	some t in transfers.all(group)
	t.error_code in driver_errors.in_gpu
} else := ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "upgrade-driver"] if {
	peers.under_nvlink(object.keys(group))
} else := ["nccl-p2p-disable", "upgrade-driver"] if {
	facts.is_guest == true
} else := array.flatten(["nccl-p2p-disable", pass_through(group), "update-bios", "upgrade-driver"])

# other_way: of the ways of giving memory to another process, one fails over each of these pairs, and the other is
# right. NCCL uses cuMem by default, and can do with the older way where that works.
other_way(group) := {"cuMem": ["nccl-cumem-disable"], "cudaIpc": []}[way] if {
	some way in {"cuMem", "cudaIpc"}
	{t.way | some t in transfers.all(group)} == {way}
	every d in object.keys(group) {
		some t in peers.transfers_of[peers.key(d[0], d[1])]
		t.way == {"cuMem": "cudaIpc", "cudaIpc": "cuMem"}[way]
		t.outcome in {"ok", "slow"}
	}
} else := ["nccl-p2p-disable"]

# AMD recommends remapping for Radeon GPUs.
pass_through(group) := ["iommu-pt"] if {
	not amd.only_radeon
	not pci.all_untranslated(transfers.gpus(group))
} else := ["iommu-remap"] if {
	amd.only_radeon
	input.iommu.mode in {"passthrough", "off"}
} else := []

# What texts show without the probe (params of both objects are joined).
findings contains object.union({"subject": "host", "params": object.union(iommu.params, {"gpus": gpus})}, s) if {
	some s in signs
	gpus := [address | some address in facts.gpus]
}

cures := ["nccl-p2p-disable", "upgrade-driver"] if {
	facts.is_guest == true
} else := ["nccl-p2p-disable", "disable-acs", "iommu-remap", "update-bios", "upgrade-driver"] if {
	amd.only_radeon
} else := ["nccl-p2p-disable", "iommu-pt", "iommu-off", "disable-acs", "update-bios", "upgrade-driver"]

# Copies that were found wrong: by benchmarks that check (simpleP2P), of tensors that were printed before and after, and
# by NCCL's own check.
signs contains {
	"id": "wrong",
	"about": {
		"copies": ({bench_words(b) | some b in wrong} | {sprintf("GPU %s to %s over %s", [m.fields.from, m.fields.to, m.fields.path]) | some m in mismatches}),
		"likely": ["likely" | over_nvlink == false],
	},
	"evidence": [benchmarks.evidence(b, "wrong", b.wrong) | some b in sort(wrong)],
	"messages": mismatches,
	"remedies": {true: ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "replace-hardware"], false: cures}[over_nvlink],
} if count(wrong) + count(mismatches) > 0

wrong contains b if {
	some what in ["copy", "copy-read", "bidirectional"]
	some b in benchmarks.of[what]
	b.wrong > 0
	not b.p2p == false
}

bench_words(b) := sprintf("%s, %s to %s", [b.test, b.points[0].a, b.points[0].b]) if {
	b.points[0].a != ""
} else := b.tool

mismatches := logs.messages({"nccl-diag-p2p-mismatch"})

over_nvlink := (count(wrong) + count({m.fields.path | some m in mismatches} - {"NVL", "NVB", "XGMI", "C2C"})) == 0

signs contains {
	"id": "sign",
	"about": {"signs": {words | some [words, _] in shown}},
	"evidence": [e | some [_, e] in sort(shown)],
	"remedies": cures,
} if count(shown) > 0

# A latency with peer access that no path has: the kernel of p2pBandwidthLatencyTest waits for a word that does not
# arrive until a limit of tens of milliseconds ends the wait.
shown contains [
	sprintf("the latency between GPUs with it is %d us, although any path takes less than 100", [round(p.microseconds)]),
	benchmarks.evidence(b, "points", p.microseconds),
] if {
	some b in benchmarks.of.latency
	b.p2p == true
	some p in b.points
	p.microseconds > thresholds.late_us
}

# Two runs of one benchmark: the one does not end, and the other, with peer access disabled, does. That is the check that
# NVIDIA recommends first. If runs are distinguished, the rule control-experiment judges them.
shown contains ["a collective hangs with it and works without it (NCCL_P2P_DISABLE=1)", object.union(benchmarks.evidence(b, "test", b.test), {"fact": "benchmarks"})] if {
	count(object.get(input, "runs", [])) == 0
	some b in benchmarks.of.collective
	b.complete == false
	count(benchmarks.points(b)) == 0
	b.ranks > 1
	count(moved) > 0
	some v in input.env.variables
	[v.name, v.value] == ["NCCL_P2P_DISABLE", "1"]
}

# A table that stops where peer access comes on. Where the driver refused a mapping, that is why.
shown contains [sprintf("%s does not finish", [b.tool]), benchmarks.evidence(b, "complete", false)] if {
	some b in input.benchmarks
	b.tool in {"p2pBandwidthLatencyTest", "simpleP2P"}
	b.complete == false
	count(logs.mapping_refused) == 0
}

moved contains b if {
	some b in benchmarks.of.collective
	count(benchmarks.points(b)) > 0
}

# A job that does not get past its first collective, on one machine between cards that PCIe joins, with nothing else known
# against it. A watchdog's timeout names no cause: a slow rank alone looks the same where nothing shows the GPUs busy
# (vllm issues 5484 and 14025, lightning issue 19425, SkyRL pull 325). A log that ends early may have been cut by whoever
# sent it: without a complaint it is worth knowing and no more.
signs contains {
	"id": "no-progress",
	"about": {"signs": {words | some [words, _] in unmoved}},
	"messages": {m | some [_, m] in unmoved; m.id},
	"evidence": sort({e | some [_, e] in unmoved; e.fact}),
	"severity": {true: "high", false: "low"}[count(logs.complaints) > 0],
	"confidence": {true: "likely", false: "possible"}[all_busy],
	"remedies": array.concat(cures, ["disable-custom-all-reduce" | logs.said("vllm-workers-stuck")]),
} if {
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
	startswith(t.kind, "p2p") # between processes or within one
}

# Drivers 525 to 535 offered peer access between Ada cards that does not work (NVIDIA/nccl-tests issue 117), and modified
# drivers offer it on platforms that lose data.
unmoved contains ["NCCL's log ends after its communicator was created", {"fact": "logs.communicators", "value": c.ranks, "source": logs.at(c)}] if {
	some c in input.logs.communicators
	c.library == "nccl"
	models := [gpu_models.model[g.name] | some g in input.gpus.devices]
	count([m | some m in models; m.geforce; m.architecture in {"ada", "blackwell"}]) > 1
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

# excluded is true where a log states a cause, collectives ran (a table with values), a transport shows that peer access
# is not used, or a job fails just as well without it.
excluded if "cause" in {m.role | some m in logs.complaints}
excluded if count(moved) > 0
excluded if "p2p-broken-platform" in trials.cleared
excluded if count({t.kind | some t in input.logs.transports} & {"shm", "net", "collnet"}) > 0

# Variables that make a program use peer access which it would otherwise not use, or check first: a fault of its own,
# whatever other signs there are, except where data was seen to arrive wrong. Over NVLink they are right.
signs contains {
	"grade": "forced",
	"subject": name,
	"about": {"value": sprintf("%q", [v.value]), "here": ["This happens here." | count(garbage) > 0]},
	"severity": {true: "critical", false: "low"}[count(garbage) > 0],
	"confidence": {true: "likely", false: "possible"}[count(garbage) > 0],
	"evidence": [surroundings.variable_evidence(v)],
	"messages": garbage,
	"params": {"variable": name},
	# RCCL has its own switch, in addition to the program's.
	"remedies": array.flatten(["unset-env", ["nccl-p2p-disable" | count(radeons) > 1], "iommu-pt"]),
} if {
	some name, off in {"GGML_CUDA_P2P": set(), "VLLM_SKIP_P2P_CHECK": no, "SGLANG_SKIP_P2P_CHECK": no}
	v := facts.variable[name]
	not lower(v.value) in off
	only_pcie
	count(wrong) + count(failures) == 0
}

# garbage is what a model writes when its weights or activations do.
garbage := logs.messages({"model-output-degenerate"})

# no turns them off, but for that of llama.cpp, which checks only that its own variable is set, not the value.
no := {"0", "", "false"}

only_pcie if peers.over_pcie

# Radeon cards have no link but PCIe, except a few with a bridge (Radeon Pro VII, W6800X Duo). Where llama.cpp lists
# several, peer access goes over it.
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
