# METADATA
# title: The rails of a node are crossed
# description: >-
#   In a network with a switch for each rail, the NIC of the same number of every node is in the same subnet. If two cables
#   or two names are swapped on one node, its traffic crosses the spine or does not arrive, and the ranks of that rail hang
#   or are slow on all nodes.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-cross-nic
#     description: How NCCL uses networks with rails
# custom:
#   severity: high
#   confidence: likely
#   remedies: [align-nodes, set-ib-hca]
#   since: "0.5"
#   grades:
#     crossed: "[On {nodes:few}, ]{port} is in {subnet}, in which {other} of most nodes is; there {port} is in {usual}"
#     apart:
#       severity: low
#       confidence: possible
#       text: "[On {nodes:few}, ]{port} is in {subnet}, and on the {count} others in {usual}: without a route between the two they do not connect"
package gpudoctor.rules.rail_crossed

import data.gpudoctor.lib.fleet

subnets[port] := t if {
	some t in input.fleet.traits
	startswith(t.name, "subnet of ")
	port := substring(t.name, count("subnet of "), -1)
}

# The ports that most nodes have in a subnet.
rails[subnet] contains port if {
	some port, t in subnets
	subnet := fleet.usual(t)
}

findings contains object.union(of(port, t, v), {"id": "crossed", "about": object.union(about(port, t, v), {"other": concat(", ", others)})}) if {
	some port, t in subnets
	some v in t.values
	v.value != fleet.usual(t)
	others := rails[v.value] - {port}
	count(others) > 0
}

# A network in which each rack has its own subnets has no usual one, or several nodes in each.
findings contains object.union(of(port, t, v), {"id": "apart", "about": object.union(about(port, t, v), {"count": t.values[0].count})}) if {
	some port, t in subnets
	count(t.values) == 2
	v := t.values[1]
	v.value != fleet.usual(t)
	v.count == 1
	t.values[0].count > 8
	not rails[v.value]
}

of(port, t, v) := {"subject": port, "nodes": object.get(v, "nodes", []), "evidence": [fleet.evidence(t)]}

about(port, t, v) := {"nodes": object.get(v, "nodes", []), "port": port, "subnet": v.value, "usual": fleet.usual(t)}

not_applicable contains "no RDMA port with a subnet" if {
	input.fleet.traits
	count(subnets) == 0
}
