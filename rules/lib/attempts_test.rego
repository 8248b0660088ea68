package gpudoctor.lib.attempts_test

import data.gpudoctor.lib.attempts

tried(results) := {"container": {"attempts": results}}

test_refused if {
	attempts.refused == {"mbind": {"outcome": "refused", "call": "mbind", "errno": "EPERM"}} with input as tried({
		"mbind": {"outcome": "refused", "call": "mbind", "errno": "EPERM"},
		"set_mempolicy": {"outcome": "ok"},
	})
	attempts.refused == {} with input as {}
}

test_told if {
	attempts.told({"call": "mbind", "errno": "EPERM"}) == "mbind gives EPERM"
	contains(attempts.told({"call": "mbind", "errno": "SIGSYS"}), "seccomp filter")
}

test_evidence if {
	e := attempts.evidence("locked_memory") with input as tried({"locked_memory": {"outcome": "ok", "bytes": 67108864}})
	e.fact == "container.attempts.locked_memory"
	e.value == {"outcome": "ok", "bytes": 67108864}
}
