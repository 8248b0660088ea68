package gpudoctor.lib.roce_tables_test

import data.gpudoctor.lib.roce_tables

port(name, gids) := {
	"device": name, "port": 1, "state": "active", "link_layer": "Ethernet", "gids": gids,
	"source": sprintf("/sys/class/infiniband/%s/ports/1", [name]), "line": 0,
}

machine(ports) := {"nics": {"rdma": ports}}

v1 := {"index": 0, "gid": "fe80::1", "type": "RoCE v1"}

v2 := {"index": 1, "gid": "fe80::1", "type": "RoCE v2"}

test_empty if {
	some f in roce_tables.found with input as machine([port("mlx5_0", [])])
	[f.id, f.subject, f.severity] == ["no-gid", "mlx5_0:1", "high"]
	some g in roce_tables.found with input as machine([port("mlx5_0", []), port("mlx5_1", [v1, v2])])
	g.severity == "medium"
	inside := object.union(machine([port("mlx5_0", [])]), {"container": {"inside": true, "device_nodes": []}})
	some h in roce_tables.found with input as inside
	h.severity == "low"
	contains(h.message, "network namespace")
	passed := object.union(machine([port("mlx5_0", [])]), {"container": {"inside": true, "device_nodes": [{"path": "/dev/infiniband/uverbs0", "access": "rw"}]}})
	some i in roce_tables.found with input as passed
	i.severity == "high"
}

test_only_v1 if {
	some f in roce_tables.found with input as machine([port("mlx5_0", [v1])])
	[f.id, f.severity] == ["only-v1", "low"]
}

test_silent if {
	count(roce_tables.found) == 0 with input as machine([port("mlx5_0", [v1, v2])])
	count(roce_tables.found) == 0 with input as machine([port("mlx5_0", [{"index": 0, "gid": "fe80::1"}])])
	count(roce_tables.found) == 0 with input as machine([object.remove(port("mlx5_0", []), ["gids"])])
	count(roce_tables.found) == 0 with input as machine([object.union(port("mlx5_0", []), {"state": "down"})])
	count(roce_tables.found) == 0 with input as machine([object.union(port("mlx5_0", []), {"source": "a.txt", "line": 1})])
	count(roce_tables.found) == 0 with input as machine([object.union(port("rdmap0s6", []), {"link_layer": "Unknown"})])
}
