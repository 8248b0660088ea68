# Transfers through host memory. The result of the probe's control transfers between two GPUs, which go through host
# memory, and whether they are faster than peer access.
package gpudoctor.lib.staging

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peers
import data.tables.thresholds

# remedies is that way where it helps. It is slower than most slow paths, so it
# helps pairs where it was measured faster.
remedies(pairs) := ["nccl-p2p-disable"] if {
	count(pairs) > 0
	every p in pairs {
		faster(p.a, p.b)
	}
} else := []

# failed is true for two GPUs between which data was also lost through host memory: then
# peer-to-peer access is not the fault.
failed(a, b) if {
	some t in of[peers.key(a, b)]
	peers.failed(t)
}

of[peers.key(t.source, t.destination)] contains t if {
	some t in input.transfers.transfers
	t.test == "host-staged"
}

# rate is the rate that the control arm through host memory reached between two GPUs, or, where it was not tried between
# these, the least that it reached between others.
rate(a, b) := min(rates) if {
	rates := {t.gbps | some t in of[peers.key(a, b)]; t in facts.staged_transfers}
	count(rates) > 0
} else := min({t.gbps | some t in facts.staged_transfers})

# faster is true for two GPUs between which the way through host memory was measured faster than peer access.
faster(a, b) if {
	direct := {t.gbps | some t in peers.sluggish[peers.key(a, b)]; t.test in peers.alone_tests}
	rate(a, b) > thresholds.staged_faster * min(direct)
}

# beats_crowd is the same where peer access is slow only while all GPUs write at once.
beats_crowd(a, b) if {
	together := {t.gbps | some t in peers.sluggish[peers.key(a, b)]; t.test == "all-at-once"}
	rate(a, b) > thresholds.staged_beats_crowd * min(together)
}
