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

# expected is what each pattern of arms that work says.
expected := {
	"cleaned": ["variables", "unset-env"], "nvls-off": ["nvls", "nccl-nvls-disable"], "cumem-off": ["cumem", "nccl-cumem-disable"],
	"p2p-off": ["p2p", "nccl-p2p-disable"], "shm-off": ["shm", "increase-shm"], "p2p-shm-off": ["both", "nccl-p2p-disable"],
	"in-process": ["processes", "nccl-p2p-disable"],
}

test_patterns if {
	every name, want in expected {
		every outcome in ["corrupt", "hang", "error"] {
			f := one(probed(outcome, {name}))
			f.id == want[0]
			f.remedies[0] == want[1]
		}
	}
}

test_fires if count(rule.findings) == 1 with input as probed("corrupt", set())

test_nothing_works if one(probed("hang", set())).id == "everywhere"

test_rendezvous if {
	failed := {"collectives": {"outcome": "error", "gpus": [], "arms": [{"name": "as-configured", "outcome": "error", "reason": "r"}]}}
	f := one(object.union(failed, {"container": {"attempts": {"connection": {"outcome": "refused", "call": "connect", "errno": "ETIMEDOUT"}}}}))
	f.remedies[0] == "set-socket-ifname"
	g := one(failed)
	g.remedies[0] == "upgrade-nccl"
}

test_several_variables if {
	f := one({"collectives": {"outcome": "error", "gpus": [], "arms": [
		{"name": "as-configured", "outcome": "error", "reason": "r"},
		{"name": "cleaned", "outcome": "ok", "unset": ["NCCL_A", "NCCL_B"]},
	]}})
	f.remedies == ["other"]
}

test_silent if count(rule.findings) == 0 with input as probed("ok", set())

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
