package gpudoctor.rules.job_failed_test

import data.gpudoctor.rules.job_failed

said(role, order) := {
	"id": "nccl-x", "program": "nccl", "role": role, "text": sprintf("%s %d", [role, order]),
	"source": "a.log", "line": order + 1, "order": order, "count": 1, "ranks": 1,
}

log(messages) := {"logs": {"messages": messages}}

test_fires_category if {
	some f in job_failed.findings with input as log([said("category", 1), said("setting", 0), said("consequence", 2)])
	contains(f.message, "a.log:2")
	contains(f.message, "category")
	f.order == 1
	count(f.evidence) == 2
}

test_fires_consequence_and_cause if {
	some f in job_failed.findings with input as log([said("consequence", 0)])
	contains(f.message, "another rank")
	some g in job_failed.findings with input as log([said("cause", 0)])
	contains(g.message, "no rule knows")
}

test_silent if {
	count(job_failed.findings) == 0 with input as log([said("setting", 0)])
	count(job_failed.missing) == 0 with input as log([])
}

test_unresolvable if {
	count(job_failed.findings) == 0 with input as {}
	count(job_failed.missing) == 1 with input as {}
}
