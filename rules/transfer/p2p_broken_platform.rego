# METADATA
# title: Peer-to-peer transfers fail although the driver offers them
# description: >-
#   The driver reports peer access between GPUs, but transfers between them
#   hang, fail, or report success and deliver wrong data. Programs that rely on
#   the driver, including NCCL, then hang or compute with garbage.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NVIDIA on peer access that is reported but does not work.
#   - ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PEER__ACCESS.html
#     description: What cuDeviceCanAccessPeer guarantees.
#   - ref: https://github.com/ggml-org/llama.cpp/blob/master/docs/multi-gpu.md
#     description: >-
#       llama.cpp uses peer access only if GGML_CUDA_P2P is set, to any value,
#       because it corrupts outputs on some boards.
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#iommu-on-linux
#     description: Peer copies through a translating IOMMU are not supported on bare metal.
# custom:
#   severity: critical
#   confidence: confirmed
#   symptom: true
#   needs:
#     - transfers-tried
#   remedies: [nccl-p2p-disable, iommu-pt, iommu-off, iommu-remap, disable-acs, unset-env, update-bios, upgrade-driver, reset-gpu, reboot-or-reload-driver, nccl-cumem-disable, replace-hardware, disable-custom-all-reduce]
#   explains: [transfer-failed, control-experiment/p2p-broken-platform, collective-hang/on-one-host, collective-failed/p2p, collective-slow]
#   first_of: [failing, wrong, sign, guess]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.p2p_broken_platform

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.broken_transfers
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.forced_peer_access
import data.gpudoctor.lib.iommu
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peer_copies
import data.gpudoctor.lib.peer_cures
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.stalled_collectives
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.transfers
import data.gpudoctor.lib.trials

findings contains {
	"id": "failing",
	"subject": transfers.subject(group),
	"affects": transfers.gpus(group),
	"message": message(k.paths, group),
	"evidence": array.concat(broken_transfers.offered(group), transfers.evidence(group, {"test", "way", "outcome", "reason", "found", "bad_bytes", "first_bad", "error_name", "repeats"})),
	"accounts_for": transfers.accounted(transfers.all(group) | broken_transfers.slow_too(group)),
	"params": {"pairs": transfers.pairs(group), "staged_good": broken_transfers.staged_good(group)},
	"severity": {true: "high", false: "critical"}[k.paths == broken_transfers.exported],
	"remedies": peer_cures.remedies(k, group),
} if {
	some k in {broken_transfers.kind(ts) | some ts in broken_transfers.failures}
	group := {direction: ts | some direction, ts in broken_transfers.failures; broken_transfers.kind(ts) == k}
}

message(paths, group) := sprintf("%s %s if the memory belongs to another process, but work within one process.%s", [
	transfers.what(group), transfers.became(ts), driver_words(ts),
]) if {
	paths == broken_transfers.exported
	ts := transfers.all(group)
} else := concat(" ", array.concat(
	[sprintf("%s %s, although the driver offers peer access.", [transfers.what(group), transfers.became(transfers.all(group))])],
	broken_transfers.remarks(group),
))

# driver_words leaves out what the name of an error has said.
driver_words(ts) := sprintf(" The driver or the kernel reported: %s.", [concat("; ", sort(left))]) if {
	left := transfers.reasons(ts) - {t.error_name | some t in ts}
	count(left) > 0
} else := ""

# What texts show without the probe (params of both objects are joined).
findings contains object.union({"subject": "host", "severity": "critical", "params": iommu.params, "remedies": peer_cures.cures}, s) if {
	some s in signs
}

mark := "On bare metal, this indicates an IOMMU that translates, or ACS that redirects, on the path."

suspects := "On bare metal, the first suspects are an IOMMU that translates and ACS that redirects."

