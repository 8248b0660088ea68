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
#   first_of: [failing, wrong, sign, guess]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     failing: "{what} {became}, although the driver offers peer access.[ {remarks}]"
#     exported:
#       severity: high
#       text: >-
#         {what} {became} if the memory belongs to another process, but work within one process.[ The driver or the
#         kernel reported: {reasons}.]
#     wrong: >-
#       Data that one GPU copied to another arrived wrong, although the copy reported success ({copies:few}).[ {suspects}]
#     late:
#       confidence: likely
#       text: >-
#         With peer access, the latency between GPUs is up to {us} us, although any path takes less than 100: writes of
#         one GPU do not reach the other, and the test waits until it times out. On bare metal, this indicates an IOMMU
#         that translates, or ACS that redirects, on the path.
#     compared:
#       confidence: likely
#       text: >-
#         A collective hangs with peer access and works without it (NCCL_P2P_DISABLE=1): the driver offers peer access
#         that does not work on this platform. On bare metal, the first suspects are an IOMMU that translates and ACS
#         that redirects.
#     broken-off:
#       severity: high
#       confidence: possible
#       text: "{tools:comma} does not finish: copies with peer access hang or fail."
#     stalled:
#       severity: medium
#       confidence: possible
#       remedies: [nccl-p2p-disable, disable-acs, iommu-pt, iommu-off, update-bios, upgrade-driver]
#       text: >-
#         A collective over peer-to-peer transfers that cross PCIe started and has not moved any data. Unless the text
#         was cut off: on bare metal, ACS that redirects and an IOMMU that translates stop such transfers; with
#         NCCL_P2P_DISABLE=1 it then runs
#     forced: >-
#       {subject} is set (to {value}), which makes the program use peer access between the GPUs without a check, and no
#       NVLink connects them: peer copies over PCIe are lost on machines whose IOMMU or ACS blocks them, and the model
#       then produces garbage.[ {here}]
#     ended-early:
#       severity: low
#       confidence: possible
#       remedies: [nccl-p2p-disable, upgrade-driver, iommu-pt]
#       text: >-
#         NCCL's log ends after its communicator was created, between GeForce cards without NVLink: if the driver offers
#         them peer access that does not work (525 to 535 did so for Ada cards, modified drivers do), the first
#         collective hangs.
#     first-collective:
#       severity: high
#       confidence: possible
#       text: >-
#         The first collective of the job never ended ({at}), on one machine whose GPUs communicate over PCIe[,
#         {tried}]. Either peer-to-peer transfers are lost on the path, because of a translating IOMMU, ACS or a driver
#         that offers access which does not work, or a rank was late; NCCL_P2P_DISABLE=1 distinguishes the two
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

findings contains {
	"id": "failing",
	"grade": {true: "exported", false: "failing"}[k.paths == exported],
	"subject": transfers.subject(group),
	"affects": transfers.gpus(group),
	"about": {
		"what": transfers.what(group),
		"became": transfers.became(ts),
		"remarks": concat(" ", remarks(group)),
		# The name of an error is in what became of them.
		"reasons": concat("; ", sort(transfers.reasons(ts) - {t.error_name | some t in ts})),
	},
	"evidence": array.concat(
		[{"fact": sprintf("transfers.peers[%s].access", [facts.pair_name(d[0], d[1])]), "value": true, "source": "cuDeviceCanAccessPeer"} |
			some d in sort(object.keys(group))
			peers.access[d] == true
		],
		transfers.evidence(group, {"test", "way", "outcome", "reason", "found", "bad_bytes", "first_bad", "error_name", "repeats"}),
	),
	"accounts_for": transfers.accounted(ts | slow_too(group)),
	"remedies": remedies(k, group),
} if {
	some k in {kind(ts) | some ts in failures}
	group := {direction: ts | some direction, ts in failures; kind(ts) == k}
	ts := transfers.all(group)
}

# What texts show without the probe (params of both objects are joined).
findings contains object.union({"subject": "host", "params": iommu.params}, s) if some s in signs

