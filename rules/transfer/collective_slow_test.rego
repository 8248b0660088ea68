package gpudoctor.rules.collective_slow_test

import data.gpudoctor.rules.collective_slow

slow := {"collectives": {"outcome": "slow", "library": "nccl", "gpus": ["0000:06:00.0", "0000:07:00.0"], "arms": [{
	"name": "as-configured", "outcome": "slow", "reason": "all-reduce at 140 GB/s is 31 % of the 450 GB/s",
	"transports": [{"kind": "net", "network": "Socket"}, {"kind": "shm", "network": ""}],
	"operations": [{"name": "all-reduce", "bytes": 67108864, "outcome": "slow", "bus_gbps": 140, "fraction": 0.31, "threshold": 0.35}],
}]}}

test_fires if {
	some f in collective_slow.findings with input as slow
	f.severity == "medium"
	f.about.ways == {"net/Socket", "shm"}
	f.remedies[0] == "upgrade-nccl"
}

test_fires_low_where_asked if {
	set := {"env": {"variables": [{"name": "NCCL_P2P_DISABLE", "value": "1", "source": "environment", "effective": true}]}}
	some f in collective_slow.findings with input as object.union(slow, set)
	[f.severity, f.remedies, f.about.asked] == ["low", ["other"], {"NCCL_P2P_DISABLE"}]
}

test_silent if {
	count(collective_slow.findings) == 0 with input as {}
	count(collective_slow.findings) == 0 with input as {"collectives": {"outcome": "ok", "gpus": [], "arms": [{"name": "as-configured", "outcome": "ok"}]}}
}

test_not_applicable if {
	collective_slow.not_applicable == {"no library or no GPU for collectives"} with input as {"collectives": {"outcome": "unknown", "cause": "no-library", "gpus": [], "arms": []}}
	collective_slow.not_applicable == {"the collectives had one GPU"} with input as {"collectives": {"outcome": "ok", "gpus": ["a"], "arms": [{"name": "as-configured", "outcome": "ok"}]}}
}
