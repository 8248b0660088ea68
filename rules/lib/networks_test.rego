package gpudoctor.lib.networks_test

import data.gpudoctor.lib.networks

says(order, host, text) := {
	"id": "x", "program": "nccl", "role": "setting", "text": text, "host": host,
	"source": "nccl.log", "line": order + 1, "order": order, "count": 1, "ranks": 1,
}

document(texts) := {"logs": {"messages": [says(i, row[0], row[1]) | some i, row in texts]}}

chosen(text) := {[c.name, c.address, c.place] | some c in networks.chosen with input as document([["a", text]])}

test_reads_choices if {
	chosen("a:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.5<0>") == {["eth0", "10.0.0.5", 0]}
	chosen("a:1:1 [0] NCCL INFO NET/Socket : Using [0]eno1:10.0.0.1<0> [1]veth12:fe80::1:2%veth12<0>") == {["eno1", "10.0.0.1", 0], ["veth12", "fe80::1:2", 1]}
	chosen("a:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.9.0.1<0>") == {["ib0", "10.9.0.1", 0]}
	chosen("a:1:1 [0] NCCL INFO Using network Socket") == set()
}

test_counts_machines if {
	networks.multi_node with input as document([["a", "x"], ["b", "y"]])
	not networks.multi_node with input as document([["a", "x"], ["a", "y"]])
	networks.multi_node with input as {"logs": {"messages": [], "communicators": [{"nodes": 2}]}}
	networks.multi_node with input as {"logs": {"messages": [], "communicators": [{"hosts": ["a", "b"]}]}}
	networks.multi_node with input as {"logs": {"messages": [], "networks": [{"host": "a"}, {"host": "b"}]}}
	networks.multi_node with input as {"launches": [{"nodes": 4}]}
	networks.multi_node with input as document([["", "(RayWorkerWrapper pid=248, ip=10.1.160.68) x"]])
	networks.multi_node with input as {"benchmarks": [{"nodes": 2}]}
	networks.single_node with input as {"logs": {"messages": [], "communicators": [{"nodes": 1}]}}
	not networks.single_node with input as {"logs": {"messages": []}}
	networks.met with input as {"logs": {"messages": [], "communicators": [{"nodes": 2}]}}
}

test_sees_trouble if {
	networks.troubled with input as {"logs": {"messages": [], "communicators": [{"started": 2, "completed": 1}]}}
	networks.troubled with input as {"logs": {"messages": [object.union(says(0, "a", "x"), {"role": "category"})]}}
	not networks.troubled with input as document([["a", "x"]])
}

failure(text, more) := {[f.kind, f.remote, f.hard] |
	some f in networks.failures with input as {"logs": {"messages": [object.union(object.union(says(0, "a", text), {"role": "cause"}), more)]}}
}

retries(text) := {"logs": {"messages": [object.union(says(0, "a", text), {"id": "nccl-connect-retrying"})]}}

test_sees_retries_without_end if {
	networks.troubled with input as retries("connect returned No route to host, retrying (26/34) after sleep for 2600 msec")
	not networks.troubled with input as retries("connect returned Connection refused, retrying (2/34) after sleep for 200 msec")
}

test_reads_failures if {
	failure("NCCL WARN socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host)", {}) == {["no-route", "10.0.0.4", true]}
	failure("NCCL WARN Connect to fe80::9%veth1<5> failed : Connection timed out", {}) == {["timed-out", "fe80::9", true]}
	failure("SO_ERROR: Connection refused", {"id": "gloo-connect-failed", "program": "gloo", "fields": {"remote": "127.0.0.1"}}) == {["refused", "127.0.0.1", true]}
	failure("Connection refused [10.0.0.9]:2", {"program": "gloo", "fields": {"peer": "10.0.0.9"}}) == {["refused", "10.0.0.9", true]}
	failure("nc: connect to 10.0.0.7 port 1 failed: Connection timed out", {"id": "socket-timed-out", "program": "socket"}) == {["timed-out", "10.0.0.7", false]}
	failure("NCCL INFO connect returned Connection refused, retrying (1/34)", {"id": "nccl-connect-retrying", "role": "setting"}) == {["refused", "", false]}
	failure("Call to recv from 10.0.0.1<7> failed : Connection timed out", {}) == {["timed-out", "10.0.0.1", false]}
	failure("Network is unreachable", {"role": "category"}) == {["unreachable", "", false]}
	failure("NET/IB : ibv_modify_qp failed with 110 Connection timed out", {}) == set()
	failure("Connection refused", {"program": "docker"}) == set()
}

test_knows_addresses if {
	networks.loopback("127.0.1.1")
	networks.loopback("::1")
	networks.link_local("fe80::1")
	networks.link_local("169.254.7.7")
	networks.bridge_address("172.17.0.2")
	networks.bridge_address("192.168.122.1")
	networks.bridge_address("10.88.0.3")
	not networks.bridge_address("10.0.0.3")
	networks.useless("127.0.0.1") with input as {}
	networks.useless("fe80::1") with input as {}
	networks.useless("172.17.0.1") with input as {}
	not networks.useless("172.17.3.1") with input as document([["a", "Bootstrap : Using ens5:172.17.3.2<0>"]])
}

