package gpudoctor.rules.wrong_nic_test

import data.gpudoctor.rules.wrong_nic

base := {"program": "nccl", "role": "cause", "source": "nccl.log", "count": 1, "ranks": 1}

log(rows) := {"logs": {"messages": [object.union(object.union(base, {"order": i, "line": i + 1}), row) | some i, row in rows]}}
using(host, interfaces) := {"id": "nccl-bootstrap-interface", "role": "setting", "host": host, "text": "Bootstrap : Using x", "fields": {"interfaces": interfaces}}
failed(host, remote, error) := {"id": "nccl-connect-failed", "host": host, "text": "NCCL WARN Connect to a peer failed", "fields": {"remote": remote, "error": error}}
asked(value) := {"env": {"variables": [{"name": "NCCL_SOCKET_IFNAME", "value": value, "effective": true}]}}

# grades are those of the metadata where a finding has none.
grades(document) := {[object.get(f, "severity", "critical"), object.get(f, "confidence", "likely")] | some f in wrong_nic.findings with input as document}
kinds(document) := {f.id | some f in wrong_nic.findings with input as document}

says(document, words) if {
	some f in wrong_nic.findings with input as document
	contains(f.message, words)
}

test_fires_on_a_bridge_between_machines if {
	document := log([using("a", "docker0:172.17.0.1<0>"), using("b", "docker0:172.17.0.1<0>"), failed("b", "172.17.0.1", "Connection timed out")])
	says(object.union(document, asked("docker0")), "selected it")
	says(object.union(document, asked("^lo")), "must also exclude")
}

test_fires_on_an_address_of_a_bridge if {
	grades(log([failed("b", "172.17.0.1", "Connection timed out")])) == {["critical", "likely"]}
	grades(log([failed("b", "127.0.0.1", "Connection refused")])) == {["high", "possible"]}
	grades(log([failed("b", "127.0.0.1", "Connection refused"), using("a", "eth0:10.0.0.2<0>")])) == {["critical", "likely"]}
}

test_fires_on_different_networks if {
	document := log([using("a", "eth0:10.0.0.4<0>"), using("b", "ens3:192.168.7.4<0>"), failed("b", "10.0.0.4", "Connection timed out")])
	grades(document) == {["critical", "likely"]}
}

test_names_no_peer_where_none_is_told if {
	says(log([{"id": "nccl-connect-no-route", "text": "NCCL WARN x", "fields": {"error": "Network is unreachable"}}]), "(not named)")
}

interface(name, state, addresses) := {"name": name, "kind": "ethernet", "state": state, "addresses": addresses, "source": "ip.txt", "line": 2}
list(interfaces) := {"nics": {"interfaces": array.concat([{"name": "lo", "kind": "loopback", "state": "up", "addresses": ["127.0.0.1/8"], "source": "ip.txt", "line": 1}], interfaces)}}

test_compares_with_the_list if {
	up := list([interface("eth0", "up", ["10.0.0.1/24"])])
	grades(object.union(object.union(up, asked("ib0")), log([failed("b", "10.0.0.4", "Connection timed out")]))) == {["critical", "likely"]}
	grades(object.union(object.union(up, asked("ens")), log([using("pod", "ens5:10.0.0.4<0>")]))) == set()
	grades(object.union(list([interface("eth0", "down", [])]), asked("eth0"))) == {["high", "confirmed"]}
	on := {"nics": {"interfaces": [object.union(n, {"host": "n4"}) | some n in up.nics.interfaces]}}
	says(object.union(on, asked("ib0")), "on n4")
}

test_fires_on_loopback_by_variable if {
	grades(object.union({"launches": [{"nodes": 2}]}, asked("lo"))) == {["high", "likely"]}
	grades(asked("lo")) == set()
}

test_compares_rdma_devices if {
	document := {
		"env": {"variables": [{"name": "NCCL_IB_HCA", "value": "mlx5_8:1", "effective": true}]},
		"nics": {"rdma": [{"device": "mlx5_0", "source": "ibstat", "line": 1}, {"device": "mlx5_1", "source": "ibstat", "line": 9}]},
	}
	grades(document) == {["high", "confirmed"]}
	good := json.patch(document, [{"op": "replace", "path": "env/variables/0/value", "value": "mlx5_0:1,mlx5_1:1"}])
	grades(good) == set()
}

