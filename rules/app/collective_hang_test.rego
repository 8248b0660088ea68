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
}

test_unresolvable if count(collective_hang.findings) == 0 with input as {}

test_missing_of_some_ranks if count(collective_hang.missing) == 1 with input as job({"progress": [at(0)]})

test_nothing_missing_where_ranks_stand_apart if {
	count(collective_hang.missing) == 0 with input as job({"progress": [at(0), object.union(at(1), {"seq": 8})]})
}