signs contains {
	"id": "wrong",
	"message": sprintf("A copy between GPUs reports success and delivers wrong data (%s). %s", [
		concat("; ", sort({peer_copies.bench_words(b) | some b in peer_copies.wrong})), mark,
	]),
	"evidence": [benchmarks.evidence(b, "wrong", b.wrong) | some b in sort(peer_copies.wrong)],
	"confidence": "confirmed",
} if {
	count(peer_copies.wrong) > 0
}

signs contains {
	"id": "wrong",
	"message": sprintf("NCCL's own check moved data between GPUs and found different bytes there, although the driver offers peer access: %s.%s", [
		facts.list({sprintf("GPU %s to %s over %s (%s)", [m.fields.from, m.fields.to, m.fields.path, m.fields.what]) | some m in ms}),
		{true: "", false: concat(" ", ["", suspects])}[over_nvlink],
	]),
	"messages": ms,
	"params": {"gpus": all_gpus},
	"confidence": "confirmed",
	"remedies": {true: ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "replace-hardware"], false: peer_cures.cures}[over_nvlink],
} if {
	some over_nvlink, ms in peer_copies.told_wrong
}

all_gpus := [address | some address in facts.gpus]

signs contains {
	"id": "sign",
	"message": sprintf("With peer access, the latency between GPUs is up to %v us, although any path takes less than 100: writes of one GPU do not reach the other, and the test waits until it times out. %s", [
		round(max(union({us | some us in peer_copies.late}))), mark,
	]),
	"evidence": [benchmarks.evidence(b, "points", max(us)) | some b, us in peer_copies.late],
	"confidence": "likely",
} if {
	count(peer_copies.late) > 0
}

signs contains {
	"id": "sign",
	"message": sprintf("A collective hangs with peer access and works without it (NCCL_P2P_DISABLE=1): the driver offers peer access that does not work on this platform. %s", [suspects]),
	"evidence": [object.union(benchmarks.evidence(b, "test", b.test), {"fact": "benchmarks"}) |
		some b in sort(stalled_collectives.compared)
	],
	"confidence": "likely",
} if {
	count(stalled_collectives.compared) > 0
}

signs contains {
	"id": "sign",
	"message": sprintf("%s does not finish: copies with peer access hang or fail.", [concat(", ", sort({b.tool | some b in peer_copies.broken_off}))]),
	"evidence": [benchmarks.evidence(b, "complete", false) | some b in sort(peer_copies.broken_off)],
	"severity": "high",
	"confidence": "possible",
} if {
	count(peer_copies.broken_off) > 0
}

# A collective that does not begin to move over peer-to-peer transfers which cross
# PCIe, and nothing else is known against it: the transfers do not arrive, which on
# bare metal is the work of ACS or of an IOMMU (NCCL user guide, troubleshooting). A
# text that was cut looks the same.
signs contains {
	"id": "sign",
	"message": "A collective over peer-to-peer transfers that cross PCIe started and has not moved any data. Unless the text was cut off: on bare metal, ACS that redirects and an IOMMU that translates stop such transfers; with NCCL_P2P_DISABLE=1 it then runs",
	"evidence": sort(logs.stalled),
	"params": {"gpus": all_gpus},
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "iommu-off", "update-bios", "upgrade-driver"],
} if {
	count(logs.stalled) > 0
	count(logs.complaints) == 0
	some t in input.logs.transports
	startswith(t.kind, "p2p") # between processes or within one
	stalled_collectives.on_pcie
	not ruled_out
}

# ruled_out is true where the job fails just as well without peer access.
ruled_out if "p2p-broken-platform" in trials.cleared

