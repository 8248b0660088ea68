package gpudoctor.rules.wrong_nic_test

import data.gpudoctor.rules.wrong_nic

base := {"program": "nccl", "role": "cause", "source": "nccl.log", "count": 1, "ranks": 1, "text": "x"}
log(rows) := {"logs": {"messages": [object.union_n([base, {"order": i, "line": i + 1}, row]) | some i, row in rows]}}
using(host, interfaces) := {"id": "nccl-bootstrap-interface", "role": "setting", "host": host, "fields": {"interfaces": interfaces}}
failed(host, remote, error) := {"id": "nccl-connect-failed", "host": host, "fields": {"remote": remote, "error": error}}
timed_out(remote) := failed("b", remote, "Connection timed out")
variable(name, value) := {"env": {"variables": [{"name": name, "value": value, "effective": true}]}}
asked(value) := variable("NCCL_SOCKET_IFNAME", value)
bridged := log([using("a", "docker0:172.17.0.1<0>"), using("b", "docker0:172.17.0.1<0>"), timed_out("172.17.0.1")])

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

test_findings if {
	every row in [
		[[log([timed_out("172.17.0.1")])], {["critical", "likely"]}],
		[[log([failed("b", "127.0.0.1", "Connection refused"), using("a", "eth0:10.0.0.2<0>")])], {["critical", "likely"]}],
		[[eth0("", {}), asked("ib0"), log([timed_out("10.0.0.4")])], {["critical", "likely"]}],
		[[eth0("", {}), asked("ens"), log([using("pod", "ens5:10.0.0.4<0>")])], set()],
		[[eth0("", {"state": "down", "addresses": []}), asked("eth0")], {["high", "confirmed"]}],
		[[hca("mlx5_8:1")], {["high", "confirmed"]}],
		[[hca("mlx5_0:1,mlx5_1:1")], set()],
		[[log([using("a", "ens5:10.12.4.77<0>"), using("b", "ens5:10.12.4.80<0>")])], set()],
		[[other_failure], {["critical", "likely"]}],
		[[other_failure, {"logs": {"communicators": [{"nodes": 2, "started": 2, "completed": 2}]}}], set()],
		[[log([using("a", "eth0:172.17.0.2<0>"), using("b", "eth0:172.17.0.3<0>"), {"id": "x", "host": "b"}])], set()],
	] {
		found := wrong_nic.findings with input as object.union_n(row[0])
		{[object.get(f, "severity", "critical"), object.get(f, "confidence", "likely")] | some f in found} == row[1]
	}
}

# The store of PyTorch, all of whose addresses failed.
store(more) := log([using("a", "eth0:10.0.0.1<0>"), using("b", "eth0:10.0.0.2<0>"), {
	"id": "torch-store-connect-failed", "program": "pytorch", "host": "b",
	"fields": object.union({"host": "10.9.0.4", "error": "Network is unreachable"}, more),
}])

test_what_is_said if {
	every row in [
		[[bridged, asked("docker0")], "selected it"],
		[[bridged, asked("^lo")], "must also exclude"],
		[[log([{"id": "nccl-connect-no-route", "fields": {"error": "Network is unreachable"}}])], "no route to the network"],
		[[eth0("n4", {}), asked("ib0")], "on n4"],
		[[eth0("", {}), variable("GLOO_SOCKET_IFNAME", "eth")], "GLOO_SOCKET_IFNAME=eth matches no interface"],
		[[eth0("", {"addresses": []}), asked("eth0")], "has no address"],
		[
			[log([using("a", "virbr7:10.4.4.1<0>"), using("b", "eth0:10.0.0.2<0>"), {"id": "x", "role": "category", "host": "b"}])],
			"ends inside the machine",
		],
		[
			[log([{"id": "torch-store-timed-out", "role": "category", "fields": {"host": "172.17.0.2"}}]), {"launches": [{"nodes": 2}]}],
			"172.17.0.2",
		],
		[[store({"any_host": "head", "host": "0.0.0.0"})], "no host has that address"],
	] {
		some f in wrong_nic.findings with input as object.union_n(row[0])
		contains(f.message, row[1])
	}
}

test_unresolvable if count(wrong_nic.missing) == 1 with input as {}
