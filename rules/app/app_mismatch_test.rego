package gpudoctor.rules.app_mismatch_test

import data.gpudoctor.rules.app_mismatch

message(id, fields) := {"id": id, "program": "pytorch", "role": "category", "text": "said", "fields": fields, "source": "a.log", "line": 3, "order": 2, "count": 1, "ranks": 1}

log(messages) := {"logs": {"messages": messages}}

watchdog(fields, order) := object.union(message("torch-watchdog-timeout", fields), {"order": order})

test_watchdogs_name_different_sizes if {
	messages := [watchdog({"group": "0", "seq": "7", "op": "ALLREDUCE", "numel_in": "4"}, 1), watchdog({"group": "0", "seq": "7", "op": "ALLREDUCE", "numel_in": "8"}, 2)]
	some f in app_mismatch.findings with input as log(messages)
	contains(f.message, "4 and 8")
}

test_without_the_group_it_is_possible if {
	messages := [watchdog({"seq": "7", "op": "ALLREDUCE"}, 1), watchdog({"seq": "7", "op": "_ALLGATHER_BASE"}, 2)]
	some f in app_mismatch.findings with input as log(messages)
	f.confidence == "possible"
}

# A timeout alone, other groups, other numbers and uneven operations show nothing.
test_silent_for_timeouts if {
	one := watchdog({"group": "0", "seq": "7", "op": "ALLREDUCE", "numel_in": "4"}, 1)
	count(app_mismatch.findings) == 0 with input as log([one])
	count(app_mismatch.findings) == 0 with input as log([one, watchdog({"group": "1", "seq": "7", "op": "BROADCAST", "numel_in": "4"}, 2)])
	count(app_mismatch.findings) == 0 with input as log([one, watchdog({"group": "0", "seq": "8", "op": "BROADCAST", "numel_in": "4"}, 2)])
	count(app_mismatch.findings) == 0 with input as log([watchdog({"group": "0", "seq": "7", "op": "ALLTOALL", "numel_in": "4"}, 1), watchdog({"group": "0", "seq": "7", "op": "ALLTOALL", "numel_in": "5"}, 2)])
	count(app_mismatch.findings) == 0 with input as log([watchdog({"group": "0", "seq": "7", "op": "SEND"}, 1), watchdog({"group": "0", "seq": "7", "op": "RECV"}, 2)])
}

test_desynchronization_report if {
	a := object.union(message("torch-desync-started", {"ranks": "0, 1", "op": "ALLREDUCE"}), {"line": 10})
	b := object.union(message("torch-desync-started", {"ranks": "2", "op": "BROADCAST"}), {"line": 11, "order": 3})
	some f in app_mismatch.findings with input as log([a, b])
	contains(f.message, "ranks 0, 1 started ALLREDUCE")
	count(app_mismatch.findings) == 0 with input as log([a, object.union(b, {"line": 13})])
}

test_more_processes_than_ranks if {
	some f in app_mismatch.findings with input as log([message("torch-store-barrier-timeout", {"world": "2", "joined": "4"})])
	contains(f.message, "4 processes joined a job of 2 ranks")
	count(app_mismatch.findings) == 0 with input as log([message("torch-store-barrier-waiting", {"world": "4", "joined": "2"})])
}

test_unresolvable if {
	count(app_mismatch.missing) == 1 with input as {}
	count(app_mismatch.findings) == 0 with input as {}
}

test_without_the_group_sizes_are_possible if {
	one := object.union(watchdog({"seq": "7", "op": "ALLREDUCE", "numel_in": "4"}, 1), {"rank": 0})
	two := object.union(watchdog({"seq": "7", "op": "ALLREDUCE", "numel_in": "8"}, 2), {"rank": 1})
	some f in app_mismatch.findings with input as log([one, two])
	f.confidence == "possible"
	contains(f.message, "4 and 8")
	count(app_mismatch.findings) == 0 with input as log([one, object.union(two, {"rank": 0})])
}

begin(elements, ranks, order) := object.union(message("nccl-first-collective", {"op": "Broadcast", "count": elements, "type": "4", "nranks": "4"}), {"role": "setting", "ranks": ranks, "order": order, "pid": 100 + order})

# More speakers than ranks have several communicators.
test_first_collectives_differ if {
	some f in app_mismatch.findings with input as log([begin("53", 3, 4), begin("900", 1, 2)])
	f.severity == "critical"
	count(app_mismatch.findings) == 0 with input as log([begin("53", 4, 1), begin("900", 4, 2)])
	count(app_mismatch.findings) == 0 with input as log([begin("53", 4, 1)])
	count(app_mismatch.findings) == 0 with input as log([begin("53", 1, 1), begin("900", 1, 2)])
	count(app_mismatch.findings) == 0 with input as log([begin("53", 2, 1), object.union(begin("900", 2, 2), {"pid": 101})])
}

status(rank, group, enqueued, completed) := object.union(
	message("torch-work-status", {"group": group, "enqueued": enqueued, "completed": completed}),
	{"rank": rank, "order": rank},
)

