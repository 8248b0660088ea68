package gpudoctor.rules.bond_degraded_test

import data.gpudoctor.rules.bond_degraded

source := "/sys/class/net/bond0/bonding"

bond(more) := object.union({"name": "bond0", "mode": "802.3ad", "hash_policy": "layer3+4", "members": ["eth1", "eth2"], "source": source, "line": 0}, more)

port := {"device": "mlx5_bond_0", "port": 1, "link_layer": "Ethernet", "state": "active", "netdev": "bond0", "source": "/sys/class/infiniband/mlx5_bond_0/ports/1", "line": 0}

machine(b, ports, pairs) := {
	"env": {"variables": [{"name": "NCCL_IB_QPS_PER_CONNECTION", "value": pairs, "source": "environment", "effective": true}]},
	"nics": {"bonds": [b], "rdma": ports},
}

ids(m) := found if found := {f.id | some f in bond_degraded.findings} with input as m
lacks(m) := found if found := {l.fact | some l in bond_degraded.missing} with input as m

test_fires_member_down if {
	some g in bond_degraded.findings with input as machine(bond({"down": ["eth2"]}), [], "2")
	g.severity == "low"
	some h in bond_degraded.findings with input as machine(bond({"down": ["eth2"], "mode": "active-backup"}), [port], "2")
	h.severity == "low"
}

test_fires_lacp if ids(machine(bond({"partner": "02:00:00:00:00:01", "aggregated": 1}), [port], "2")) == {"not-joined"}

test_unresolvable if {
	known := object.union(bond({"partner": "02:00:00:00:00:01", "aggregated": 2}), {})
	lacks(machine(known, [port], "2")) == set()
	lacks(machine(object.remove(known, ["partner"]), [port], "2")) == {"nics.bonds"}
	lacks(machine(known, [object.remove(port, ["netdev"])], "2")) == {"nics.rdma"}
	infiniband := {"device": "mlx5_0", "port": 1, "link_layer": "InfiniBand", "source": "x", "line": 1}
	lacks(machine(known, [infiniband], "2")) == set()
	count(bond_degraded.findings) == 0 with input as object.remove(machine(bond({}), [port], "1"), ["env"])
}
