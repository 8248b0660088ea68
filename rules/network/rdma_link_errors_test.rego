package gpudoctor.rules.rdma_link_errors_test

import data.gpudoctor.rules.rdma_link_errors

machine(state, hours, counters) := {
	"host": {"uptime_seconds": hours * 3600},
	"nics": {"rdma": [{
		"device": "mlx5_0", "port": 1, "state": state, "link_layer": "InfiniBand", "counters": counters,
		"source": "/sys/class/infiniband/mlx5_0/ports/1", "line": 0,
	}]},
}

test_fires if {
	some h in rdma_link_errors.findings with input as machine("down", 10, {"link_downed": 30})
	h.severity == "low"
}

test_unresolvable if count(rdma_link_errors.findings) == 0 with input as {}
