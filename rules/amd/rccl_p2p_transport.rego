# METADATA
# title: HIP copies between GPUs work, but RCCL over P2P fails
# description: >-
#   HIP reports peer access between AMD GPUs and its copies arrive, but RCCL fails or hangs until its P2P transport is
#   disabled. A HIP copy is one command to a copy engine. RCCL maps the peer's memory into each process (HIP IPC, or
#   DMA-BUF), and kernels on both GPUs store into it and wait for each other's stores. This rule has not been tested on
#   AMD hardware.
# related_resources:
#   - ref: https://github.com/ROCm/rocm-systems/blob/develop/projects/rccl/src/transport/p2p.cc
#     description: What RCCL's P2P transport maps, and when it is used
#   - ref: https://github.com/ROCm/rocm-systems/issues/11348
#     description: Four R9700 work with the P2P transport off; the host hangs with it on
#   - ref: https://github.com/ROCm/rocm-systems/pull/10554
#     description: Peer access that HIP offers in only one direction, and how RCCL handles it
# custom:
#   cause: p2p-broken-platform
#   severity: critical
#   confidence: likely
#   areas: [paths]
#   needs: [job-told]
#   remedies: [nccl-p2p-disable, upgrade-rocm, update-bios]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     transport: >-
#       RCCL's P2P transport fails here: {but}.[ HIP's {copies} between the GPUs work, and need only a copy engine: the
#       fault is in the transport, or in something it needs beyond a copy, such as the mapping of the peer's memory.]
#       NCCL_P2P_DISABLE=1 makes RCCL use host memory. On RDNA4 (gfx12), NCCL_PROTO=Simple avoids a hang of RCCL of ROCm 7.2
#       to 7.12. gpudoctor probe p2p --probe full uses the same mechanisms as RCCL, and shows which of them fails
#     lopsided:
#       severity: high
#       text: >-
#         HIP offers peer access in only one direction between some GPUs ({pairs:few}, and not back). One end of RCCL uses
#         the P2P transport and the other host memory, and they fail. The cause is where the firmware placed the MMIO
#         windows, or a small BAR on one of the two
package gpudoctor.rules.rccl_p2p_transport

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peers

# copied are what shows that HIP's copies between GPUs arrive: the probe's, and those of programs of other people.
copied contains {"fact": "transfers.transfers", "value": sprintf("copy %s: %s", [facts.pair_name(t.source, t.destination), t.outcome]), "source": "probe (HIP)"} if {
	input.transfers.api == "hip"
	some t in facts.peer_transfers
	t.test == "copy"
	t.outcome in {"ok", "slow"}
}

copied contains {"fact": sprintf("benchmarks[%s]", [b.tool]), "value": b.test, "source": logs.at(b)} if {
	amd.present
	some b in input.benchmarks
	b.what in {"copy", "copy-read", "bidirectional"}
	b.complete == true
	object.get(b, "p2p", true) == true
}

# spoiled is true if transfers between the GPUs failed, which p2p-broken-platform reports.
spoiled if count(peers.trouble) > 0
spoiled if input.benchmarks[_].wrong > 0

over_p2p contains {"fact": sprintf("logs.transports[%s]", [t.kind]), "value": t.channels, "source": logs.at(t)} if {
	of_amd
	some t in input.logs.transports
	startswith(t.kind, "p2p-")
}

of_amd if input.logs.communicators[_].library == "rccl"
of_amd if library_versions.on_amd

# broken are messages that mapping a peer's memory failed, or that RCCL's kernels or the process died of it.
broken := logs.messages({
	"hip-ipc-failed", "hip-peer-access-failed", "hip-peer-access-not-enabled", "nccl-ipc-open-failed", "nccl-ipc-handle-failed",
	"rocr-memory-fault", "rocr-gpu-hang", "nccl-cuda-invalid-argument", "nccl-cuda-illegal-access",
})

needed := {m | some m in logs.by_id["prose-p2p-off-needed"]; amd.present}

# but are the ways in which the transport fails: a sentence says that a program needs it off, or RCCL's log over P2P
# stops or ends in an error while HIP's copies work.
but contains "a program runs only with NCCL_P2P_DISABLE=1" if count(needed) > 0

but contains "RCCL fails or hangs over it" if {
	count(over_p2p) > 0
	count(copied) > 0
	fails
	not "cause" in {m.role | some m in (logs.complaints - broken)}
	not facts.env.NCCL_P2P_DISABLE == "1"
}

fails if amd.stuck
fails if count(broken) > 0

findings contains {
	"grade": "transport",
	"subject": "host",
	"about": {"but": but, "copies": {"copies" | some _ in copied}},
	"messages": {m | m := logs.first(broken | needed)},
	"evidence": array.concat(array.slice(sort(over_p2p), 0, 2), array.slice(sort(copied), 0, 2)),
	"confidence": {true: "likely", false: "possible"}[(count(copied) * count(amd.offered)) > 0],
} if {
	count(but) > 0
	not spoiled
}

asks contains "transfers.transfers" if {
	count(over_p2p) > 0
	fails
}

# lopsided are pairs for which HIP offers peer access one way and not the other (ROCm/rocm-systems pull 10554).
lopsided := {d | some d in amd.offered; [d[1], d[0]] in withheld} - withheld

withheld contains [p.a, p.b] if {
	some p in input.gpus.p2p
	p.read == "not-supported"
}

withheld contains [p.source, p.destination] if {
	input.transfers.api == "hip"
	some p in input.transfers.peers
	p.access == false
}

findings contains {
	"grade": "lopsided",
	"subject": "host",
	"about": {"pairs": {facts.pair_name(d[0], d[1]) | some d in lopsided}},
	"evidence": [{"fact": "gpus.p2p", "value": facts.pair_name(d[0], d[1]), "source": "HIP"} | some d in array.slice(sort(lopsided), 0, 4)],
} if count(lopsided) > 0

not_applicable contains "no AMD GPU" if amd.absent
