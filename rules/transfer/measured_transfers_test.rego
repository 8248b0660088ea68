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
	f.severity == "high"
	f.remedies[0] == "nccl-p2p-level"
}

staged(kind) := {"logs": {"transports": [{"kind": kind, "network": "Socket", "same_host": true, "channels": 2, "a": 0, "b": 1, "source": "t.txt", "line": 5}]}}

test_fires_collective_staged if {
	some f in measured_transfers.findings with input as object.union({"benchmarks": [collective(3.2)]}, staged("shm"))
	f.severity == "high"
	contains(f.message, "through host memory instead of from GPU to GPU (via SHM, t.txt:5)")
	f.evidence[1].source == "t.txt:5"
	some g in measured_transfers.findings with input as object.union({"benchmarks": [collective(3.2)]}, staged("net"))
	contains(g.message, "over TCP")
}

test_fires_wrong_values if {
	some f in measured_transfers.findings with input as {"benchmarks": [object.union(collective(440), {"wrong": 12})]}
	f.severity == "critical"
}

test_silent_on_purpose if {
	count(measured_transfers.findings) == 0 with input as object.union({"benchmarks": [collective(27)]}, env("NCCL_P2P_DISABLE", "1"))
	count(measured_transfers.findings) == 1 with input as object.union({"benchmarks": [collective(27)]}, env("NCCL_P2P_DISABLE", "0"))
}

test_unresolvable if {
	count(measured_transfers.findings) == 0 with input as {}
	count(measured_transfers.missing) == 1 with input as {}
	count(measured_transfers.findings) == 0 with input as {"benchmarks": [{"tool": "x", "test": "y", "what": "copy", "points": [{"a": "GPU0", "b": "GPU1", "gbps": 3, "line": 1}]}]}
}
