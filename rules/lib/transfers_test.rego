package gpudoctor.lib.transfers_test

import data.gpudoctor.lib.transfers

a := "0000:01:00.0"

b := "0000:02:00.0"

transfer(test, source, destination, outcome) := {"test": test, "source": source, "destination": destination, "outcome": outcome}

one := {[a, b]: {transfer("copy", a, b, "hang")}}

both := object.union(one, {[b, a]: {transfer("sm-store", b, a, "corrupt")}})

test_a_group_is_named if {
	transfers.subject(one) == "0000:01:00.0 -> 0000:02:00.0" with input as {}
	transfers.subject(both) == "0000:01:00.0 -> 0000:02:00.0" with input as {}
	transfers.subject(object.union(one, {[a, "c"]: set()})) == "0000:01:00.0 -> 0000:02:00.0 and 1 more" with input as {}
	transfers.gpus(both) == [a, b]
	transfers.what(one) == "Transfers from GPU 0000:01:00.0 to 0000:02:00.0" with input as {}
	transfers.what(both) == "Transfers between GPUs 0000:01:00.0 and 0000:02:00.0, in both directions," with input as {}
	[e.value[0].outcome | some e in transfers.evidence(both, {"outcome"})] == ["hang", "corrupt"]
}

test_outcomes_are_told if {
	transfers.became(transfers.all(both)) == "hang (copy); others report success and deliver wrong data (sm-store: bytes differ)"
	transfers.became({transfer("copy", a, b, "error")}) == "fail with an error (copy)"
	transfers.became({object.union(transfer("copy", a, b, "error"), {"reason": "it crashed"})}) == "fail with an error (it crashed) (copy)"
	transfers.paths(transfers.all(both)) == {"copy engine", "SM"}
}
