package gpudoctor.rules.collective_slow_test

import data.gpudoctor.rules.collective_slow

sum(gbps) := {
	"name": "all-reduce", "bytes": 67108864, "outcome": "ok", "bus_gbps": gbps,
	"expected_gbps": 450, "threshold": 0.35, "basis": "the NVLinks of NVIDIA H200",
}

small := {"name": "all-reduce", "bytes": 8, "outcome": "ok", "bus_gbps": 0.001}

via(kind, network) := [object.union({"a": 0, "b": 1, "channels": 2, "kind": kind}, network)]
arm(name, gbps, more) := object.union({"name": name, "outcome": "ok", "operations": [small, sum(gbps)], "ranks": []}, more)

probed(arms) := {"collectives": {
	"outcome": arms[0].outcome, "library": "nccl", "gpus": ["0000:06:00.0", "0000:07:00.0"], "arms": arms,
}}

configured(gbps, more) := probed([arm("as-configured", gbps, more)])
set(settings) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true} | some name, value in settings]}}

test_fires_sockets if {
	some f in collective_slow.findings with input as configured(4.2, {"transports": via("net", {"network": "Socket"})})
	contains(f.message, "over the network (net/Socket)")
}

test_fires_ways if {
	every shown in [
		{"by": via("net", {"network": "IB"}), "words": "over the network (net/IB)"},
		{"by": via("p2p-cumem", {}), "words": "from GPU to GPU"},
		{"by": [], "words": "counts as good"},
	] {
		some f in collective_slow.findings with input as configured(100, {"transports": shown.by})
		contains(f.message, shown.words)
		f.severity == "medium"
	}
}

# What the probe calls slow is a finding, whatever figures are missing.
test_fires_without_figures if {
	some f in collective_slow.findings with input as probed([{"name": "as-configured", "outcome": "slow", "reason": "the links carry more", "operations": []}])
	contains(f.message, "the links carry more")
}

test_fires_low_where_asked if {
	asked := {"NCCL_P2P_DISABLE": "1"}
	some f in collective_slow.findings with input as object.union(configured(27.6, {}), set(asked))
	f.remedies == ["other"]
	contains(f.message, "NCCL_P2P_DISABLE, as set here, may have asked for that")
	costs := probed([arm("as-configured", 27.6, {}), arm("cleaned", 328, {"unset": ["NCCL_P2P_DISABLE"]})])
	some g in collective_slow.findings with input as object.union(costs, set(asked))
	g.severity == "low"
}

test_unresolvable if {
	count(collective_slow.findings) == 0 with input as {}
	unjudged := probed([{"name": "as-configured", "outcome": "ok", "operations": [object.remove(sum(4.2), ["bus_gbps"])]}])
	count(collective_slow.findings) == 0 with input as unjudged
	count(collective_slow.missing) == 1 with input as unjudged
}

test_not_applicable if {
	collective_slow.not_applicable == {"no library or no GPU for collectives"} with input as {"collectives": {"outcome": "unknown", "cause": "no-library", "gpus": [], "arms": []}}
	collective_slow.not_applicable == {"the collectives had one GPU"} with input as {"collectives": {"outcome": "ok", "gpus": ["a"], "arms": [{"name": "as-configured", "outcome": "ok"}]}}
}
