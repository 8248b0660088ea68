package gpudoctor.lib.connections_test

import data.gpudoctor.lib.connections

base := {"program": "nccl", "source": "nccl.log", "count": 1, "ranks": 1}

log(rows) := {"logs": {"messages": [object.union(object.union(base, {"order": i, "line": i + 1, "text": row.id}), row) | some i, row in rows]}}

using(host, interfaces) := {"id": "nccl-bootstrap-interface", "role": "setting", "host": host, "fields": {"interfaces": interfaces}}

failed(id, fields) := {"id": id, "role": "cause", "fields": fields}

timed_out(remote) := failed("nccl-connect-timed-out", {"remote": remote, "error": "Connection timed out"})

chosen(interfaces) := {[c.name, c.address, c.place] | some c in connections.chosen with input as log([using("a", interfaces)])}

test_reads_choices if {
	chosen("eth0:10.0.0.5<0>") == {["eth0", "10.0.0.5", 0]}
	chosen("[0]eno1:10.0.0.1<0> [1]veth12:fe80::1:2%veth12<0>") == {["eno1", "10.0.0.1", 0], ["veth12", "fe80::1:2", 1]}
	count(connections.first_choices) == 1 with input as log([using("a", "eth0:10.0.0.5<0>")])
	count(connections.first_choices) == 0 with input as log([object.union(using("a", "eth0:10.0.0.5<0>"), {"id": "nccl-net-interface"})])
}

same(b) := {[c.message.host, c.name] | some c in connections.bad_choices with input as log([using("a", "ens3:10.7.0.1<0>"), using("b", b)])}

refused(error, host) := log([
	using("a", "eth0:10.0.0.5<0>"),
	object.union(failed("nccl-connect-failed", {"remote": "10.0.0.5", "error": error}), {"host": host}),
])

own := {f.remote | some f in connections.failures; connections.to_itself(f)}

test_knows_own_address if {
	own == {"10.0.0.5"} with input as refused("Connection refused", "a")
	own == {"10.0.0.5"} with input as refused("Connection refused", "")
	own == set() with input as refused("Connection refused", "b")
	own == set() with input as refused("Connection timed out", "a")
}

again(error, more) := {f.kind | some f in connections.failures with input as log([object.union(failed("torch-store-retry", {"error": error}), more)])}

test_tries_again_and_again if {
	again("No route to host", {"count": 3}) == {"no-route"}
	again("No route to host", {"count": 3, "steps_after": 1}) == set()
	again("No route to host", {"count": 2}) == set()
	again("Connection refused", {"count": 9}) == set()
}

# Two hosts with one address, as of the bridge inside each.
test_judges_equal_addresses if {
	same("ens3:10.7.0.1<0>") == {["a", "ens3"], ["b", "ens3"]}
	same("ens3:10.7.0.2<0>") == set()
}

failure(id, fields) := {[f.kind, f.remote, f.hard] | some f in connections.failures with input as log([failed(id, fields)])}

test_reads_failures if {
	failure("nccl-connect-no-route", {"remote": "10.0.0.4", "error": "No route to host"}) == {["no-route", "10.0.0.4", true]}
	failure("nccl-connect-no-route", {"remote": "10.0.0.4", "error": "Network is unreachable"}) == {["unreachable", "10.0.0.4", true]}
	failure("nccl-connect-failed", {"error": "Software caused connection abort"}) == {["aborted", "", true]}
	failure("nccl-connect-failed", {"error": "Bad file descriptor"}) == set()
	silent := failed("torch-store-silent", {"host": "10.0.0.4", "port": "29500"})
	count(connections.failures) == 1 with input as log([silent])
	count(connections.failures) == 0 with input as log([silent, failed("torch-store-key-missing", {"key": "x"})])
	failure("gloo-connect-loopback", {"remote": "127.0.0.1", "error": "Connection refused"}) == {["refused", "127.0.0.1", true]}
	failure("gloo-dial-failed", {"remote": "10.0.0.7", "error": "Connection refused"}) == {["refused", "10.0.0.7", true]}
	failure("gloo-connect-timeout", {"remote": "10.0.0.7"}) == {["timed-out", "10.0.0.7", true]}
	failure("hydra-connect-failed", {"error": "Connection refused"}) == {["refused", "", true]}
	failure("nccl-connect-retrying", {"error": "Connection refused"}) == {["refused", "", false]}
	failure("nccl-socket-timed-out", {"remote": "10.0.0.1", "error": "Connection timed out"}) == {["timed-out", "10.0.0.1", false]}
	failure("torch-store-timed-out", {"host": "10.0.0.1"}) == {["timed-out", "10.0.0.1", false]}
	failure("torch-store-timed-out", {"host": "node7"}) == {["timed-out", "", false]}
	failure("socket-refused", {}) == {["refused", "", false]}
	failure("nccl-uds-send-failed", {"error": "Connection refused"}) == set()
	failure("nccl-ib-modify-qp-timed-out", {"error": "Connection timed out"}) == set()
}

