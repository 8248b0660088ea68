# METADATA
# title: A node differs from the others
# description: The ranks of a job expect the same software, network and settings on all nodes. One node with another version, MTU
#   or variable makes the job fail or slows all others down, and its own report does not show it.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html, description: Variables that all ranks must share}
# custom:
#   severity: low
#   confidence: likely
#   remedies: [same-nccl-everywhere, align-nodes, unset-env, upgrade-driver, match-fabric-manager, upgrade-amd-driver, upgrade-rocm, disable-mig, bring-port-up, fix-mtu-pfc, set-gid-index, fix-bond, load-nvidia-peermem, load-rdma-driver, raise-memlock, iommu-pt, disable-numa-balancing, update-bios, synchronize-clock]
#   since: "0.5"
#   grades:
#     row: "{subject}[ of nodes with {hardware}]: {values:comma}; {why}"
#     joint: {severity: high, remedies: [unset-env, align-nodes], text: "{subject}: {values:comma}; all ranks of a job must have the same value"}
#     setting: {severity: info, confidence: possible, remedies: [unset-env, align-nodes], text: "{subject}: {values:comma}; that may be intended"}
package gpudoctor.rules.nodes_differ

import data.gpudoctor.lib.fleet
import data.tables.fleet as table
import data.tables.variables

of(t, grade, more) := object.union(
	{
		"grade": grade, "subject": t.name, "nodes": fleet.odd(t), "evidence": [fleet.evidence(t)],
		"about": object.union({"values": fleet.said(t)}, object.filter(t, ["hardware"])),
	},
	more,
)

findings contains of(t, "row", {
	"severity": row.severity, "confidence": object.get(row, "confidence", "likely"),
	"remedies": object.get(row, "remedies", ["align-nodes"]), "about": {"why": row.why},
}) if {
	some t in fleet.differing
	some row in table.traits
	row.name == t.name
}

findings contains of(t, {true: "joint", false: "setting"}[t.name in variables.joint], {"params": {"variable": t.name}}) if {
	some t in fleet.differing
	variables.known[t.name]
}
