package gpudoctor.lib.staging_test

import data.gpudoctor.lib.staging

a := "0000:01:00.0"
b := "0000:02:00.0"
c := "0000:03:00.0"
pairs := {{"a": a, "b": b}}

transfer(test, source, destination, outcome, gbps) := {"test": test, "source": source, "destination": destination, "outcome": outcome, "gbps": gbps}
probed(transfers) := {"transfers": {"outcome": "ok", "transfers": transfers}}
staged(outcome) := [transfer("host-staged", a, b, outcome, 10), transfer("host-staged", b, a, outcome, 10)]

test_outcome if {
	staging.failed(a, b) with input as probed([transfer("host-staged", b, a, "corrupt", 0)])
}

test_rate if {
	tried := array.concat(staged("ok"), [transfer("host-staged", a, c, "slow", 4)])
	staging.rate([a, b]) == 10 with input as probed(tried)
	not staging.rate([a, b]) with input as probed([transfer("host-staged", a, b, "error", 0)])
}

test_faster_than_peer_access if {
	slow := array.concat(staged("ok"), [transfer("copy", a, b, "slow", 2)])
	staging.remedies(pairs) == ["nccl-p2p-disable"] with input as probed(slow)
	near := array.concat(staged("ok"), [transfer("copy", a, b, "slow", 9.9)])
	staging.remedies(pairs) == [] with input as probed(near)
	staging.remedies(set()) == [] with input as probed(slow)
}

test_faster_than_all_at_once if {
	staging.faster(a, b) with input as probed(array.concat(staged("ok"), [transfer("all-at-once", a, b, "slow", 2)]))
	not staging.faster(a, b) with input as probed(array.concat(staged("ok"), [transfer("all-at-once", a, b, "slow", 6)]))
}