# Benchmarks that check (simpleP2P), tensors that were printed before and after, and NCCL's own check.
signs contains {
	"id": "wrong",
	"about": {"copies": {bench_words(b) | some b in wrong}, "suspects": platform_words},
	"evidence": [benchmarks.evidence(b, "wrong", b.wrong) | some b in sort(wrong)],
	"remedies": cures,
} if count(wrong) > 0

signs contains {
	"id": "wrong",
	"about": {
		"copies": {sprintf("GPU %s to %s over %s: %s", [m.fields.from, m.fields.to, m.fields.path, m.fields.what]) | some m in ms},
		"suspects": {true: "", false: platform_words}[over_nvlink],
	},
	"messages": ms,
	"params": {"gpus": all_gpus},
	"remedies": {true: ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "replace-hardware"], false: cures}[over_nvlink],
} if some over_nvlink, ms in mismatches

platform_words := "On bare metal, this indicates an IOMMU that translates, or ACS that redirects, on the path."

mismatches[m.fields.path in {"NVL", "NVB", "XGMI", "C2C"}] contains m if some m in logs.by_id["nccl-diag-p2p-mismatch"]

all_gpus := [address | some address in facts.gpus]

signs contains {
	"id": "sign",
	"grade": "late",
	"about": {"us": round(max(union({us | some us in late})))},
	"evidence": [benchmarks.evidence(b, "points", max(us)) | some b, us in late],
	"remedies": cures,
} if count(late) > 0

signs contains {
	"id": "sign",
	"grade": "compared",
	"evidence": [object.union(benchmarks.evidence(b, "test", b.test), {"fact": "benchmarks"}) | some b in sort(compared)],
	"remedies": cures,
} if count(compared) > 0

signs contains {
	"id": "sign",
	"grade": "broken-off",
	"about": {"tools": {b.tool | some b in broken_off}},
	"evidence": [benchmarks.evidence(b, "complete", false) | some b in sort(broken_off)],
	"remedies": cures,
} if count(broken_off) > 0

# A collective that does not begin to move over peer-to-peer transfers which cross PCIe, and nothing else is known
# against it: the transfers do not arrive, which on bare metal is the work of ACS or of an IOMMU (NCCL user guide,
# troubleshooting). A text that was cut looks the same.
signs contains {"id": "sign", "grade": "stalled", "evidence": sort(logs.stalled), "params": {"gpus": all_gpus}} if {
	count(logs.stalled) > 0
	count(logs.complaints) == 0
	some t in input.logs.transports
	startswith(t.kind, "p2p") # between processes or within one
	on_pcie
	not ruled_out
}

# ruled_out is true where the job fails just as well without peer access.
ruled_out if "p2p-broken-platform" in trials.cleared

# The setting is a fault of its own, whatever other signs there are, except where data was seen to arrive wrong. garbage
# is what a model writes when its weights or activations do.
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
	some name, v in forced
	count(wrong) + count(failures) == 0
}

garbage := logs.messages({"model-output-degenerate"})

# A log that ends early may have been cut by whoever sent it: without a complaint it is worth knowing and no more.
signs contains {
	"id": "guess",
	"grade": "ended-early",
	"evidence": [{"fact": "logs.communicators", "value": c.ranks, "source": logs.at(c)} | some c in sort(ended_early)],
	"severity": {true: "high", false: "low"}[count(logs.complaints) > 0],
} if count(ended_early) > 0

# A watchdog's timeout names no cause. On one machine, between cards that PCIe joins, a first collective that all ranks
# came to and none leaves is peer access that does not work; a slow rank alone looks the same where nothing shows the
# GPUs busy (vllm issues 5484 and 14025, lightning issue 19425, SkyRL pull 325).
signs contains {
	"id": "guess",
	"grade": "first-collective",
	"about": {"at": logs.at(logs.first(unmoved)), "tried": tried},
	"messages": unmoved,
	"params": {"gpus": all_gpus},
	"confidence": {true: "possible", false: "likely"}[tried == ""],
	"remedies": array.flatten(["nccl-p2p-disable", ["disable-custom-all-reduce" | logs.said("vllm-workers-stuck")], platform_cures]),
} if {
	count(unmoved) > 0
	on_pcie
	not kept_off
	not excluded
}