test_reads_patterns if {
	networks.selects("eth", "eth7")
	networks.selects("=eth0", "eth0")
	not networks.selects("=eth0", "eth01")
	not networks.selects("^docker,lo", "lo")
	networks.selects("^docker,lo", "eth0")
	networks.selects("mlx5_0:1,mlx5_1:1", "mlx5_1")
	not networks.selects("ib", "eth0")
	networks.asked == "eth2" with input as document([["a", "NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth2"]])
	networks.asked == "ib0" with input as {"env": {"variables": [{"name": "NCCL_SOCKET_IFNAME", "value": "ib0", "effective": true}]}}
}

bad(texts) := {c.name | some c in networks.bad_choices with input as document(texts)}

test_judges_choices if {
	bad([["a", "Bootstrap : Using lo:127.0.0.1<0>"]]) == {"lo"}
	bad([["a", "Bootstrap : Using docker0:172.17.0.1<0>"]]) == {"docker0"}
	bad([["a", "Bootstrap : Using virbr0:10.3.0.1<0>"]]) == {"virbr0"}
	bad([["a", "Bootstrap : Using eth0:172.17.0.4<0>"]]) == set()
	bad([["a", "Bootstrap : Using ens5:172.17.0.4<0>"]]) == set()
	bad([["a", "Bootstrap : Using ip6tnl0:fe80::4%ip6tnl0<0>"]]) == {"ip6tnl0"}
	bad([["a", "Bootstrap : Using veth0:10.7.0.4<0>"]]) == set()
	bad([["a", "Bootstrap : Using [0]ens5:10.0.0.4<0> [1]veth9:fe80::1%veth9<0>"]]) == set()
}

test_judges_second_choices_by_failures if {
	first := says(0, "a", "Bootstrap : Using [0]ens5:10.0.0.4<0> [1]veth9:fe80::1%veth9<0>")
	named := object.union(says(1, "a", "NCCL WARN Connect to fe80::2%veth9<7> failed : Network is unreachable"), {"role": "cause"})
	unnamed := object.union(says(1, "a", "NCCL WARN Connect to fe80::2<7> failed : Connection timed out"), {"role": "cause"})
	{c.name | some c in networks.bad_choices with input as {"logs": {"messages": [first, named]}}} == {"veth9"}
	{c.name | some c in networks.bad_choices with input as {"logs": {"messages": [first, unnamed]}}} == {"veth9"}
}

test_judges_a_container_by_failures if {
	first := says(0, "a", "Bootstrap : Using eth0:172.17.0.4<0>")
	failed := object.union(says(1, "b", "NCCL WARN Connect to 172.17.0.4<7> failed : No route to host"), {"role": "cause"})
	{c.name | some c in networks.bad_choices with input as {"logs": {"messages": [first, failed]}}} == {"eth0"}
}

test_finds_scattered_networks if {
	a := says(0, "a", "Bootstrap : Using eth0:10.0.0.4<0>")
	b := says(1, "b", "Bootstrap : Using ens3:192.168.7.4<0>")
	near := says(1, "b", "Bootstrap : Using ens3:10.0.3.4<0>")
	failed := object.union(says(2, "b", "NCCL WARN Connect to 10.0.0.4<7> failed : Connection timed out"), {"role": "cause"})
	networks.scattered with input as {"logs": {"messages": [a, b, failed]}}
	not networks.scattered with input as {"logs": {"messages": [a, near, failed]}}
	not networks.scattered with input as {"logs": {"messages": [a, b]}}
}

test_reads_lists_of_interfaces if {
	lo := {"name": "lo", "kind": "loopback", "state": "up"}
	eth := {"name": "eth0", "kind": "ethernet", "state": "down", "host": "n1"}
	object.keys(networks.listed) == {"n1"} with input as {"nics": {"interfaces": [object.union(lo, {"host": "n1"}), eth]}}
	count(object.keys(networks.listed)) == 0 with input as {"nics": {"interfaces": [eth]}}
	networks.dead(eth)
	networks.dead({"state": "up", "carrier": false})
	not networks.dead(lo)
}

test_expects_efa if {
	networks.efa_expected with input as {"pci": {"devices": [{"address": "0000:00:1e.0", "vendor": "0x1d0f", "device": "0xefa1"}]}}
	networks.efa_expected with input as {"launches": [{"resources": {"vpc.amazonaws.com/efa": "4"}}]}
	networks.efa_expected with input as {"env": {"variables": [{"name": "FI_PROVIDER", "value": "efa", "effective": true}]}}
	networks.efa_expected with input as {"env": {"variables": [{"name": "FI_EFA_USE_DEVICE_RDMA", "value": "1", "effective": true}]}}
	networks.efa_expected with input as {"nics": {"rdma": [{"device": "rdmap16s27"}]}}
	networks.efa_expected with input as {"logs": {"messages": [object.union(says(0, "a", "x"), {"id": "ofi-platform"})]}}
	not networks.efa_expected with input as {"pci": {"devices": [{"address": "0000:00:1e.0", "vendor": "0x1d0f", "device": "0xec20"}]}}
}

test_efa_by_its_provider if {
	several := document([["a", "x"], ["b", "y"]])
	networks.efa_expected with input as object.union(several, {"nics": {"providers": ["efa", "tcp"]}})
	not networks.efa_expected with input as object.union(several, {"nics": {"providers": ["tcp"]}})
	not networks.efa_expected with input as object.union(document([["a", "x"]]), {"nics": {"providers": ["efa"]}})
	networks.efa_expected with input as {"nics": {"providers": ["efa"]}, "logs": {"messages": [], "transports": [{"kind": "net"}]}}
}