test_a_rank_with_nothing_left_to_do if {
	some f in app_mismatch.findings with input as log([status(0, "0", "12", "11"), status(1, "0", "11", "11")])
	f.severity == "high"
	contains(f.message, "rank 1 never called it")
	f.params == {"late_rank": 1, "out_of_step": "yes"}
	f.remedies[0] == "fix-application"

	# In another group, and further back, numbers say nothing of each other.
	count(app_mismatch.findings) == 0 with input as log([status(0, "0", "12", "11"), status(1, "1", "11", "11")])
	count(app_mismatch.findings) == 0 with input as log([status(0, "0", "12", "11"), status(1, "0", "9", "9")])
	count(app_mismatch.findings) == 0 with input as log([status(0, "0", "12", "11"), status(1, "0", "12", "11")])
}

expired(ms, line) := object.union(message("torch-watchdog-timeout", {"seq": "9", "op": "ALLGATHER", "timeout_ms": ms}), {"line": line, "order": 7})

test_a_short_timeout if {
	some f in app_mismatch.findings with input as log([expired("60000", 30)])
	f.confidence == "possible"
	f.remedies[0] == "nccl-timeout"
	contains(f.message, "after 60 s, which is a custom timeout")
	count(app_mismatch.findings) == 0 with input as log([expired("600000", 30)])
}

test_a_checkpoint_before_the_timeout if {
	writing := object.union(message("checkpoint-writing", {}), {"line": 20, "order": 5, "role": "setting"})
	some f in app_mismatch.findings with input as log([writing, expired("1800000", 30)])
	contains(f.message, "aborted a collective after 1800 s")
	count(f.evidence) == 2
	count(app_mismatch.findings) == 0 with input as log([writing, expired("1800000", 400)])
	count(app_mismatch.findings) == 0 with input as log([writing])
}

test_other_work_before_the_timeout if {
	evaluating := object.union(message("rank-evaluates", {}), {"line": 25, "order": 6, "role": "setting", "rank": 3})
	loading := object.union(message("rank-loads", {}), {"line": 20, "order": 5, "role": "setting", "rank": 2})
	some f in app_mismatch.findings with input as log([loading, evaluating, expired("60000", 30)])
	startswith(f.message, "Rank 3 ran an evaluation shortly before")
	count(app_mismatch.findings) == 1 with input as log([loading, evaluating, expired("60000", 30)])
}

test_processes_that_do_not_know_of_each_other if {
	table := {"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "complete": false, "jobs": 6, "ranks": 6, "source": "run.txt", "line": 2}
	some f in app_mismatch.findings with input as {"benchmarks": [table]}
	f.confidence == "confirmed"
	contains(f.message, "6 processes of nccl-tests call themselves rank 0")
	count(app_mismatch.missing) == 0 with input as {"benchmarks": [table]}
	count(app_mismatch.findings) == 0 with input as {"benchmarks": [object.remove(table, ["jobs"])]}
}

stopped(rank, seq, op) := {"group": "0(default_pg)", "rank": rank, "seq": seq, "op": op, "enqueued": 30, "completed": seq - 1, "text": "said", "source": "a.log", "line": rank + 1}

test_fires_apart if {
	messages := [watchdog({"seq": "7", "op": "ALLREDUCE", "timeout_ms": "15000"}, 1)]
	some f in app_mismatch.findings with input as {"logs": {"messages": messages, "progress": [stopped(0, 7, "ALLREDUCE"), stopped(1, 9, "BROADCAST")]}}
	f.id == "apart"
	f.confidence == "likely"
	contains(f.message, "rank 0 waits in ALLREDUCE number 7 and rank 1 in BROADCAST number 9")
	some g in app_mismatch.findings with input as {"logs": {"messages": messages, "progress": [stopped(0, 7, "ALLREDUCE"), stopped(1, 8, "BROADCAST")]}}
	g.confidence == "possible"
}

# Where every rank came to the collective, none was late.
test_silent_where_all_wait if {
	messages := [watchdog({"seq": "7", "op": "ALLREDUCE", "timeout_ms": "15000"}, 1)]
	communicators := [{"ranks": 2, "library": "nccl", "source": "a.log", "line": 1}]
	count(app_mismatch.findings) == 0 with input as {"logs": {"messages": messages, "communicators": communicators, "progress": [stopped(0, 7, "ALLREDUCE"), stopped(1, 7, "ALLREDUCE")]}}
}

test_fires_interleaved if {
	communicators := [{"id": id, "ranks": 2, "library": "nccl", "source": "a.log", "line": 1} | some id in ["0x1", "0x2"]]
	progress := [stopped(0, 7, "ALLREDUCE"), stopped(1, 7, "ALLREDUCE")]
	some f in app_mismatch.findings with input as {"logs": {"messages": [], "communicators": communicators, "progress": progress}}
	f.id == "interleaved"
	count(app_mismatch.findings) == 0 with input as {"logs": {"messages": [], "communicators": array.slice(communicators, 0, 1), "progress": progress}}
}