tried := "and works with peer access disabled (NCCL_P2P_DISABLE=1)" if {
	served_then
} else := "and all of them are permanently busy" if {
	spinning
} else := ""

not_applicable contains facts.few_offered

not_applicable contains "fewer than two GPUs" if not facts.several

not_applicable contains "the driver offers no peer access between these GPUs" if {
	facts.several
	count(peers.access) > 0
	every answer in peers.access {
		answer == false
	}
}

# forced are variables that make a program use peer access which it would otherwise not use, or check first. llama.cpp
# checks only that its own variable is set, not the value. Over NVLink that is right.
forced[name] := v if {
	some name in {"GGML_CUDA_P2P", "VLLM_SKIP_P2P_CHECK", "SGLANG_SKIP_P2P_CHECK"}
	v := facts.variable[name]
	not left_off(name, v.value)
	only_pcie
}

left_off(name, value) if {
	name != "GGML_CUDA_P2P"
	lower(value) in {"0", "", "false"}
}

only_pcie if peers.over_pcie

# Radeon cards have no link but PCIe, except a few with a bridge (Radeon Pro VII, W6800X Duo). Where llama.cpp lists
# several, peer access goes over it.
only_pcie if count(radeons) > 1

radeons := {m.fields.index |
	some m in logs.by_id["ggml-rocm-device"]
	regex.match(`Radeon.*(?:RX|R9700|W[67][0-9]{3}\b)`, m.fields.name)
}

# wrong are the copies between GPUs with values that were found wrong: a tensor that was printed before and after, a
# benchmark that checks (simpleP2P).
wrong contains b if {
	some what in ["copy", "copy-read", "bidirectional"]
	some b in benchmarks.of[what]
	b.wrong > 0
	not b.p2p == false
}

bench_words(b) := sprintf("%s, %s to %s", [b.test, b.points[0].a, b.points[0].b]) if {
	b.points[0].a != ""
} else := b.tool

# late are the latencies of p2pBandwidthLatencyTest with peer access that no path has: its kernel waits for a word that
# does not arrive until a limit of tens of milliseconds ends the wait.
late[b] contains p.microseconds if {
	some b in benchmarks.of.latency
	b.p2p == true
	some p in b.points
	p.microseconds > thresholds.late_us
}

# broken_off are the benchmarks of peer copies that do not end: their table stops where peer access comes on. Where the
# driver refused a mapping, that is why.
broken_off contains b if {
	some b in input.benchmarks
	b.tool in {"p2pBandwidthLatencyTest", "simpleP2P"}
	b.complete == false
	count(logs.mapping_refused) == 0
}

# only_fails is true where one way of giving memory to another process fails over each of these pairs, and the other is
# right.
only_fails(way, other, group) if {
	{t.way | some t in transfers.all(group)} == {way}
	every d in object.keys(group) {
		some t in peers.transfers_of[peers.key(d[0], d[1])]
		t.way == other
		t.outcome in {"ok", "slow"}
	}
}

# Memory that is at fault stays so without peer-to-peer. Over NVLink neither firmware nor IOMMU has a part in it, and in
# a virtual machine both are the host's. Pass-through cures only what it is not known to be in force for.
remedies(k, group) := process_remedies(group) if {
	k.paths == exported
} else := ["reset-gpu", "reboot-or-reload-driver", "replace-hardware"] if {
	some t in transfers.all(group)
	t.error_code in driver_errors.in_gpu
} else := ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "upgrade-driver"] if {
	peers.under_nvlink(object.keys(group))
} else := ["nccl-p2p-disable", "upgrade-driver"] if {
	facts.is_guest == true
} else := array.flatten(["nccl-p2p-disable", pass_through(group), "update-bios", "upgrade-driver"]) if {
	k.worst != "error"
} else := array.flatten(["nccl-p2p-disable", "upgrade-driver", "update-bios", pass_through(group)])

process_remedies(group) := ["nccl-cumem-disable", "upgrade-driver"] if {
	only_fails("cuMem", "cudaIpc", group)
} else := ["upgrade-driver"] if {
	only_fails("cudaIpc", "cuMem", group)
} else := ["nccl-p2p-disable", "upgrade-driver"]

