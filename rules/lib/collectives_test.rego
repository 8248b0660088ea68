package gpudoctor.lib.collectives_test

import data.gpudoctor.lib.collectives

at(rank, more) := object.union(
	{
		"group": "0(default_pg)", "rank": rank, "seq": 7, "op": "ALLREDUCE", "elements": 4, "enqueued": 9, "completed": 6,
		"text": "said", "source": "a.log", "line": rank + 1,
	},
	more,
)

job(size, list) := {"logs": {"messages": [], "progress": list, "communicators": [{"ranks": size, "library": "nccl", "source": "a.log", "line": 1}]}}

test_not_all_heard if {
	every list in [
		[at(0, {}), at(2, {})],
		[at(0, {}), at(1, {"elements": 8})],
		[at(0, {"group": "3(tp)"}), at(1, {"group": "3(tp)"})],
	] {
		count(collectives.standing) == 0 with input as job(2, list)
	}
}

test_sizes_of_the_job if {
	collectives.sizes == {16} with input as {"launches": [{"kind": "torchrun", "processes": 8, "nodes": 2}]}
	collectives.sizes == {3} with input as {"logs": {"messages": [{"id": "torch-store-barrier-waiting", "fields": {"world": "3"}, "order": 0}]}}
}

test_apart if {
	some pair in collectives.apart with input as job(4, [at(0, {}), at(1, {"seq": 9, "op": "BROADCAST", "completed": 8})])
	pair.distance == 2
	collectives.described(pair.late) == "BROADCAST number 9"

	# A rank that began again is no other one.
	count(collectives.apart) == 0 with input as job(2, [at(0, {}), at(1, {"seq": 9}), at(1, {"seq": 2})])
}

said(id, fields, line) := {"id": id, "role": "setting", "text": "said", "fields": fields, "source": "a.log", "line": line, "order": line}

report(ranks) := [
	said("torch-desync-joined", {"ranks": ranks, "seq": "5"}, 1),
	said("torch-desync-snapshot", {"seq": "5", "state": "started"}, 2),
	said("torch-desync-started", {"ranks": ranks, "op": "ALLREDUCE"}, 3),
]

test_desync_report if {
	some s in collectives.standing with input as {"logs": {"messages": report("0, 1, 2")}}
	s.number == 5
	count(collectives.standing) == 0 with input as {"logs": {"messages": report("0, 2")}}
	count(collectives.standing) == 0 with input as {"logs": {"messages": array.concat(report("0, 1"), [said("torch-desync-finished", {"ranks": "2", "seq": "4"}, 4)])}}
	count(collectives.standing) == 0 with input as {"logs": {"messages": array.concat(report("0, 1"), [said("torch-desync-snapshot", {"seq": "6", "state": "started"}, 4)])}}
}

test_went_on if {
	stood := job(2, [at(0, {}), at(1, {})]).logs
	count(collectives.standing) == 1 with input as {"logs": stood}
	count(collectives.standing) == 0 with input as {"logs": object.union(stood, {"job": {"went_on": true}})}
}
