package gpudoctor.rules.job_failed_test

import data.gpudoctor.rules.job_failed

said(role, order) := {
	"id": "nccl-x", "program": "nccl", "role": role, "text": sprintf("%s %d", [role, order]),
	"source": "a.log", "line": order + 1, "order": order, "count": 1, "ranks": 1,
}

log(messages) := {"logs": {"messages": messages}}

test_fires_first_rank if {
	seen := object.union(said("category", 3), {"id": "torch-first-failure", "fields": {"rank": "13", "host": "node7", "exitcode": "-7", "signal": "SIGBUS"}})
	some f in job_failed.findings with input as log([said("consequence", 0), seen])
	object.subset(f.about, {"rank": "13", "host": "node7", "exitcode": "-7", "signal": "SIGBUS"})
	bare := object.union(said("category", 3), {"id": "torch-first-failure", "fields": {"rank": "2"}})
	some g in job_failed.findings with input as log([bare])
	object.subset(g.about, {"rank": "2", "at": "a.log:4"})
}

raised := {"what": "exception", "class": "torch.AcceleratorError", "said": "x", "uncaught": true, "text": "x", "source": "a.log", "line": 21}

test_fires_raised if {
	{f.grade | some f in job_failed.findings with input as {"logs": {"messages": [], "job": {"unexplained": raised}}}} == {"raised"}
	count(job_failed.findings) == 0 with input as {"logs": {"messages": [], "deaths": [raised]}}
}