test_unresolvable if count(wrong_nic.missing) == 1 with input as {}

# A job that hangs says nothing: an address of one cable next to one of a network is enough.
test_fires_without_a_word_of_failure if {
	grades(log([using("a", "veth12:169.254.3.4<0>"), using("b", "veth9:169.254.3.5<0>")])) == set()
}

listed(interfaces) := {"nics": {"interfaces": [object.union({"state": "up", "source": "ip.txt", "line": i + 1}, n) | some i, n in interfaces]}}
over_tcp(rows) := object.union(log(rows), {"logs": {"messages": log(rows).logs.messages, "networks": [{"name": "Socket", "source": "nccl.log", "line": 9, "count": 1}]}})
two(a, b) := listed([{"name": "eno1", "addresses": [a]}, {"name": "enp3s0", "addresses": [b]}])

test_fires_on_interfaces_in_one_network if {
	rows := [using("a", "enp3s0:192.168.5.15<0>"), using("b", "enp3s0:192.168.5.13<0>")]
	document := object.union(over_tcp(rows), two("192.168.3.15/20", "192.168.5.15/20"))
	grades(document) == {["medium", "likely"]}
	grades(object.union(over_tcp([rows[0]]), two("192.168.3.15/20", "192.168.5.15/20"))) == {["low", "likely"]}
	grades(object.union(over_tcp(rows), two("192.168.3.15/24", "192.168.5.15/24"))) == set()
	grades(object.union(log(rows), two("192.168.3.15/20", "192.168.5.15/20"))) == set()
}

test_fires_on_an_address_without_a_network if {
	rows := [using("a", "rsip:172.30.12.4<0>"), failed("a", "172.30.12.9", "Connection timed out")]
	interfaces := [{"name": "ib0", "addresses": ["10.128.0.4/14"]}, {"name": "rsip", "addresses": ["172.30.12.4/32"]}]
	document := object.union(log(rows), listed(interfaces))
	grades(object.union(document, asked("rsip"))) == set()
	grades(object.union(log([using("a", "wg0:10.9.0.2<0>"), rows[1]]), listed([interfaces[0], {"name": "wg0", "kind": "tunnel", "addresses": ["10.9.0.2/24"]}]))) == {["critical", "likely"]}
}

# The ranks met over one network and connect over another.
two_networks(command) := object.union(log([failed("b", "192.168.19.14", "No route to host")]), {
	"launches": [{"kind": "torchrun", "command": command, "source": "run.txt", "line": 1}],
	"nics": {"interfaces": [
		{"name": "em1", "state": "up", "kind": "ethernet", "addresses": ["192.168.19.15/24"], "source": "ip.txt", "line": 2},
		{"name": "em4", "state": "up", "kind": "ethernet", "addresses": ["10.20.4.12/24"], "source": "ip.txt", "line": 3},
	]},
})

test_fires_where_ranks_met_elsewhere if {
	variable := object.union(two_networks([]), {"env": {"variables": [{"name": "MASTER_ADDR", "value": "10.20.4.11", "effective": true}]}})
	says(variable, "rendezvous address of the ranks is 10.20.4.11")
}

# The store of PyTorch, all of whose addresses failed, and one that no host has.
test_fires_where_pytorch_gave_up if {
	store := {"id": "torch-store-connect-failed", "program": "pytorch", "host": "b", "text": "DistNetworkError", "fields": {"host": "10.9.0.4", "any_host": "head", "error": "Network is unreachable"}}
	document := log([using("a", "eth0:10.0.0.1<0>"), using("b", "eth0:10.0.0.2<0>"), store])
	says(document, "no route to the network of a peer (10.9.0.4)")
	one := json.patch(document, [{"op": "remove", "path": "/logs/messages/2/fields/any_host"}])
	not "no-route" in kinds(one)
}
