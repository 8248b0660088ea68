package gpudoctor.rules.ib_port_down_test

import data.gpudoctor.rules.ib_port_down

said(id, text, order) := {
	"id": id, "program": "nccl", "role": "cause", "text": text, "host": "node5",
	"source": "a.log", "line": order + 1, "order": order, "count": 1, "ranks": 1,
}

kernel(id, fields, order) := object.union(object.remove(said(id, id, order), ["host"]), {"fields": fields})

port_error := said("nccl-ib-port-error", "NET/IB : Got async event : port error", 0)
given_up := said("nccl-ib-completion-retry-exceeded", "NET/IB : Got completion from peer 10.0.0.2<4> with error 12, opcode 0", 3)

log(messages) := {"logs": {"messages": messages}}
port(device, state, rest) := object.union({"device": device, "port": 1, "state": state, "source": "ibstat", "line": 1}, rest)
ports(list) := {"nics": {"rdma": list}}

test_fires_port_that_came_back if {
	back := object.union(said("nccl-ib-port-active", "port active", 1), {"role": "setting"})
	some f in ib_port_down.findings with input as log([port_error, back])
	f.severity == "medium"
	some g in ib_port_down.findings with input as log([port_error, said("x-y", "unhandled system error", 2)])
	g.severity == "critical"
}

test_fires_device_error if {
	m := object.remove(said("nccl-ib-device-fatal", "local catastrophic error", 0), ["host"])
	some f in ib_port_down.findings with input as log([m])
	contains(f.message, "catastrophic")
}

test_fires_kernel if {
	cable := kernel("mlx5-cable", {"address": "0000:5e:00.0", "problem": "unplugged"}, 1)
	some f in ib_port_down.findings with input as log([cable])
	f.subject == "0000:5e:00.0"
	f.severity == "info"
	some g in ib_port_down.findings with input as log([cable, given_up])
	g.severity == "critical"
	some h in ib_port_down.findings with input as log([kernel("mlx5-cable", {"address": "0000:5e:00.0", "problem": "error, Bad or shorted cable/module"}, 1)])
	h.severity == "medium"
	some i in ib_port_down.findings with input as log([kernel("mlx5-health", {"problem": "health compromised"}, 1)])
	i.severity == "high"
	i.subject == "network"
	some j in ib_port_down.findings with input as log([kernel("mlx5-link-down", {"interface": "ens1"}, 1)])
	contains(j.message, "the link is down")
}

test_silent_link_came_up if {
	count(ib_port_down.findings) == 0 with input as log([
		kernel("mlx5-link-down", {"address": "0000:5e:00.0"}, 1),
		kernel("mlx5-link-up", {"address": "0000:5e:00.0"}, 2),
	])
}

test_fires_ports_by_use if {
	up := port("mlx5_1", "active", {"link_layer": "InfiniBand"})
	down := port("mlx5_0", "down", {"link_layer": "InfiniBand", "physical_state": "Polling"})
	hca := {"env": {"variables": [{"name": "NCCL_IB_HCA", "value": "=mlx5_0:1,mlx5_1", "source": "x", "effective": true}]}}
	cases := [
		[ports([up, down]), "info"],
		[ports([up, port("mlx5_0", "init", {"link_layer": "InfiniBand"})]), "low"],
		[ports([port("mlx5_0", "down", {"physical_state": "Disabled"})]), "low"],
		[ports([port("mlx5_0", "init", {"link_layer": "InfiniBand"})]), "medium"],
		[object.union(ports([down]), {"logs": {"communicators": [{"nodes": 2}]}}), "medium"],
		[object.union(ports([up, down]), hca), "high"],
		[object.union(ports([up, down]), log([given_up])), "high"],
		[object.union(object.union(ports([up, down]), hca), log([given_up])), "critical"],
		[object.union(ports([down]), log([said("nccl-ib-no-device", "NET/IB : No device found.", 0)])), "critical"],
	]
	every c in cases {
		some f in ib_port_down.findings with input as c[0]
		contains(f.subject, "mlx5_0:1")
		f.severity == c[1]
	}
}

test_fires_infiniband_given_up if {
	some f in ib_port_down.findings with input as object.union(ports([port("mlx5_1", "active", {"link_layer": "InfiniBand"})]), log([given_up]))
	f.id == "unanswered"
	f.confidence == "possible"
}

test_silent if {
	up := port("mlx5_1", "active", {})
	excluded := {"env": {"variables": [{"name": "NCCL_IB_HCA", "value": "^mlx5_0", "source": "x", "effective": true}]}}
	every f in ib_port_down.findings {
		f.severity == "info"
	} with input as object.union(ports([up, port("mlx5_0", "down", {})]), excluded)
}

test_unresolvable if {
	count(ib_port_down.findings) == 0 with input as {}
	count(ib_port_down.missing) == 0 with input as log([port_error])
}
