# Transfers through host memory. The result of the probe's control transfers between two GPUs, which go through host
# memory, and whether they are faster than peer access.
package gpudoctor.lib.staging

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peers
import data.tables.thresholds

# remedies is that way where it helps: it is slower than most slow paths.
remedies(pairs) := ["nccl-p2p-disable"] if {
	count(pairs) > 0
	every p in pairs {
		faster(p.a, p.b)
	}
} else := []

# failed is true for two GPUs between which data was also lost through host memory: then
# peer-to-peer access is not the fault.
failed(a, b) if {
	some t in input.transfers.transfers
	t.test == "host-staged"
	peers.key(t.source, t.destination) == peers.key(a, b)
	peers.failed(t)
}

# faster is true for two GPUs where the way through host memory, as it was measured between them or else between others,
# is faster than peer access, one at a time or while all GPUs write at once.
faster(a, b) if {
	some [tests, factor] in [[peers.alone_tests, thresholds.staged_faster], [{"all-at-once"}, thresholds.staged_beats_crowd]]
	rate(peers.key(a, b)) > factor * min({t.gbps | some t in peers.sluggish[peers.key(a, b)]; t.test in tests})
}

rate(key) := min(rates) if {
	rates := {t.gbps | some t in facts.staged_transfers; peers.key(t.source, t.destination) == key}
	count(rates) > 0
} else := min({t.gbps | some t in facts.staged_transfers})
