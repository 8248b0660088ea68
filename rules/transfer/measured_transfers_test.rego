package gpudoctor.rules.measured_transfers_test

import data.gpudoctor.rules.measured_transfers

point(a, b, gbps) := {"a": a, "b": b, "gbps": gbps, "expected_gbps": 450, "threshold": 0.8, "basis": "18 NVLinks", "line": 7}
copies(points) := {"tool": "nvbandwidth", "test": "device_to_device_memcpy_write_ce", "what": "copy", "points": points, "source": "nvb.txt", "line": 3, "complete": true}

collective(gbps) := {
	"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "source": "t.txt", "line": 1, "complete": true,
	"points": [{"bytes": 1073741824, "gbps": gbps, "expected_gbps": 450, "threshold": 0.35, "basis": "the NVLinks of H100", "line": 12}],
}

env(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "t.txt", "effective": true}]}}

test_fires_medium if {
	some f in measured_transfers.findings with input as {"benchmarks": [copies([point("GPU0", "GPU1", 300)])]}
	f.severity == "medium"
}

test_fires_collective if {
	some f in measured_transfers.findings with input as {"benchmarks": [collective(60)]}
	f.remedies[0] == "nccl-p2p-level"
	channel := {"kind": "net", "network": "Socket", "same_host": true, "channels": 2, "a": 0, "b": 1, "source": "t.txt", "line": 6}
	some g in measured_transfers.findings with input as {"benchmarks": [collective(3)], "logs": {"transports": [channel]}}
	contains(g.message, "over TCP")
	g.evidence[1].source == "t.txt:6"
	some h in measured_transfers.findings with input as {"benchmarks": [collective(3)], "logs": {"transports": [object.union(channel, {"same_host": false})]}}
	contains(h.message, "less than a tenth")
}

test_fires_wrong_values if {
	some f in measured_transfers.findings with input as {"benchmarks": [object.union(collective(440), {"wrong": 12})]}
	f.severity == "critical"
}

test_silent_on_purpose if {
	count(measured_transfers.findings) == 0 with input as object.union({"benchmarks": [collective(27)]}, env("NCCL_P2P_DISABLE", "1"))
}