# AMD recommends remapping for Radeon GPUs.
pass_through(group) := ["iommu-pt"] if {
	not amd.only_radeon
	not pci.all_untranslated(transfers.gpus(group))
} else := ["iommu-remap"] if {
	amd.only_radeon
	input.iommu.mode in {"passthrough", "off"}
} else := []

# Peer access that the driver offers and that does not work is the platform's fault. cures are what lets copies arrive
# there: host memory for NCCL's, and for all others the removal of what blocks them on the platform.
cures := array.concat(["nccl-p2p-disable"], platform_cures)

platform_cures := ["upgrade-driver"] if {
	facts.is_guest == true
} else := ["disable-acs", "iommu-remap", "update-bios", "upgrade-driver"] if {
	amd.only_radeon
} else := ["iommu-pt", "iommu-off", "disable-acs", "update-bios", "upgrade-driver"]

# compared are two runs of one benchmark: the one does not end, and the other, with peer access disabled, does. That is
# the check that NVIDIA recommends first. If runs are distinguished, the rule control-experiment judges them.
compared contains b if {
	count(object.get(input, "runs", [])) == 0
	some b in benchmarks.of.collective
	b.complete == false
	count(benchmarks.points(b)) == 0
	b.ranks > 1
	count(moved) > 0
	count(switched_off) > 0
}

# on_pcie is true on one machine of NVIDIA GPUs where a matrix shows PCIe between them, or the model is a card, and
# nothing shows an NVLink.
on_pcie if {
	over_pcie
	not networks.multi_node
	not amd.present
	not nvlink_shown
}

nvlink_shown if count(peers.bridged) + count({g | some g in input.gpus.devices; count(g.nvlinks) > 0}) > 0

over_pcie if peers.over_pcie

over_pcie if {
	some m in gpu_models.model
	m.form == "card"
	not m.nvlink == "pair"
}

# ended_early are the communicators between GeForce cards whose log ends with them, as when a collective never ends.
# Drivers 525 to 535 offered peer access between Ada cards that does not work (NVIDIA/nccl-tests issue 117), and
# modified drivers offer it on platforms that lose data.
ended_early contains c if {
	some c in input.logs.communicators
	c.library == "nccl"
	count(newer_geforce) > 1
	not excluded
	count(switched_off) == 0
}

newer_geforce := {g |
	some g in input.gpus.devices
	model := gpu_models.model[g.name]
	model.geforce
	model.architecture in {"ada", "blackwell"}
}

# excluded is true where a log states a cause, collectives ran (a table with values), a transport shows that peer access
# is not used, or a job fails just as well without it.
excluded if {
	some m in logs.complaints
	m.role == "cause"
}

excluded if count(moved) > 0
excluded if ruled_out

excluded if {
	some t in input.logs.transports
	t.kind in {"shm", "net", "collnet"}
}

moved contains b if {
	some b in benchmarks.of.collective
	count(benchmarks.points(b)) > 0
}

switched_off := {v |
	some v in input.env.variables
	v.name == "NCCL_P2P_DISABLE"
	v.value == "1"
}

# unmoved are the signs that a job's very first collective never ended: the first number of a process group at the
# watchdog, none completed when it gave up, or vLLM's workers that do not answer while their GPUs compute without end.
unmoved contains m if {
	some [id, field, value] in [["torch-watchdog-timeout", "seq", "1"], ["torch-work-status", "completed", "-1"]]
	some m in logs.by_id[id]
	m.fields[field] == value
}

unmoved contains m if {
	some m in logs.by_id["vllm-workers-stuck"]
	spinning
}

# spinning is true where all GPUs are shown busy: the kernels of a collective wait in a loop, so that its ranks have
# come to it, and none is late or still loads.
spinning if {
	count(input.gpus.devices) > 1
	every g in input.gpus.devices {
		g.utilization_percent >= thresholds.spinning_percent
	}
}

# without_peer_access are command lines that disable peer access, with no complaint after them in their
# text: a user tested the difference.
without_peer_access contains l if {
	some l in input.launches
	l.variables.NCCL_P2P_DISABLE == "1"
	count({m | some m in logs.complaints; m.source == l.source; m.line > l.line}) == 0
}

