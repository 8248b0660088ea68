package gpudoctor.rules.collective_failed_test

import data.gpudoctor.rules.collective_failed as rule

arms := ["as-configured", "cleaned", "p2p-off", "shm-off", "p2p-shm-off", "cumem-off", "nvls-off", "in-process"]

# probed is a probe whose arms fail, except those that work.
probed(outcome, works) := {"collectives": {
	"outcome": outcome, "reason": "rank 1 in all-reduce", "library": "nccl", "gpus": ["0000:06:00.0", "0000:07:00.0"],
	"arms": [{"name": name, "outcome": object.get({true: "ok"}, name in works, outcome), "reason": "rank 1 in all-reduce", "unset": ["NCCL_X"]} | some name in arms],
}}

one(doc) := f if {
	fs := rule.findings with input as doc
	count(fs) == 1
	some f in fs
}

# searched is a probe in which runs without some variables work.
searched(works) := {"collectives": {"outcome": "error", "gpus": [], "arms": array.concat(
	[
		{"name": "as-configured", "outcome": "error", "reason": "r"},
		{"name": "cleaned", "outcome": "ok", "unset": ["NCCL_A", "NCCL_B", "NCCL_C"]},
		{"name": "without", "outcome": "error", "unset": ["NCCL_C"]},
	],
	[{"name": "without", "outcome": "ok", "unset": names} | some names in works],
)}}

test_culprits if {
	one_of_two := one(searched([["NCCL_A", "NCCL_B"], ["NCCL_B"]]))
	one_of_two.remedies == ["unset-env"]
	one_of_two.params.variable == "NCCL_B"
	contains(one_of_two.message, "Without NCCL_B they work")
	both := one(searched([["NCCL_A", "NCCL_B"]]))
	both.remedies == ["unset-env"]
	both.params.variables == ["NCCL_A", "NCCL_B"]
	contains(both.message, "Without NCCL_A, NCCL_B they work")
	cut := one(object.union(searched([["NCCL_A", "NCCL_B"]]), {"collectives": {"untried": ["without"]}}))
	cut.params.variables == ["NCCL_A", "NCCL_B"]
	none := one(searched([]))
	none.remedies == ["other"]
}

# An interface may explain what a variable that names one causes, and nothing else.
test_setting if {
	one(searched([["NCCL_SOCKET_IFNAME"]])).id == "variables"
	one(searched([])).id == "variables"
	one(searched([["NCCL_B"]])).id == "setting"
	one(searched([["NCCL_A", "NCCL_SOCKET_IFNAME"]])).id == "setting"
}

# raised is a probe that works with one of the limits raised, or with both.
raised(names) := {"collectives": {"outcome": "error", "gpus": [], "arms": [
	{"name": "as-configured", "outcome": "error", "reason": "r"},
	{"name": "limits-raised", "outcome": "error", "raised": {"memlock": -1}},
	{"name": "limits-raised", "outcome": "ok", "raised": {name: 4096 | some name in names}},
	{"name": "p2p-off", "outcome": "ok"},
]}}

test_limits if {
	files := one(raised(["nofile"]))
	files.id == "limits"
	files.remedies == ["raise-process-limits"]
	contains(files.message, "RLIMIT_NOFILE")
	locked := one(raised(["memlock"]))
	locked.remedies == ["raise-memlock-limits"]
	inside := one(object.union(raised(["memlock"]), {"container": {"inside": true}}))
	inside.remedies == ["raise-memlock"]
	both := one(raised(["memlock", "nofile"]))
	both.remedies == ["raise-memlock-limits", "raise-process-limits"]
}

# What was not tried is not said to fail.
test_incomplete if {
	whole := one(probed("hang", set()))
	contains(whole.message, "without any single transport")
	cut := one(object.union(probed("hang", set()), {"collectives": {"untried": ["p2p-off"]}}))
	not contains(cut.message, "without any single transport")
	unknown := one({"collectives": {"outcome": "hang", "gpus": [], "arms": [
		{"name": "as-configured", "outcome": "hang", "reason": "r"},
		{"name": "p2p-off", "outcome": "unknown", "reason": "r"},
	]}})
	contains(unknown.message, "Not everything that may help was tried")
}

test_needed if {
	every outcome in ["corrupt", "hang", "error"] {
		f := one({"collectives": {"outcome": "ok", "gpus": [], "arms": [
			{"name": "as-configured", "outcome": "ok"},
			{"name": "cleaned", "outcome": outcome, "unset": ["NCCL_A"], "reason": "r"},
		]}})
		f.severity == "low"
		contains(f.message, "without NCCL_A")
	}
}

test_fallback if {
	every outcome, severity in {"corrupt": "critical", "hang": "medium", "error": "medium"} {
		f := one({"collectives": {"outcome": "ok", "gpus": [], "arms": [
			{"name": "as-configured", "outcome": "ok"},
			{"name": "p2p-off", "outcome": outcome, "reason": "r"},
		]}})
		f.severity == severity
	}
}

test_start if one({"collectives": {"outcome": "hang", "gpus": [], "arms": []}}).id == "start"

test_unresolvable if {
	doc := {"collectives": {"outcome": "unknown", "cause": "busy", "gpus": [], "arms": []}}
	count(rule.findings) == 0 with input as doc
	count(rule.missing) == 1 with input as doc
}

test_nothing_to_run if {
	count(rule.not_applicable) == 1 with input as {"gpus": {}}
	count(rule.not_applicable) == 0 with input as {}
	count(rule.not_applicable) == 1 with input as {"collectives": {"outcome": "unknown", "cause": "no-library", "gpus": [], "arms": []}}
	count(rule.missing) == 0 with input as {"collectives": {"outcome": "unknown", "cause": "no-library", "gpus": [], "arms": []}}
}

raised_limits_raised(outcome, limits) := {"name": "limits-raised", "outcome": outcome, "raised": {limit: 1048576 | some limit in limits}}

raised_limits_probed(arms) := {"collectives": {"outcome": "hang", "gpus": ["a", "b"], "arms": arms}, "container": {"inside": false}}

test_fewest if {
	document := raised_limits_probed([raised_limits_raised("ok", ["memlock", "nofile"]), raised_limits_raised("ok", ["nofile"]), raised_limits_raised("error", ["memlock"])])
	rule.enough == ["nofile"] with input as document
	rule.words == "open files, RLIMIT_NOFILE" with input as document
	rule.limit_cures == ["raise-process-limits"] with input as document
}
