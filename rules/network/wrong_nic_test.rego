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

two(first, second) := listed([{"name": "eno1", "addresses": [first]}, {"name": "enp3s0", "addresses": [second]}])

both := [using("a", "enp3s0:192.168.5.15<0>"), using("b", "enp3s0:192.168.5.13<0>")]
over_tcp := {"logs": {"networks": [{"name": "Socket", "source": "nccl.log", "line": 9, "count": 1}]}}

rsip := {"name": "rsip", "addresses": ["172.30.12.4/32"]}

# Interfaces of which one has an address without a network, and a peer that is not in the network of the other.
apart(used, interface) := object.union(
	log([using("a", used), failed("a", "172.30.12.9", "Connection timed out")]),
	listed([{"name": "ib0", "addresses": ["10.128.0.4/14"]}, interface]),
)

hca(value) := object.union(
	variable("NCCL_IB_HCA", value),
	{"nics": {"rdma": [{"device": "mlx5_0", "source": "ibstat", "line": 1}, {"device": "mlx5_1", "source": "ibstat", "line": 9}]}},
)

test_findings if {
	every row in [
		[[log([timed_out("172.17.0.1")])], {["critical", "likely"]}],
		[[log([failed("b", "127.0.0.1", "Connection refused")])], {["high", "possible"]}],
		[[log([failed("b", "127.0.0.1", "Connection refused"), using("a", "eth0:10.0.0.2<0>")])], {["critical", "likely"]}],
		[[log([using("a", "eth0:10.0.0.4<0>"), using("b", "ens3:192.168.7.4<0>"), timed_out("10.0.0.4")])], {["critical", "likely"]}],
		[[log([using("a", "eth0:10.0.0.4<0>"), using("b", "ens3:192.168.7.4<0>"), failed("b", "10.0.0.4", "Connection refused")])], set()],
		[[log([using("a", "eth0:10.0.0.4<0>"), using("b", "ens3:10.0.3.4<0>"), timed_out("10.0.0.4")])], set()],
		[[eth0("", {}), asked("ib0"), log([timed_out("10.0.0.4")])], {["critical", "likely"]}],
		[[eth0("", {}), asked("ens"), log([using("pod", "ens5:10.0.0.4<0>")])], set()],
		[[eth0("", {"state": "down", "addresses": []}), asked("eth0")], {["high", "confirmed"]}],
		[[{"launches": [{"nodes": 2}]}, asked("lo")], {["high", "likely"]}],
		[[asked("lo")], set()],
		[[hca("mlx5_8:1")], {["high", "confirmed"]}],
		[[hca("mlx5_0:1,mlx5_1:1")], set()],
		[[log([using("a", "veth12:169.254.3.4<0>"), using("b", "veth9:169.254.3.5<0>")])], set()],
		[[log([using("a", "ens5:10.12.4.77<0>"), using("b", "ens5:10.12.4.80<0>")])], set()],
		[[other_failure], {["critical", "likely"]}],
		[[other_failure, {"logs": {"communicators": [{"nodes": 2, "started": 2, "completed": 2}]}}], set()],
		[[log([using("a", "eth0:172.17.0.2<0>"), using("b", "eth0:172.17.0.3<0>"), {"id": "x", "host": "b"}])], set()],
		# Two interfaces in one network.
		[[log(both), over_tcp, two("192.168.3.15/20", "192.168.5.15/20")], {["medium", "likely"]}],
		[[log([both[0]]), over_tcp, two("192.168.3.15/20", "192.168.5.15/20")], {["low", "likely"]}],
		[[log(both), over_tcp, two("192.168.3.15/24", "192.168.5.15/24")], set()],
		[[log(both), two("192.168.3.15/20", "192.168.5.15/20")], set()],
		[[apart("rsip:172.30.12.4<0>", rsip), listed([rsip])], set()],
		[[apart("rsip:172.30.12.4<0>", rsip)], {["critical", "likely"]}],
		[[apart("rsip:172.30.12.4<0>", rsip), asked("rsip")], set()],
		[[apart("wg0:10.9.0.2<0>", {"name": "wg0", "kind": "tunnel", "addresses": ["10.9.0.2/24"]})], {["critical", "likely"]}],
	] {
		found := wrong_nic.findings with input as object.union_n(row[0])
		{[object.get(f, "severity", "critical"), object.get(f, "confidence", "likely")] | some f in found} == row[1]
	}
}

# The ranks met over one network and connect over another.
two_networks(command) := object.union_n([
	log([failed("b", "192.168.19.14", "No route to host")]),
	{"launches": [{"kind": "torchrun", "command": command, "source": "run.txt", "line": 1}]},
	listed([{"name": "em1", "kind": "ethernet", "addresses": ["192.168.19.15/24"]}, {"name": "em4", "kind": "ethernet", "addresses": ["10.20.4.12/24"]}]),
])

# The store of PyTorch, all of whose addresses failed.
store(more) := log([using("a", "eth0:10.0.0.1<0>"), using("b", "eth0:10.0.0.2<0>"), {
	"id": "torch-store-connect-failed", "program": "pytorch", "host": "b",
	"fields": object.union({"host": "10.9.0.4", "error": "Network is unreachable"}, more),
}])

test_what_is_said if {
	every row in [
		[[bridged, asked("docker0")], "NCCL_SOCKET_IFNAME=docker0 is set"],
		[[log([{"id": "nccl-connect-no-route", "fields": {"error": "Network is unreachable"}}])], "network of a peer: "],
		[[eth0("n4", {}), asked("ib0")], "on n4"],
		[[eth0("", {}), variable("GLOO_SOCKET_IFNAME", "eth")], "GLOO_SOCKET_IFNAME=eth matches no interface"],
		[[eth0("", {"addresses": []}), asked("eth0")], "has no address"],
		[
			[log([using("a", "virbr7:10.4.4.1<0>"), using("b", "eth0:10.0.0.2<0>"), {"id": "x", "role": "category", "host": "b"}])],
			"peers cannot reach it",
		],
		[
			[log([{"id": "torch-store-timed-out", "role": "category", "fields": {"host": "172.17.0.2"}}]), {"launches": [{"nodes": 2}]}],
			"172.17.0.2",
		],
		[[store({"any_host": "head", "host": "0.0.0.0"})], "tried to connect to 0.0.0.0"],
		[[two_networks(["torchrun", "--rdzv_endpoint=10.20.4.11:29500"])], "which em4 reaches"],
		[[two_networks(["torchrun", "--master_addr", "10.20.4.11"])], "over the network of em1"],
		[[two_networks([]), variable("MASTER_ADDR", "10.20.4.11")], "rendezvous address of the ranks is 10.20.4.11"],
		[[store({"any_host": "head"})], "no route to the network of a peer (10.9.0.4)"],
	] {
		some f in wrong_nic.findings with input as object.union_n(row[0])
		contains(f.message, row[1])
	}
	found := wrong_nic.findings with input as store({})
	not "no-route" in {f.id | some f in found}
}

test_unresolvable if count(wrong_nic.missing) == 1 with input as {}
