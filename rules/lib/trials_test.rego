package gpudoctor.lib.trials_test

import data.gpudoctor.lib.trials

run(variables, outcome, message) := {"variables": variables, "outcome": outcome, "message": message, "source": "a", "line": 1}

off := {"NCCL_P2P_DISABLE": "1"}

tried(a, b) := {"runs": [a, b], "comparisons": [{"kind": "variable", "name": "NCCL_P2P_DISABLE", "a": 0, "b": 1}]}

# What makes no difference is not at fault; another failure says nothing.
test_cleared if {
	trials.cleared == {"p2p-broken-platform"} with input as tried(run({}, "failed", "m"), run(off, "failed", "m"))
	trials.cleared == set() with input as tried(run({}, "failed", "m"), run(off, "failed", "n"))
	trials.cleared == set() with input as tried(run({}, "hung", ""), run(off, "failed", ""))
	trials.cleared == set() with input as tried(run({}, "ok", ""), run(off, "ok", ""))
}

test_setting if {
	trials.setting({"variables": off}, "NCCL_P2P_DISABLE") == "NCCL_P2P_DISABLE=1"
	trials.setting({"variables": {"UCX_TLS": "set"}}, "UCX_TLS") == "UCX_TLS"
}
