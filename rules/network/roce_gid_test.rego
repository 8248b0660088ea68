package gpudoctor.rules.roce_gid_test

import data.gpudoctor.rules.roce_gid

said(id, more) := {"logs": {"messages": [object.union(
	{"id": id, "program": "nccl", "role": "cause", "text": "x", "source": "a.log", "line": 7, "order": 2, "count": 1, "ranks": 1},
	more,
)]}}

old_error := said("nccl-ib-completion-retry-exceeded", {"fields": {"form": "error"}})
new_error := said("nccl-ib-completion-retry-exceeded", {"fields": {"local_gid": "::ffff:10.4.0.1", "remote_gid": "::ffff:10.5.0.9"}})
nccl(version) := {"software": [{"name": "nccl", "version": version, "manager": "log", "source": "a.log", "line": 1}]}
index(n) := {"env": {"variables": [{"name": "NCCL_IB_GID_INDEX", "value": n, "source": "a.log", "line": 2, "effective": true}]}}
port(more) := {"nics": {"rdma": [object.union({"device": "mlx5_0", "port": 1, "state": "active", "link_layer": "Ethernet", "source": "g", "line": 1}, more)]}}

table := port({"gids": [
	{"index": 0, "gid": "fe80::1", "type": "RoCE v1"},
	{"index": 1, "gid": "fe80::1", "type": "RoCE v2"},
	{"index": 2, "gid": "::ffff:10.0.0.1", "type": "RoCE v1"},
	{"index": 3, "gid": "::ffff:10.0.0.1", "type": "RoCE v2"},
]})

test_findings if {
	every row in [
		[[new_error, nccl("2.27.3"), index("3")], "possible"],
		[[old_error, port({}), index("3")], "possible"],
		[[old_error, table, index("1")], "likely"],
		[[old_error, table, index("2")], "likely"],
		[[said("nccl-ib-modify-qp-invalid", {"fields": {"error": "Invalid argument"}}), port({}), nccl("2.23.4")], "likely"],
		[[said("rdma-retry-exceeded", {"program": "rdma", "fields": {"link": "RoCE"}})], "possible"],
		# ENODEV: the GID's interface is not in this network namespace.
		[[said("nccl-ib-modify-qp-unreachable", {"fields": {"error": "No such device"}}), port({})], "likely"],
		[[said("rdma-modify-qp-failed", {"text": "Failed to modify QP 7 to RTR"})], "possible"], # perftest says no reason.
	] {
		some f in roce_gid.findings with input as object.union_n(row[0])
		f.confidence == row[1]
	}
	some g in roce_gid.findings with input as object.union_n([old_error, table, index("1")])
	endswith(g.about.hint[0], "at index 3")
}

test_advice if {
	some f in roce_gid.findings with input as object.union_n([new_error, nccl("2.27.3"), index("3")])
	[f.remedies, f.params.variable] == [["set-gid-index", "unset-env", "set-ib-hca"], "NCCL_IB_GID_INDEX"]
	every n, severity in {"1": "low", "0": "low", "9": "high"} {
		some h in roce_gid.findings with input as object.union(table, index(n))
		[h.subject, h.severity] == ["NCCL_IB_GID_INDEX", severity]
	}
}

test_silent if {
	count(roce_gid.findings) == 0 with input as object.union(new_error, nccl("2.27.3")) # Both GIDs hold addresses.
	count(roce_gid.findings) == 0 with input as port({"gids": [], "source": "a.txt"})
	count(roce_gid.findings) == 0 with input as said("rdma-modify-qp-failed", {"fields": {"error": "Cannot allocate memory"}})
	count(roce_gid.findings) == 0 with input as port({"gids": [], "link_layer": "Unknown", "source": "/sys/class/infiniband/rdmap0s6/ports/1", "line": 0})
}

test_unresolvable if count(roce_gid.findings) == 0 with input as {}
