package gpudoctor.rules.app_mismatch_test

import data.gpudoctor.rules.app_mismatch

message(id, fields) := {"id": id, "program": "pytorch", "role": "category", "text": "said", "fields": fields, "source": "a.log", "line": 3, "order": 2, "count": 1, "ranks": 1}

log(messages) := {"logs": {"messages": messages}}

# gave_up is what the watchdogs of two ranks say, each of the collective that it gave up.
gave_up(one, other) := log([object.union(message("torch-watchdog-timeout", fields), {"order": i + 1, "rank": i}) | some i, fields in [one, other]])

reduce(fields) := object.union({"group": "0", "seq": "7", "op": "ALLREDUCE", "numel_in": "4"}, fields)

nameless(fields) := object.remove(reduce(fields), ["group"])

status(rank, group, enqueued, completed) := object.union(
	message("torch-work-status", {"group": group, "enqueued": enqueued, "completed": completed}),
	{"rank": rank, "order": rank},
)

expired(ms, line) := object.union(message("torch-watchdog-timeout", {"seq": "9", "op": "ALLGATHER", "timeout_ms": ms}), {"line": line, "order": 7})

table := {"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "complete": false, "jobs": 6, "ranks": 6, "source": "run.txt", "line": 2}

stopped(rank, seq, op) := {"group": "0(default_pg)", "rank": rank, "seq": seq, "op": op, "enqueued": 30, "completed": seq - 1, "text": "said", "source": "a.log", "line": rank + 1}

# progress is a job whose ranks stopped in these collectives.
progress(stops, messages) := {"logs": {
	"messages": messages, "progress": stops,
	"communicators": [{"id": "0x1", "ranks": 2, "library": "nccl", "source": "a.log", "line": 1}],
}}

gave_up_early := [message("torch-watchdog-timeout", {"seq": "7", "op": "ALLREDUCE", "timeout_ms": "15000"})]

together := [stopped(0, 7, "ALLREDUCE"), stopped(1, 7, "ALLREDUCE")]

# leaves is a job of which one rank ends without destroying its process group, and another loses it.
leaves(rank, more) := {"logs": object.union(
	{"messages": [
		object.union(message("torch-not-destroyed", {}), {"rank": rank, "order": 1, "role": "setting"}),
		object.union(message("nccl-remote-error", {}), {"rank": 0, "order": 4, "role": "consequence"}),
	]},
	more,
)}

# lost_first is a job of which a launcher saw one rank fail, which had lost another.
lost_first(rank, deaths) := {"logs": {
	"messages": [object.union(message("gloo-peer-closed", {}), {"rank": 0, "role": "consequence"}), message("torch-first-failure", {"rank": rank})],
	"deaths": deaths,
}}

left(document) := {[f.id, f.confidence] | some f in app_mismatch.findings with input as document; f.id == "left"}

test_fires_for_a_rank_that_leaves if {
	left(leaves(1, {})) == {["left", "likely"]}
	left(lost_first("0", [{"what": "exception", "rank": 0}])) == {["left", "possible"]}
	every document in [
		leaves(0, {}), leaves(1, {"deaths": [{"what": "exception", "rank": 1}]}), leaves(1, {"job": {"first": {"what": "exception"}}}),
		lost_first("1", [{"what": "exception", "rank": 0}]), lost_first("0", [{"what": "exception", "rank": 0}, {"what": "exit", "rank": 1}]),
	] {
		left(document) == set()
	}
}

# prepares is a job whose watchdog gave up an operation while a rank prepared data.
prepares(seq) := log([
	message("torch-watchdog-timeout", {"seq": seq, "op": "ALLREDUCE", "timeout_ms": "1800000"}),
	object.union(message("rank-loads", {}), {"role": "setting"}),
])

test_fires_for_data_that_is_prepared if {
	"preparing" in {f.id | some f in app_mismatch.findings with input as prepares("3")}
	not "preparing" in {f.id | some f in app_mismatch.findings with input as prepares("300")}
}

# waiting is a job of which the first n ranks wait.
waiting(n, size) := {"logs": {"job": {"size": size, "members": [{"rank": r, "role": "waits"} | some r in numbers.range(0, n - 1)]}}}

test_fires if {
	every row in [
		[gave_up(reduce({}), reduce({"numel_in": "8"})), ["critical", "confirmed", "fix-application"], "4 and 8"],
		# Without the group it is possible.
		[gave_up(nameless({}), nameless({"op": "_ALLGATHER_BASE"})), ["high", "possible", "fix-application"], "different operations"],
		[gave_up(nameless({}), nameless({"numel_in": "8"})), ["high", "possible", "fix-application"], "4 and 8"],
		[log([status(0, "0", "12", "11"), status(1, "0", "11", "11")]), ["high", "likely", "fix-application"], "rank 1 never called it"],
		# A short timeout, or work of one rank before it.
		[log([expired("60000", 30)]), ["high", "possible", "nccl-timeout"], "after 60 s (the default is 600 s)"],
		[log([object.union(expired("60000", 30), {"rank": 0})]), ["high", "possible", "fix-application"], "after 60 s"],
		[object.union(log([object.union(expired("60000", 30), {"rank": 0})]), waiting(1, 2)), ["high", "possible", "fix-application"], "A rank (1) whose watchdog does not report it"],
		[object.union(log([expired("600000", 30)]), waiting(3, 4)), ["high", "possible", "fix-application"], "A rank (3) whose"],
		[object.union(log([expired("600000", 30)]), waiting(2, 4)), ["high", "possible", "fix-application"], "A rank (2 and 3) whose"],
		[object.union({"launches": [{"processes": 4}]}, log([object.union(message("rank-alone", {}), {"count": 4})])), ["high", "likely", "correct-launch"], "4 of them say"],
		[itself({"host": "a"}), ["high", "likely", "fix-application"], "an earlier run"],
		[twice(1, 2), ["high", "likely", "correct-launch"], "Two processes are rank 0"],
		[
			object.union({"launches": [{"tasks": 8, "source": "a.log", "line": 1}]}, log([message("torch-port-in-use", {})])),
			["high", "likely", "correct-launch"], "The job has 8 tasks on each node",
		],
		[{"benchmarks": [table]}, ["high", "confirmed", "correct-launch"], "6 processes of nccl-tests call themselves rank 0"],
		[
			progress([stopped(0, 7, "ALLREDUCE"), stopped(1, 9, "BROADCAST")], gave_up_early),
			["high", "likely", "fix-application"], "rank 0 waits in ALLREDUCE number 7 and rank 1 in BROADCAST number 9",
		],
		[progress([stopped(0, 7, "ALLREDUCE"), stopped(1, 8, "BROADCAST")], gave_up_early), ["high", "possible", "fix-application"], "rank 1 in BROADCAST"],
	] {
		found := app_mismatch.findings with input as row[0]
		{[f.severity, f.confidence, f.remedies[0]] | some f in found} == {row[1]}
		{true | some f in found; contains(f.message, row[2])} == {true}
	}
	some f in app_mismatch.findings with input as log([status(0, "0", "12", "11"), status(1, "0", "11", "11")])
	f.params == {"late_rank": 1, "out_of_step": "yes"}
}

# itself is a machine that refuses a connection to its own address, or another one that does.
itself(host) := log([
	object.union(message("nccl-bootstrap-interface", {"interfaces": "eth0:10.0.0.5<0>"}), {"host": "a", "role": "setting"}),
	object.union(message("nccl-connect-failed", {"remote": "10.0.0.5", "error": "Connection refused"}), host),
])

twice(taken, waits) := log([
	object.union(message("torch-port-in-use", {}), {"order": taken}),
	object.union(message("torch-store-clients-missing", {"joined": "1", "world": "2"}), {"order": waits}),
])

# announced are ranks that say how many they expect, in a job of so many tasks that reached its time limit.
announced(ranks, tasks) := object.union({"launches": [{"processes": 1, "nodes": tasks}]}, log(array.concat(
	[message("rank-of-world", {"of": sprintf("%d", [rank]), "world": "4"}) | some rank in ranks],
	[message("job-time-limit", {})],
)))

test_fires_on_ranks_that_no_task_is if {
	some f in app_mismatch.findings with input as announced([0, 1], 2)
	f.id == "not-started"
	contains(f.message, "expects 4, and the job starts only 2")
}

test_silent if {
	every document in [
		# A timeout alone, other groups, other numbers and uneven operations show nothing.
		log([message("torch-watchdog-timeout", reduce({}))]),
		gave_up(reduce({}), reduce({"group": "1", "op": "BROADCAST"})),
		gave_up(reduce({}), reduce({"seq": "8", "op": "BROADCAST"})),
		gave_up(reduce({"op": "ALLTOALL"}), reduce({"op": "ALLTOALL", "numel_in": "5"})),
		gave_up(reduce({"op": "SEND"}), reduce({"op": "RECV"})),
		# Of one rank, another size shows nothing.
		log([object.union(message("torch-watchdog-timeout", nameless({"numel_in": size})), {"rank": 0}) | some size in ["4", "8"]]),
		# In another group, and further back, numbers say nothing of each other.
		log([status(0, "0", "12", "11"), status(1, "1", "11", "11")]),
		log([status(0, "0", "12", "11"), status(1, "0", "9", "9")]),
		log([status(0, "0", "12", "11"), status(1, "0", "12", "11")]),
		log([expired("600000", 30)]),
		{"benchmarks": [object.remove(table, ["jobs"])]},
		object.union({"launches": [{"processes": 4}]}, log([message("rank-alone", {})])),
		twice(2, 1),
		announced([0, 1, 2, 3], 4),
		announced([1], 2),
		itself({"host": "b"}),
		object.union(itself({"host": "a"}), {"logs": {"job": {"first": {"what": "exception"}}}}),
		# Where every rank came to the collective, none was late.
		progress(together, gave_up_early),
		progress(together, []),
	] {
		count(app_mismatch.findings) == 0 with input as document
	}
}

late(rank) := object.union({"part": "data", "own_seconds": 1.9, "others_seconds": 0.01, "wait": "allreduce", "wait_seconds": 2, "source": "b.log", "line": 1, "text": "a line"}, rank)

test_fires_where_the_others_wait_for_a_slower_rank if {
	some with_rank, said in {"Rank 1 spends": {"rank": 1}, "The process that writes b.log spends": {}}
	some f in app_mismatch.findings with input as {"logs": {"messages": [], "late": late(said)}}
	f.id == "slower"
	startswith(f.about.who, trim_suffix(with_rank, " spends"))
}

# of_world is a rank's word on itself, in a log of its own.
of_world(rank, world, master) := object.union(
	message("rank-of-world", {"of": sprintf("%d", [rank]), "world": sprintf("%d", [world]), "master": master}),
	{"order": rank, "source": sprintf("rank%d.log", [rank])},
)

test_fires_for_ranks_that_were_told_different_numbers if {
	told := {f.id | some f in app_mismatch.findings with input as log([of_world(0, 2, "a"), of_world(1, 3, "a")])}
	"told" in told
}

test_silent_for_ranks_that_agree_or_are_of_other_jobs if {
	every messages in [
		[of_world(0, 2, "a"), of_world(1, 2, "a")],
		[of_world(0, 2, "a"), of_world(1, 3, "b")],
		[of_world(0, 2, "a"), of_world(0, 3, "a")],
	] {
		count({f | some f in app_mismatch.findings with input as log(messages); f.id == "told"}) == 0
	}
}

meets(field, value, source) := {"id": "torch-store-address", "role": "setting", "text": value, "source": source, "line": 1, "order": 1, "fields": {field: value}}

test_ranks_that_meet_at_different_places if {
	lost := {"id": "torch-store-timed-out", "role": "category", "text": "", "source": "b", "line": 9, "order": 3, "fields": {}}
	every row in [
		[[meets("port", "29500", "a"), meets("port", "29501", "b"), lost], true],
		[[meets("address", "10.0.0.1", "a"), meets("address", "10.0.0.2", "b"), lost], true],
		[[meets("port", "29500", "a"), meets("port", "29500", "b"), lost], false],
		[[meets("port", "29500", "a"), meets("port", "29501", "a"), lost], false], # One job after another.
		[[meets("port", "29500", "a"), meets("address", "10.0.0.1", "b"), lost], false],
		[[meets("port", "29500", "a"), meets("port", "29501", "b")], false],
	] {
		found := {f.id | some f in app_mismatch.findings} & {"meeting"} with input as {"logs": {"messages": row[0]}}
		found == {id | id := "meeting"; row[1]}
	}
}

# began is a rank that says so a number of times.
began(rank, world, times) := object.union(of_world(rank, world, "a"), {"count": times, "source": "a.log"})

on_two_nodes := {"launches": [{"kind": "slurm", "nodes": 2, "source": "a.sh", "line": 1}]}

test_ranks_that_start_twice if {
	count(app_mismatch.findings) == 0 with input as log([object.union(began(r, 4, 2), {"role": "setting"}) | some r in [0, 1]]) # Of one node.
	every row in [
		[[began(0, 4, 2), began(1, 4, 2)], true],
		[[began(0, 4, 1), began(1, 4, 1)], false], # A part of the log.
		[[began(0, 2, 2), began(1, 2, 2)], false], # All of them, in two runs.
		[[began(0, 4, 2), began(1, 4, 1), began(2, 4, 1)], false],
		[[began(0, 2, 2)], false], # The log of rank 0, of two runs.
	] {
		found := {f.id | some f in app_mismatch.findings} & {"started-twice"} with input as object.union(log(row[0]), on_two_nodes)
		found == {id | id := "started-twice"; row[1]}
	}
}

test_how_grave_ranks_that_start_twice_are if {
	twice := object.union(log([object.union(began(r, 4, 2), {"role": "setting"}) | some r in [0, 1]]), on_two_nodes)
	every row in [[{}, "medium"], [{"texts": [{"name": "a", "topics": [{"cause": "wrong-nic", "words": "two nodes"}]}]}, "critical"]] {
		{f.severity | some f in app_mismatch.findings} == {row[1]} with input as object.union(twice, row[0])
	}
}
