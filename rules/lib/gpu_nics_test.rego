package gpudoctor.lib.gpu_nics_test

import data.gpudoctor.lib.gpu_nics

pair(gpu, nic, path) := {"a": gpu, "b": nic, "kind": "gpu-nic", "path": path, "bridges": []}

machine := {
	"links": {"pairs": [
		pair("GPU1", "mlx5_0", "PIX"), pair("GPU1", "mlx5_1", "SYS"),
		pair("GPU4", "mlx5_0", "SYS"), pair("GPU4", "mlx5_1", "PXB"), pair("GPU5", "eth9", ""),
	]},
	"nics": {"rdma": [{"device": "mlx5_0", "port": 1}, {"device": "mlx5_1", "port": 1}]},
}

table(gpu, gbps, threshold) := {
	"tool": "perftest", "test": "RDMA_Write BW", "what": "network", "memory": "gpu", "source": "bw.txt", "line": 4, "complete": true,
	"points": [{"a": "mlx5_0", "b": gpu, "bytes": 65536, "gbps": gbps, "expected_gbps": 25, "threshold": threshold, "basis": "the port of mlx5_0", "line": 9}],
}

test_nearest if {
	gpu_nics.nearest == {"GPU1": {"mlx5_0"}, "GPU4": {"mlx5_1"}} with input as machine
	gpu_nics.direct({"PXB", "SYS"})
	not gpu_nics.direct({"PHB", "NODE", "SYS"})
}

# Addresses are named by their RDMA device, and NICs without one are left out.
test_nearest_by_address if {
	gpu_nics.nearest == {"0000:18:00.0": {"mlx5_0"}} with input as {
		"links": {"pairs": [pair("0000:18:00.0", "0000:1a:00.0", "PXB"), pair("0000:18:00.0", "0000:1b:00.0", "PXB")]},
		"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "address": "0000:1a:00.0"}]},
	}
	gpu_nics.nearest == {"0000:18:00.0": {"0000:1b:00.0"}} with input as {"links": {"pairs": [pair("0000:18:00.0", "0000:1b:00.0", "PXB")]}}
}

test_far if {
	found := gpu_nics.far_findings with input as object.union(machine, {"benchmarks": [table("GPU4", 15.5, 0.38), table("GPU1", 24.4, 0.8)]})
	count(found) == 1
	some f in found
	f.message == "mlx5_0: 124 of 200 Gb/s from the memory of GPU4, whose path to it crosses the link between the processors: normal for such a path; nearer to GPU4: mlx5_1"
	f.severity == "info"
}

# What is slower than its path allows is a fault, and what reaches the port's rate is none.
test_not_far if {
	count(gpu_nics.far_findings) == 0 with input as object.union(machine, {"benchmarks": [table("GPU4", 5, 0.38), table("GPU4", 24, 0.38), table("GPU1", 15, 0.8)]})
}
