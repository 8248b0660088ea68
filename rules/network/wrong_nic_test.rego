package gpudoctor.rules.wrong_nic_test

import data.gpudoctor.rules.wrong_nic

base := {"program": "nccl", "role": "cause", "source": "nccl.log", "count": 1, "ranks": 1, "text": "x"}
log(rows) := {"logs": {"messages": [object.union_n([base, {"order": i, "line": i + 1}, row]) | some i, row in rows]}}
using(host, interfaces) := {"id": "nccl-bootstrap-interface", "role": "setting", "host": host, "fields": {"interfaces": interfaces}}
failed(host, remote, error) := {"id": "nccl-connect-failed", "host": host, "fields": {"remote": remote, "error": error}}
timed_out(remote) := failed("b", remote, "Connection timed out")
variable(name, value) := {"env": {"variables": [{"name": name, "value": value, "effective": true}]}}
asked(value) := variable("NCCL_SOCKET_IFNAME", value)

# A failure that is none of a connection, where the ranks had not met.
other_failure := log([using("a", "docker0:172.17.0.1<0>"), using("b", "docker0:172.17.0.1<0>"), {"id": "x", "host": "b"}])

# listed are interfaces as a text lists them.
listed(interfaces) := {"nics": {"interfaces": [object.union({"state": "up", "source": "ip.txt", "line": i + 1}, n) |
	some i, n in interfaces
]}}

eth0(host, more) := listed([object.union({"host": host}, n) | some n in [
	{"name": "lo", "kind": "loopback", "addresses": ["127.0.0.1/8"]},
	object.union({"name": "eth0", "kind": "ethernet", "addresses": ["10.0.0.1/24"]}, more),
]])

hca(value) := object.union(
	variable("NCCL_IB_HCA", value),
	{"nics": {"rdma": [{"device": "mlx5_0", "source": "ibstat", "line": 1}, {"device": "mlx5_1", "source": "ibstat", "line": 9}]}},
)

joined(local, remote) := log([{"id": "nccl-ib-modify-qp-timed-out", "fields": {"local_gid": local, "remote_gid": remote}}])

# unreached are NICs of these layers, over one of which a connection failed.
unreached(layers) := object.union(
	log([{"id": "nccl-ib-modify-qp-unreachable", "fields": {"error": "Network is unreachable"}}]),
	{"nics": {"rdma": [{"device": sprintf("mlx5_%d", [i]), "port": 1, "link_layer": layer, "source": "a.log", "line": i} | some i, layer in layers]}},
)

test_lo_is_not_excluded if {
	nodes := {"launches": [{"kind": "slurm", "nodes": 2}]}
	every row in [
		[asked("^docker0"), {"low"}],
		[object.union(asked("^docker0"), nodes), {"high"}],
		[object.union(asked("^docker,lo"), nodes), set()],
		[object.union(asked("eth0"), nodes), set()],
		[object.union(asked("^docker0"), log([using("a", "eth0:10.0.0.1<0>")])), set()], # It took another one.
	] {
		{f.severity | some f in wrong_nic.findings; f.grade == "lo-left"} == row[1] with input as row[0]
	}
}

test_findings if {
	every row in [
		[[log([timed_out("172.17.0.1")])], {"peer-address"}],
		[[log([failed("b", "127.0.0.1", "Connection refused")])], set()],
		[[log([failed("b", "127.0.0.1", "Connection refused"), using("a", "eth0:10.0.0.2<0>")])], {"peer-address"}],
		[[log([using("a", "eth0:10.0.0.4<0>"), using("b", "ens3:192.168.7.4<0>"), timed_out("10.0.0.4")])], {"scattered"}],
		[[log([using("a", "eth0:10.0.0.4<0>"), using("b", "ens3:192.168.7.4<0>"), failed("b", "10.0.0.4", "Connection refused")])], set()],
		[[log([using("a", "eth0:10.0.0.4<0>"), using("b", "ens3:10.0.3.4<0>"), timed_out("10.0.0.4")])], set()],
		[[eth0("", {}), asked("ib0"), log([timed_out("10.0.0.4")])], {"no-such-interface"}],
		[[eth0("", {}), asked("ens"), log([using("pod", "ens5:10.0.0.4<0>")])], set()],
		[[eth0("", {"state": "down"}), asked("eth0")], {"no-such-interface"}],
		[[eth0("", {"addresses": []}), asked("eth0")], {"no-such-interface"}],
		[[eth0("", {}), variable("GLOO_SOCKET_IFNAME", "eth")], {"no-such-interface"}],
		[[eth0("", {}), asked("eth")], set()],
		[[log([{"id": "nccl-connect-no-route", "fields": {"error": "Network is unreachable"}}])], {"no-route"}],
		[[hca("mlx5_8:1")], {"no-such-nic"}],
		[[unreached(["InfiniBand", "Ethernet"])], {"mixed"}],
		[[joined("::ffff:10.77.0.2", "::ffff:10.88.0.3")], {"rails"}],
		[[joined("::ffff:10.77.0.2", "::ffff:10.77.9.3")], set()],
		[[joined("fe80::1", "::ffff:10.77.9.3")], set()],
		[[unreached(["InfiniBand", "Ethernet"]), variable("NCCL_IB_HCA", "mlx5_0")], set()],
		[[unreached(["Ethernet", "Ethernet"])], set()],
		[[hca("mlx5_0:1,mlx5_1:1")], set()],
		[[log([using("a", "veth12:169.254.3.4<0>"), using("b", "veth9:169.254.3.5<0>")])], set()],
		[[log([using("a", "ens5:10.12.4.77<0>"), using("b", "ens5:10.12.4.80<0>")])], set()],
		[[other_failure], {"choice"}],
		[[other_failure, {"logs": {"communicators": [{"nodes": 2, "started": 2, "completed": 2}]}}], set()],
		[
			[log([using("a", "virbr7:10.4.4.1<0>"), using("b", "eth0:10.0.0.2<0>"), {"id": "x", "role": "category", "host": "b"}])],
			{"choice"},
		],
		[
			[log([{"id": "torch-store-timed-out", "role": "category", "fields": {"host": "172.17.0.2"}}]), {"launches": [{"nodes": 2}]}],
			{"peer-address"},
		],
		[[log([using("a", "eth0:172.17.0.2<0>"), using("b", "eth0:172.17.0.3<0>"), {"id": "x", "host": "b"}])], set()],
	] {
		found := wrong_nic.findings with input as object.union_n(row[0])
		{f.id | some f in found} == row[1]
	}
}

test_unresolvable if count(wrong_nic.missing) == 1 with input as {}
