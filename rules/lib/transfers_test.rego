package gpudoctor.lib.transfers_test

import data.gpudoctor.lib.transfers

a := "0000:01:00.0"
b := "0000:02:00.0"

transfer(test, source, destination, outcome) := {"test": test, "source": source, "destination": destination, "outcome": outcome}

test_outcomes_are_told if {
	transfers.became({transfer("copy", a, b, "error")}) == "fail with an error (copy)"
	transfers.became({object.union(transfer("copy", a, b, "error"), {"reason": "it crashed"})}) == "fail with an error (it crashed) (copy)"
}
