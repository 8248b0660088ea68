# METADATA
# title: The rails of a node are crossed
# description: In a network with a switch for each rail, the NIC of the same number of every node is in the same subnet. If two
#   cables or names are swapped on one node, its traffic crosses the spine or does not arrive, and all ranks of that rail wait.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-cross-nic
# custom:
#   severity: high
#   confidence: likely
#   remedies: [align-nodes, set-ib-hca]
#   since: "0.5"
#   grades:
#     crossed: "[On {nodes:few}, ]{subject} is in {subnet}, in which {other} of most nodes is; there {subject} is in {usual}"
package gpudoctor.rules.rail_crossed

import data.gpudoctor.lib.fleet

subnets := {trim_prefix(t.name, "subnet of "): t | some t in input.fleet.traits; startswith(t.name, "subnet of ")}

# rails are the ports that most nodes have in a subnet.
rails := {usual: ports | some usual, ports in ports_by_usual}

ports_by_usual[fleet.usual(t)] contains port if some port, t in subnets

findings contains {
	"id": "crossed", "subject": port, "nodes": nodes, "evidence": [fleet.evidence(t)],
	"about": {"nodes": nodes, "subnet": v.value, "usual": fleet.usual(t), "other": others},
} if {
	some port, t in subnets
	some v in t.values
	v.value != fleet.usual(t)
	others := rails[v.value] - {port}
	count(others) > 0
	nodes := object.get(v, "nodes", [])
}

not_applicable contains "no RDMA port with a subnet" if {
	input.fleet.traits
	count(subnets) == 0
}
