package gpudoctor.rules.roce_gid_test

import data.gpudoctor.rules.roce_gid

said(id, text) := {
	"id": id, "program": "nccl", "role": "cause", "text": text,
	"source": "a.log", "line": 7, "order": 2, "count": 1, "ranks": 1,
}

with_fields(m, fields) := object.union(m, {"fields": fields})

old_error := with_fields(said("nccl-ib-completion-retry-exceeded", "Got completion with error 12"), {"form": "error"})
new_error := with_fields(said("nccl-ib-completion-retry-exceeded", "Got completion with status=12"), {"local_gid": "::ffff:10.4.0.1", "remote_gid": "::ffff:10.5.0.9"})

log(messages) := {"logs": {"messages": messages}}
nccl(version) := {"software": [{"name": "nccl", "version": version, "manager": "log", "source": "a.log", "line": 1}]}
index(n) := {"env": {"variables": [{"name": "NCCL_IB_GID_INDEX", "value": sprintf("%d", [n]), "source": "a.log", "line": 2, "effective": true}]}}

gids := [
	{"index": 0, "gid": "fe80::1", "type": "RoCE v1"},
	{"index": 1, "gid": "fe80::1", "type": "RoCE v2"},
	{"index": 2, "gid": "::ffff:10.0.0.1", "type": "RoCE v1"},
	{"index": 3, "gid": "::ffff:10.0.0.1", "type": "RoCE v2"},
]

table := {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "link_layer": "Ethernet", "gids": gids, "source": "g", "line": 1}]}}
roce := {"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "link_layer": "Ethernet", "source": "g", "line": 1}]}}

merged(parts) := object.union_n(parts)

test_fires_index_that_should_go if {
	some f in roce_gid.findings with input as merged([log([new_error]), nccl("2.27.3"), index(3)])
	f.confidence == "likely"
	f.remedies == ["set-gid-index", "unset-env"]
	f.params.variable == "NCCL_IB_GID_INDEX"
	contains(f.message, "10.4.0.1")
}

test_fires_index_without_a_table if {
	some f in roce_gid.findings with input as merged([log([old_error]), roce, index(3)])
	f.confidence == "possible"
	contains(f.message, "show_gids")
}

test_fires_wrong_index if {
	every n in [1, 2] {
		some f in roce_gid.findings with input as merged([log([old_error]), table, index(n)])
		f.confidence == "likely"
		f.params.gid_index == 3
		contains(f.message, "at index 3")
		some g in roce_gid.findings with input as merged([table, index(n)])
		g.subject == "NCCL_IB_GID_INDEX"
		g.severity == {true: "high", false: "low"}[n == 9]
	}
}

test_fires_refused if {
	some f in roce_gid.findings with input as merged([log([with_fields(said("nccl-ib-modify-qp-invalid", "x"), {"error": "Invalid argument"})]), roce, nccl("2.23.4")])
	f.confidence == "likely"
	contains(f.message, "queue pair")
}

test_fires_for_other_programs if {
	m := object.union(said("rdma-retry-exceeded", "x"), {"program": "rdma", "fields": {"link": "RoCE"}})
	some f in roce_gid.findings with input as log([m])
	f.confidence == "possible"
	contains(f.message, "ib_write_bw")
}

test_fires_gid_missing if {
	some f in roce_gid.findings with input as log([said("rdma-gid-missing", "No suitable GID found on mlx5_bond_1/")])
	f.confidence == "confirmed"
}

test_unresolvable if {
	count(roce_gid.findings) == 0 with input as {}
	count(roce_gid.missing) == 0 with input as log([old_error])
}

# ENODEV: the GID's interface is not in this network namespace.
test_fires_for_a_gid_without_an_interface if {
	some f in roce_gid.findings with input as merged([log([with_fields(said("nccl-ib-modify-qp-unreachable", "x"), {"error": "No such device"})]), roce])
	f.remedies == ["set-gid-index", "set-ib-hca", "other"]
	contains(f.message, "network namespace")
}

test_fires_for_a_table_that_cannot_be_read if {
	some f in roce_gid.findings with input as log([said("nccl-ib-gid-unread", "NET/IB: read failed in ncclIbRoceGetVersionNum: Invalid argument")])
	[f.id, f.remedies[0]] == ["unread", "set-gid-index"]
	call := object.union(said("nccl-ib-call-failed", "Call to ibv_query_gid failed"), {"fields": {"call": "ibv_query_gid"}})
	count(roce_gid.findings) == 1 with input as log([call])
	other := object.union(call, {"fields": {"call": "ibv_open_device"}})
	count(roce_gid.findings) == 0 with input as log([other])
}

port(name, gids) := {
	"device": name, "port": 1, "state": "active", "link_layer": "Ethernet", "gids": gids,
	"source": sprintf("/sys/class/infiniband/%s/ports/1", [name]), "line": 0,
}

machine(ports) := {"nics": {"rdma": ports}}

test_silent if {
	count(roce_gid.in_tables) == 0 with input as machine([object.union(port("mlx5_0", []), {"source": "a.txt", "line": 1})])
	count(roce_gid.in_tables) == 0 with input as machine([object.union(port("rdmap0s6", []), {"link_layer": "Unknown"})])
}