# served_then is true where such a trial came as far as to answer.
served_then if {
	some l in without_peer_access
	some m in logs.by_id["server-ready"]
	m.source == l.source
	m.line > l.line
}

# kept_off is true if peer access was also off in the run that failed.
kept_off if {
	some v in input.env.variables
	v.name in {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"}
	v.value in {"1", "LOC"}
	count({l | some l in without_peer_access; l.source == v.source; l.line == v.line}) == 0
}

# failures are the failed transfers of each ordered pair. If data is also lost through host memory, the GPU is at fault,
# not the path between them.
failures[[t.source, t.destination]] contains t if {
	some ts in peers.trouble
	some t in ts
	not staging.failed(t.source, t.destination)
}

worst(ts) := [outcome | some outcome in ["hang", "corrupt", "error"]; outcome in {t.outcome | some t in ts}][0]

# kind groups ordered pairs that fail alike, so that a broken platform with eight GPUs gives one finding, not 56.
kind(ts) := {"worst": worst(ts), "paths": transfers.paths(ts)}

# exported: only between processes, the driver's export of memory is at fault, and a single process works. If one of
# the two mechanisms works, programs that use it work; NCCL uses cuMem by default.
exported := {"between processes"}

# slow_too are the transfers of the same pairs that arrived slowly.
slow_too(group) := {t |
	some d, _ in group
	some t in peers.sluggish[peers.key(d[0], d[1])]
	[t.source, t.destination] == d
}

# remarks point to the part that is at fault.
remarks(group) := sort({text |
	ts := transfers.all(group)
	some [text, true] in [
		["It fails in one direction only.", one_way(group, ts)],
		["The copy engines work: only loads and stores of the SMs fail, which NCCL's kernels use.", stores_only(group, ts)],
		["Loads and stores of the SMs work: only the copy engines fail.", copies_only(group, ts)],
		# The driver offers peer access and then fails to switch it on, so that no transfer was begun.
		["It cannot even be enabled.", count(enabling_calls(ts)) > 0],
		["It is intermittent: on a retry, the same transfer arrived correctly.", count({t | some t in ts; t.outcome == "corrupt"; t.repeats < t.attempts}) > 0],
		["Each pair works separately: it fails only while all GPUs write at once.", transfers.tests(ts) == {"all-at-once"}],
		["Copies, loads and stores work: only atomic operations on the peer's memory are lost.", transfers.tests(ts) == {"atomics"}],
		["Every copy is correct, but two kernels that wait for each other do not see each other's stores.", transfers.tests(ts) == {"handshake"}],
		["The same data arrived correctly through host memory, so disabling peer-to-peer access works around it.", staged_good(group)],
	]
})

default one_way(_, _) := false

one_way(group, ts) if {
	not transfers.only_mutual(ts)
	every d in object.keys(group) {
		not failures[[d[1], d[0]]]
		some t in peers.transfers_of[peers.key(d[0], d[1])]
		t.source == d[1]
		t.outcome == "ok"
	}
}

default stores_only(_, _) := false

stores_only(group, ts) if {
	transfers.paths(ts) == {"SM"}
	count(transfers.tests(ts) & {"sm-store", "sm-load"}) > 0
	fine(group, "copy engine")
}

default copies_only(_, _) := false

copies_only(group, ts) if {
	transfers.paths(ts) == {"copy engine"}
	fine(group, "SM")
	count(enabling_calls(ts)) == 0
}

# fine is true when a test of one way through the GPU was right over each of these pairs.
fine(group, way) if {
	every d in object.keys(group) {
		some t in peers.transfers_of[peers.key(d[0], d[1])]
		t.source == d[0]
		transfers.path[t.test] == way
		t.outcome in {"ok", "slow"}
	}
}

# enabling_calls are the calls among those that failed which switch peer access on.
enabling_calls(ts) := {t.call | some t in ts} & {"cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess"}

staged_good(group) if {
	every d in object.keys(group) {
		staging.good(d[0], d[1])
	}
} else := false
