package gpudoctor.lib.collective_cost_test

import data.gpudoctor.lib.collective_cost

ran(name, outcome, unset, bytes, gbps) := {
	"name": name, "outcome": outcome, "unset": unset,
	"operations": [{"name": "all-reduce", "bytes": 8, "outcome": "ok"}, {"name": "all-reduce", "bytes": bytes, "outcome": "ok", "bus_gbps": gbps}],
}

probed(arms) := {"collectives": {"outcome": "ok", "gpus": ["a", "b"], "arms": arms}}

configured := ran("as-configured", "ok", [], 67108864, 27.6)
both := ran("cleaned", "ok", ["NCCL_B", "NCCL_A"], 67108864, 328)

test_unknown if {
	every arms in [
		[configured, ran("cleaned", "ok", ["NCCL_A"], 67108864, 30)],
		[configured, ran("cleaned", "ok", [], 67108864, 328)],
		[configured, ran("p2p-off", "ok", ["NCCL_A"], 67108864, 328)],
		[object.union(configured, {"outcome": "corrupt"}), both],
	] {
		not collective_cost.slower with input as probed(arms)
	}
}

test_in_use if {
	used := {"gpus": {"devices": [{"address": "a", "processes": [{"pid": 7}]}]}}
	not collective_cost.slower with input as object.union(probed([configured, both]), used)
}

test_fewest if {
	one := ran("without", "ok", ["NCCL_A"], 67108864, 320)
	collective_cost.slower.variables == ["NCCL_A"] with input as probed([configured, both, one])
	collective_cost.slower.variables == ["NCCL_A", "NCCL_B"] with input as probed([configured, both])
}
