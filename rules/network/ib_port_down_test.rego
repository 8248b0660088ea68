package gpudoctor.rules.ib_port_down_test

import data.gpudoctor.rules.ib_port_down

said(id, order, more) := object.union(
	{"id": id, "program": "nccl", "role": "cause", "text": "x", "source": "a.log", "line": order + 1, "order": order, "count": 1, "ranks": 1},
	more,
)

kernel(id, fields) := said(id, 1, {"fields": fields})
port_error := said("nccl-ib-port-error", 0, {"host": "node5"})
given_up := said("nccl-ib-completion-retry-exceeded", 3, {"host": "node5"})
cable(problem) := kernel("mlx5-cable", {"address": "0000:5e:00.0", "problem": problem})
log(messages) := {"logs": {"messages": messages}}
ports(list) := {"nics": {"rdma": [object.union({"device": "mlx5_0", "port": 1, "source": "ibstat", "line": 1}, more) | some more in list]}}
up := {"device": "mlx5_1", "state": "active", "link_layer": "InfiniBand"}
down := {"state": "down", "link_layer": "InfiniBand", "physical_state": "Polling"}
initialized := {"state": "init", "link_layer": "InfiniBand"}
hca(value) := {"env": {"variables": [{"name": "NCCL_IB_HCA", "value": value, "source": "x", "effective": true}]}}
both_used := hca("=mlx5_0:1,mlx5_1")

test_findings if {
	every row in [
		[[log([port_error, said("nccl-ib-port-active", 1, {"host": "node5", "role": "setting"})])], "", "medium"],
		[[log([port_error, said("x-y", 2, {"host": "node5"})])], "", "critical"],
		[[log([cable("unplugged"), given_up])], "0000:5e:00.0", "critical"],
		[[log([cable("error, Bad or shorted cable/module")])], "0000:5e:00.0", "medium"],
		[[log([kernel("mlx5-link-down", {"address": "0000:5e:00.0"})])], "0000:5e:00.0", "low"],
		[[ports([up, down])], "mlx5_0:1", "info"],
		[[ports([up, initialized])], "mlx5_0:1", "info"],
		[[ports([{"state": "down", "physical_state": "Disabled"}])], "mlx5_0:1", "info"],
		[[ports([initialized])], "mlx5_0:1", "medium"],
		[[ports([down]), {"logs": {"communicators": [{"nodes": 2}]}}], "mlx5_0:1", "medium"],
		[[ports([up, down]), both_used], "mlx5_0:1", "high"],
		[[ports([up, down]), log([given_up])], "mlx5_0:1", "high"],
		[[ports([up, down]), both_used, log([given_up])], "mlx5_0:1", "critical"],
		[[ports([down]), log([said("nccl-ib-no-device", 0, {})])], "mlx5_0:1", "critical"],
		[[ports([object.remove(up, ["link_layer"]), {"state": "down"}]), hca("^mlx5_0")], "mlx5_0:1", "info"],
	] {
		some f in ib_port_down.findings with input as object.union_n(row[0])
		[contains(f.subject, row[1]), f.severity] == [true, row[2]]
	}
}

on(host, devices) := [{"device": d, "port": 1, "host": host, "state": "active", "source": "n.log", "line": 1} | some d in devices]

test_left_out_on_one_host if {
	job := {
		"logs": {"networks": [{"host": h, "name": "IB"} | some h in ["a", "b"]]},
		"nics": {"rdma": array.concat(on("a", ["mlx5_0", "mlx5_1"]), on("b", ["mlx5_0"]))},
	}
	some f in ib_port_down.findings with input as object.union(job, both_used)
	[f.id, f.subject] == ["left-out", "mlx5_1 on b"]
	count(ib_port_down.findings) == 0 with input as object.union(job, hca("=mlx5_0"))
	each := array.concat(both_used.env.variables, hca("=mlx5_0").env.variables)
	count(ib_port_down.findings) == 0 with input as object.union(job, {"env": {"variables": each}})
}

test_what_is_said if {
	some f in ib_port_down.findings with input as log([said("nccl-ib-device-fatal", 0, {"text": "local catastrophic error"})])
	[f.subject, contains(f.message, "catastrophic")] == ["network", true]
	some h in ib_port_down.findings with input as object.union(ports([up]), log([given_up]))
	[h.id, h.confidence] == ["unanswered", "possible"]
}

test_silent_link_came_up if {
	came_up := [kernel("mlx5-link-down", {"address": "0000:5e:00.0"}), said("mlx5-link-up", 2, {"fields": {"address": "0000:5e:00.0"}})]
	count(ib_port_down.findings) == 0 with input as log(came_up)
}
