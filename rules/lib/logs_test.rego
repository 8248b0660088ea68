package gpudoctor.lib.logs_test

import data.gpudoctor.lib.logs

late := {"id": "nccl-a", "program": "nccl", "role": "cause", "text": "late", "source": "a.log", "line": 9, "order": 1, "count": 1, "host": "node7", "rank": 3}

early := {"id": "nccl-a", "program": "nccl", "role": "cause", "text": "early", "source": "a.log", "line": 2, "order": 0, "count": 1}

setting := {"id": "nccl-b", "program": "nccl", "role": "setting", "text": "b", "source": "a.log", "line": 4, "order": 2, "count": 1, "host": "node7", "device": 1, "pid": 12}

given := {
	"logs": {"messages": [late, early, setting]},
	"software": [{"name": "nccl", "version": "2.20.5"}, {"name": "nccl", "version": "2.19.3"}],
	"launches": [{"kind": "docker-run"}],
}

test_nothing_given if {
	not logs.given with input as {}
	not logs.failed with input as {}
	count(logs.launches) == 0 with input as {}
	not logs.said("nccl-a") with input as {}
}

test_messages if {
	logs.given with input as given
	logs.failed with input as given
	logs.said("nccl-b") with input as given
	logs.messages({"nccl-a"}) == {late, early} with input as given
	logs.first({late, early}) == early
	logs.complaints == {late, early} with input as given
	logs.versions.nccl == {"2.20.5", "2.19.3"} with input as given
	logs.launches == {{"kind": "docker-run"}} with input as given
}

test_evidence if {
	logs.evidence(early) == {"fact": "logs.messages[nccl-a]", "value": "early", "source": "a.log:2"}
	[e.value | some e in logs.all_evidence({late, early})] == ["early", "late"]
}

test_who if {
	logs.who(late) == "rank 3 on node7"
	logs.who(setting) == "node7, GPU 1 of process 12"
	logs.who(early) == "the log"
	logs.who({"rank": 3}) == "rank 3"
	logs.who({"host": "node7"}) == "node7"
}
