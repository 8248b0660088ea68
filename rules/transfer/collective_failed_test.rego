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
	one_of_two.about.unset == ["NCCL_B"]
	both := one(searched([["NCCL_A", "NCCL_B"]]))
	both.remedies == ["unset-env"]
	both.params.variables == ["NCCL_A", "NCCL_B"]
	cut := one(object.union(searched([["NCCL_A", "NCCL_B"]]), {"collectives": {"untried": ["without"]}}))
	cut.params.variables == ["NCCL_A", "NCCL_B"]
	not one(searched([])).remedies
}

# What a job loses without its variables is a fallback as well, and no alarm if these avoid wrong data.
test_fallback if {
	every row in [["p2p-off", "corrupt", "critical"], ["p2p-off", "hang", "medium"], ["p2p-off", "error", "medium"], ["cleaned", "corrupt", "medium"]] {
		f := one({"collectives": {"outcome": "ok", "gpus": [], "arms": [
			{"name": "as-configured", "outcome": "ok"},
			{"name": row[0], "outcome": row[1], "reason": "r"},
		]}})
		[f.id, f.severity, f.about.arms] == ["fallback", row[2], {row[0]}]
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
