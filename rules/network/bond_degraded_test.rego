package gpudoctor.rules.bond_degraded_test

import data.gpudoctor.rules.bond_degraded

bond(more) := object.union({"name": "bond0", "mode": "802.3ad", "members": ["eth1", "eth2"], "source": "/sys/class/net/bond0/bonding", "line": 0}, more)

port := {"device": "mlx5_bond_0", "port": 1, "link_layer": "Ethernet", "state": "active", "netdev": "bond0"}

machine(b, ports) := {"nics": {"bonds": [b], "rdma": ports}}

found(m) := ids if ids := {[f.id, f.severity] | some f in bond_degraded.findings} with input as m

test_fires if {
	found(machine(bond({"down": ["eth2"]}), [])) == {["member-down", "low"]}
	found(machine(bond({"down": ["eth2"], "mode": "active-backup"}), [port])) == {["member-down", "low"]}
	found(machine(bond({"partner": "02:00:00:00:00:01", "aggregated": 1}), [port])) == {["not-joined", "medium"]}
}

test_unresolvable if {
	bond_degraded.asks == {"nics.bonds[].partner", "nics.rdma", "nics.rdma[].netdev"} with input as machine(bond({}), [port])
	found(machine(bond({}), [port])) == set()
}
