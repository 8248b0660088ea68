package gpudoctor.lib.setting_costs_test

import data.gpudoctor.lib.setting_costs

ran(name, unset, gbps) := {
	"name": name, "outcome": "ok", "unset": unset,
	"operations": [{"name": "all-reduce", "bytes": 67108864, "outcome": "ok", "bus_gbps": gbps}],
}

# probed is a machine with a variable, and the rates with and without it.
probed(variable, with_gbps, without_gbps) := {
	"env": {"variables": [{"name": variable, "value": "1", "source": "environment", "effective": true}]},
	"collectives": {"outcome": "ok", "gpus": ["a", "b"], "arms": [ran("as-configured", [], with_gbps), ran("cleaned", [variable], without_gbps)]},
}

test_measured if {
	some found in setting_costs.measured with input as probed("NCCL_MAX_NCHANNELS", 20, 328)
	found.severity == "high"
	found.confidence == "confirmed"
	found.params.variables == ["NCCL_MAX_NCHANNELS"]
	setting_costs.told("NCCL_MAX_NCHANNELS") with input as probed("NCCL_MAX_NCHANNELS", 20, 328)
}

test_by_half if {
	some found in setting_costs.measured with input as probed("NCCL_MAX_NCHANNELS", 200, 328)
	found.severity == "medium"
}

# Noise, and what the table weighs by what transfers lose, are not told here.
test_not_told if {
	count(setting_costs.measured) == 0 with input as probed("NCCL_MAX_NCHANNELS", 320, 328)
	not setting_costs.told("NCCL_MAX_NCHANNELS") with input as probed("NCCL_MAX_NCHANNELS", 320, 328)
	count(setting_costs.measured) == 0 with input as {}
}

test_shown if {
	setting_costs.shown("1") == "1"
	count(setting_costs.shown(sprintf("%s", [concat("", [c | some _ in numbers.range(1, 100); c := "x"])]))) == 63
}
