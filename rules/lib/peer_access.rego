# Peer access between all GPUs. Whether peer access is offered, works and is fast over all pairs of GPUs, and what its
# absence costs.
package gpudoctor.lib.peer_access

import data.gpudoctor.lib.facts

# copies are the copies from GPU to GPU that arrived at full speed.
copies := {t | some t in facts.peer_transfers; t.test == "copy"; t.outcome == "ok"}

# proven is true when copies between GPUs were tried, each of them arrived at the speed that its path allows, and no
# other test of peer access failed or was slow. Pairs without peer access do not count.
proven if {
	count(copies) > 0
	not broken
	not slow
}

broken if count(facts.failed_peer_transfers) > 0
slow if facts.peer_transfers[_].outcome == "slow"

staged_gbps := max({t.gbps | some t in facts.staged_transfers})

# staged_slower and staged_faster compare the slowest copy that was too slow with
# the way through host memory, where both were measured.
staged_slower if min(slow_rates) >= staged_gbps
staged_faster if min(slow_rates) < staged_gbps

slow_rates := {t.gbps | some t in facts.peer_transfers; t.test == "copy"; t.outcome == "slow"}

refused if {object.get(p, "access", true) | some p in input.transfers.peers} == {false}

refused if {
	not facts.probed
	count(facts.gpu_pairs) > 0
	every p in facts.gpu_pairs {
		not p.p2p.read in {"ok", "unknown", ""}
		p.p2p.read
	}
}

best_gbps := max({t.gbps | some t in copies})

# share_lost is the part of the bandwidth that is lost when traffic goes
# through host memory instead of peer access, as both were measured here.
share_lost := 1 - (staged_gbps / best_gbps) if best_gbps > 0

measured := sprintf("%d of %d paths between GPUs carried verified data at up to %s GB/s%s", [
	count(copies), count([t | some t in facts.peer_transfers; t.test == "copy"]), rate(best_gbps),
	concat("", [sprintf(", and %s GB/s through host memory", [rate(staged_gbps)]) | staged_gbps]),
])

# rate writes a rate with the digits that matter: whole from 100 on, else one
# after the point. (%f does not take whole numbers.)
rate(gbps) := sprintf("%v", [round(gbps)]) if {
	gbps >= 100
} else := sprintf("%v", [round(gbps * 10) / 10])
