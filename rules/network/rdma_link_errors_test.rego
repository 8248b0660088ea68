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
	some f in rdma_link_errors.findings with input as machine("active", 24, {"symbol_error": 5000, "link_downed": 1})
	[f.subject, f.severity] == ["mlx5_0:1", "medium"]
	contains(f.message, "symbol_error 5000 in 24 hours")
	not contains(f.message, "link_downed")
	some g in rdma_link_errors.findings with input as machine("active", 10, {"symbol_error": 0, "link_downed": 30})
	contains(g.message, "link_downed 30")
	count(rdma_link_errors.findings) == 1 with input as machine("active", 0.1, {"link_downed": 3})
	some h in rdma_link_errors.findings with input as machine("down", 10, {"link_downed": 30})
	h.severity == "low"
}

test_unresolvable if {
	m := machine("active", 24, {"symbol_error": 5000})
	count(rdma_link_errors.findings) == 0 with input as {}
	count(rdma_link_errors.findings) == 0 with input as object.remove(m, ["host"])
}