# The setting is a fault of its own, whatever other signs there are, except where data
# was seen to arrive wrong. garbage is what a model writes when its weights or
# activations do.
signs contains object.union(
	{
		"subject": name,
		"message": sprintf("%s is set (to %q), which makes the program use peer access between the GPUs without a check, and no NVLink connects them: peer copies over PCIe are lost on machines whose IOMMU or ACS blocks them, and the model then produces garbage.%s", [
			name, v.value, {true: " This happens here.", false: ""}[count(garbage) > 0],
		]),
		"evidence": [surroundings.variable_evidence(v)],
		"messages": garbage,
		"params": {"variable": name},
		"remedies": forced_cures,
	},
	{true: {"severity": "critical", "confidence": "likely"}, false: {"severity": "low", "confidence": "possible"}}[count(garbage) > 0],
) if {
	some name, v in forced_peer_access.forced
	count(peer_copies.wrong) + count(broken_transfers.failures) == 0
}

garbage := logs.messages({"model-output-degenerate"})

# RCCL has its own switch, in addition to the program's.
default forced_cures := ["unset-env", "iommu-pt"]

forced_cures := ["unset-env", "nccl-p2p-disable", "iommu-pt"] if count(forced_peer_access.radeons) > 1

# A log that ends early may have been cut by whoever sent it: without a
# complaint it is worth knowing and no more.
signs contains {
	"id": "guess",
	"message": "NCCL's log ends after its communicator was created, between GeForce cards without NVLink: if the driver offers them peer access that does not work (525 to 535 did so for Ada cards, modified drivers do), the first collective hangs.",
	"evidence": [{"fact": "logs.communicators", "value": c.ranks, "source": logs.at(c)} |
		some c in sort(stalled_collectives.ended_early)
	],
	"severity": {true: "high", false: "low"}[count(logs.complaints) > 0],
	"confidence": "possible",
	"remedies": ["nccl-p2p-disable", "upgrade-driver", "iommu-pt"],
} if {
	count(stalled_collectives.ended_early) > 0
}

# A watchdog's timeout names no cause. On one machine, between cards that PCIe
# joins, a first collective that all ranks came to and none leaves is peer access
# that does not work; a slow rank alone looks the same where nothing shows the GPUs
# busy (vllm issues 5484 and 14025, lightning issue 19425, SkyRL pull 325).
signs contains {
	"id": "guess",
	"message": sprintf("The first collective of the job never ended (%s), on one machine whose GPUs communicate over PCIe%s. Either peer-to-peer transfers are lost on the path, because of a translating IOMMU, ACS or a driver that offers access which does not work, or a rank was late; NCCL_P2P_DISABLE=1 distinguishes the two", [
		logs.at(logs.first(stalled_collectives.unmoved)), tried_words,
	]),
	"messages": stalled_collectives.unmoved,
	"params": {"gpus": all_gpus},
	"severity": "high",
	"confidence": {true: "possible", false: "likely"}[tried_words == ""],
	"remedies": array.flatten(["nccl-p2p-disable", own_all_reduce, peer_cures.platform_cures]),
} if {
	count(stalled_collectives.unmoved) > 0
	stalled_collectives.on_pcie
	not stalled_collectives.kept_off
	not stalled_collectives.excluded
}

tried_words := ", and works with peer access disabled (NCCL_P2P_DISABLE=1)" if {
	stalled_collectives.served_then
} else := ", and all of them are permanently busy" if {
	stalled_collectives.spinning
} else := ""

own_all_reduce := [remedy | some remedy in ["disable-custom-all-reduce"]; logs.said("vllm-workers-stuck")]

missing contains {"fact": "transfers", "words": "the probe did not run, so no transfer was tried"} if {
	facts.several
	not facts.peer_transfers
}

missing contains {"fact": "transfers", "words": sprintf("the probe stopped (%s)", [input.transfers.outcome])} if {
	facts.several
	input.transfers.outcome != "ok"
	count(facts.peer_transfers) == 0
}

not_applicable contains facts.few_offered

not_applicable contains "fewer than two GPUs" if not facts.several

not_applicable contains "the driver offers no peer access between these GPUs" if {
	facts.several
	count(peers.access) > 0
	every answer in peers.access {
		answer == false
	}
}
