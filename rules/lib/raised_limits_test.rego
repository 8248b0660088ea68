package gpudoctor.lib.raised_limits_test

import data.gpudoctor.lib.raised_limits

raised(outcome, limits) := {"name": "limits-raised", "outcome": outcome, "raised": {limit: 1048576 | some limit in limits}}

probed(arms) := {"collectives": {"outcome": "hang", "gpus": ["a", "b"], "arms": arms}, "container": {"inside": false}}

test_fewest if {
	document := probed([raised("ok", ["memlock", "nofile"]), raised("ok", ["nofile"]), raised("error", ["memlock"])])
	raised_limits.enough == ["nofile"] with input as document
	raised_limits.words == "open files, RLIMIT_NOFILE" with input as document
	raised_limits.cures == ["raise-process-limits"] with input as document
}

test_none if {
	document := probed([raised("hang", ["memlock", "nofile"])])
	raised_limits.enough == [] with input as document
	raised_limits.cures == [] with input as document
}

test_container if {
	document := probed([raised("ok", ["memlock"])])
	raised_limits.cures == ["raise-memlock-limits"] with input as document
	raised_limits.cures == ["raise-memlock"] with input as object.union(document, {"container": {"inside": true}})
}
