package gpudoctor.rules.collective_hang_test

import data.gpudoctor.rules.collective_hang

at(rank) := {
	"group": "0(default_pg)", "rank": rank, "seq": 7, "op": "ALLREDUCE", "elements": 4, "enqueued": 9, "completed": 6,
	"text": sprintf("rank %d", [rank]), "source": "a.log", "line": rank + 1,
}

timeout := {
	"id": "torch-watchdog-timeout", "program": "pytorch", "role": "category", "text": "timeout", "source": "a.log", "line": 1, "order": 0, "count": 2, "ranks": 2,
	"fields": {"op": "ALLREDUCE", "seq": "7"},
}

job(more) := {"logs": object.union(
	{
		"messages": [timeout], "progress": [at(0), at(1)],
		"communicators": [{"id": "0x1", "ranks": 2, "nodes": 1, "library": "nccl", "source": "a.log", "line": 1}],
	},
	more,
)}

channel(kind, network) := {"kind": kind, "network": network, "channels": 2, "a": 0, "b": 1, "source": "a.log", "line": 2}

causes(f) := [c.cause | some c in f.candidates]

test_fires_on_one_host if {
	some f in collective_hang.findings with input as job({"transports": [channel("p2p-ipc", "")]})
	f.id == "on-one-host"
	f.confidence == "likely"
	contains(f.message, "All 2 ranks wait in ALLREDUCE number 7 of process group 0(default_pg)")
	contains(f.message, "direct access between GPUs")
	causes(f)[0] == "p2p-broken-platform"
	count(f.evidence) == 2
}

test_fires_without_channels if {
	some f in collective_hang.findings with input as job({})
	contains(f.message, "NCCL_DEBUG=INFO")
	causes(f)[0] == "p2p-broken-platform"
}

test_fires_between_hosts if {
	nodes := [{"id": "0x1", "ranks": 2, "nodes": 2, "library": "nccl", "source": "a.log", "line": 1}]
	some f in collective_hang.findings with input as job({"communicators": nodes, "transports": [channel("p2p-cumem", ""), channel("net", "IB")]})
	f.id == "between-hosts"
	causes(f)[0] == "ib-port-down"
	some g in collective_hang.findings with input as job({"communicators": nodes, "transports": [channel("net", "Socket")]})
	causes(g) == ["wrong-nic", "firewall"]
	some h in collective_hang.findings with input as job({"communicators": nodes})
	causes(h)[0] == "wrong-nic"
	some i in collective_hang.findings with input as job({"transports": [object.union(channel("net", "AWS Libfabric"), {"same_host": false})]})
	causes(i)[0] == "ofi-plugin"
}

test_fires_lower_with_several_communicators if {
	two := [{"id": id, "ranks": 2, "nodes": 1, "library": "nccl", "source": "a.log", "line": 1} | some id in ["0x1", "0x2"]]
	some f in collective_hang.findings with input as job({"communicators": two})
	f.confidence == "possible"
	f.severity == "medium"
}

test_silent if {
	# One of the ranks was not heard.
	count(collective_hang.findings) == 0 with input as job({"progress": [at(0)]})

	# A cause is stated, or a rank died.
	stated := object.union(timeout, {"id": "nccl-x", "role": "cause"})
	count(collective_hang.findings) == 0 with input as job({"messages": [timeout, stated]})
	died := {"what": "exception", "class": "KeyError", "said": "'x'", "uncaught": true, "reporter": "python", "text": "x", "source": "b.log", "line": 1, "begins": 1, "order": 0, "count": 1}
	count(collective_hang.findings) == 0 with input as job({"deaths": [died]})
}

test_unresolvable if {
	count(collective_hang.findings) == 0 with input as {}
	count(collective_hang.missing) == 1 with input as {}
}

test_missing_without_progress if {
	some m in collective_hang.missing with input as job({"progress": []})
	m.fact == "logs.progress"
}

test_missing_of_some_ranks if count(collective_hang.missing) == 1 with input as job({"progress": [at(0)]})

test_nothing_missing_where_all_wait if count(collective_hang.missing) == 0 with input as job({})

test_nothing_missing_where_ranks_stand_apart if {
	count(collective_hang.missing) == 0 with input as job({"progress": [at(0), object.union(at(1), {"seq": 8})]})
}

test_missing_without_log if count(collective_hang.missing) == 1 with input as {}