# A connection that fails behind what Open MPI's daemons try, and one of whoever goes on to work.
test_knows_what_was_tried if {
	tries := [{"id": "openmpi-oob-connecting", "role": "setting", "text": "", "source": "a", "line": 1, "order": 0, "count": 1, "fields": {"remote": "192.168.122.7"}}]
	refused := {"id": "socket-no-route", "role": "category", "text": "", "source": "a", "line": 2, "order": 1, "count": 1}
	{[f.remote, f.hard] | some f in connections.failures} == {["192.168.122.7", true]} with input as log(array.concat(tries, [refused]))
	count(connections.failures) == 0 with input as log([object.union(refused, {"steps_after": 3})])
}

meeting(address, remote) := log([
	{"id": "torch-store-connected", "role": "setting", "text": "", "source": "a", "line": 1, "order": 0, "count": 1},
	{"id": "torch-store-address", "role": "setting", "text": "", "source": "a", "line": 1, "order": 0, "count": 1, "fields": {"address": address}},
	object.union(failed("gloo-dial-failed", {"remote": remote, "error": "No route to host"}), {"order": 2}),
])

beside(address, remote) := found if {
	found := {f.remote | some f in connections.failures; connections.beside(f)} with input as meeting(address, remote)
}

test_knows_other_networks if {
	beside("10.20.0.1", "172.30.7.1") == {"172.30.7.1"}
	beside("192.168.1.1", "192.168.3.1") == {"192.168.3.1"}
	beside("10.20.0.1", "10.20.9.1") == set()
	beside("127.0.0.1", "10.20.9.1") == set()
}

test_knows_addresses_of_no_use if {
	connections.useless("127.0.0.1") with input as {}
	connections.useless("fe80::1") with input as {}
	connections.useless("172.17.0.1") with input as {}
	not connections.useless("172.17.3.1") with input as log([using("a", "ens5:172.17.3.2<0>")])
	not connections.useless("10.0.0.1") with input as {}
}

bad(rows) := {c.name | some c in connections.bad_choices with input as log(rows)}

test_judges_choices if {
	bad([using("a", "lo:127.0.0.1<0>")]) == {"lo"}
	bad([using("a", "docker0:172.17.0.1<0>")]) == {"docker0"}
	bad([using("a", "virbr0:10.3.0.1<0>")]) == {"virbr0"}
	bad([using("a", "eth0:172.17.0.4<0>")]) == set()
	bad([using("a", "ens5:172.17.0.4<0>")]) == set()
	bad([using("a", "ip6tnl0:fe80::4%ip6tnl0<0>")]) == {"ip6tnl0"}
	bad([using("a", "veth0:10.7.0.4<0>")]) == set()
	bad([using("a", "[0]ens5:10.0.0.4<0> [1]veth9:fe80::1%veth9<0>")]) == set()
}

test_judges_second_choices_by_failures if {
	first := using("a", "[0]ens5:10.0.0.4<0> [1]veth9:fe80::1%veth9<0>")
	bad([first, failed("nccl-connect-no-route", {"remote": "10.7.0.2", "interface": "veth9", "error": "No route to host"})]) == {"veth9"}
	bad([first, timed_out("fe80::2")]) == {"veth9"}
	bad([first, timed_out("10.0.0.5")]) == set()
}
