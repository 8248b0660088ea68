package gpudoctor.lib.broken_transfers_test

import data.gpudoctor.lib.broken_transfers

a := "0000:01:00.0"

b := "0000:02:00.0"

transfer(test, source, destination, outcome) := {"test": test, "source": source, "destination": destination, "outcome": outcome}

both_ways(test, outcome) := [transfer(test, a, b, outcome), transfer(test, b, a, outcome)]

probed(transfers) := {"transfers": {
	"outcome": "ok",
	"peers": [{"source": s, "destination": d, "access": true} | some [s, d] in [[a, b], [b, a]]],
	"transfers": transfers,
}}

# said are the remarks on everything that failed.
said(transfers) := text if {
	group := broken_transfers.failures with input as probed(transfers)
	count(group) > 0
	text := concat(" ", broken_transfers.remarks(group)) with input as probed(transfers)
}

test_failures if {
	mixed := [transfer("copy", a, b, "corrupt"), transfer("sm-load", a, b, "hang"), transfer("copy", b, a, "slow")]
	group := broken_transfers.failures with input as probed(mixed)
	object.keys(group) == {[a, b]}
	broken_transfers.kind(group[[a, b]]) == {"worst": "hang", "paths": {"copy engine", "SM"}}
	count(broken_transfers.offered(group)) == 1 with input as probed(mixed)
}

test_data_that_is_lost_through_host_memory_too_is_no_failure_of_the_path if {
	lost := array.concat(both_ways("copy", "corrupt"), both_ways("host-staged", "corrupt"))
	broken_transfers.failures == {} with input as probed(lost)
}

test_slow_ones_beside_the_failures if {
	mixed := [transfer("copy", a, b, "corrupt"), transfer("sm-load", a, b, "slow"), transfer("copy", b, a, "slow")]
	group := broken_transfers.failures with input as probed(mixed)
	broken_transfers.slow_too(group) == {mixed[1]} with input as probed(mixed)
}

test_staged_good if {
	arm := array.concat(both_ways("copy", "corrupt"), both_ways("host-staged", "ok"))
	contains(said(arm), "arrived correctly through host memory")
	not contains(said(both_ways("copy", "corrupt")), "through host memory")
	group := broken_transfers.failures with input as probed(arm)
	broken_transfers.staged_good(group) == true with input as probed(arm)
	broken_transfers.staged_good(group) == false with input as probed(both_ways("copy", "corrupt"))
}

test_one_direction if {
	contains(said([transfer("copy", a, b, "corrupt"), transfer("copy", b, a, "ok")]), "one direction only")
	said(both_ways("copy", "corrupt")) == ""
}

test_stores_fail_where_copies_work if {
	contains(said(array.concat(both_ways("copy", "ok"), both_ways("sm-store", "corrupt"))), "copy engines work")
	not contains(said(both_ways("sm-store", "corrupt")), "copy engines work")
}

test_copies_fail_where_loads_work if {
	contains(said(array.concat(both_ways("copy", "error"), both_ways("sm-load", "ok"))), "only the copy engines fail")
}

test_handshake_alone if {
	text := said(array.concat(both_ways("copy", "ok"), both_ways("handshake", "hang")))
	contains(text, "do not see each other's stores.")
	not contains(text, "loads and stores of the SMs fail")
	silent := object.union(transfer("handshake", a, b, "hang"), {"reason": "b did not see the store of a"})
	told := said(array.concat(both_ways("copy", "ok"), [silent]))
	contains(told, ": b did not see the store of a.")
	not contains(told, "one direction only")
}

test_atomics_alone if {
	text := said(array.concat(both_ways("copy", "ok"), [transfer("atomics", a, b, "corrupt")]))
	contains(text, "only atomic operations")
	not contains(text, "loads and stores of the SMs fail")
}

test_peer_access_that_cannot_be_switched_on if {
	late := object.union(transfer("copy", a, b, "error"), {"call": "cuCtxEnablePeerAccess", "error_name": "X"})
	text := said([late, transfer("copy", b, a, "ok"), transfer("sm-load", a, b, "ok")])
	contains(text, "cannot even be enabled (cuCtxEnablePeerAccess)")
	not contains(text, "only the copy engines fail")
}

test_intermittent if {
	contains(said([object.union(transfer("copy", a, b, "corrupt"), {"repeats": 1, "attempts": 3})]), "It is intermittent")
	not contains(said([object.union(transfer("copy", a, b, "corrupt"), {"repeats": 3, "attempts": 3})]), "It is intermittent")
}

test_only_all_at_once if {
	contains(said(array.concat(both_ways("copy", "ok"), both_ways("all-at-once", "hang"))), "only while all GPUs write at once")
}
