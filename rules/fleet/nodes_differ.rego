# METADATA
# title: A node differs from the others
# description: >-
#   The ranks of a job expect the same software, network and settings on all nodes. One node with another version, MTU or
#   variable makes the job fail or slows all others down, and its own report does not show it.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: Versions, networks and settings that NCCL depends on
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: Variables that have to be the same on all ranks
# custom:
#   severity: low
#   confidence: likely
#   remedies: [same-nccl-everywhere, align-nodes, unset-env, upgrade-driver, match-fabric-manager, upgrade-amd-driver, upgrade-rocm, disable-mig, bring-port-up, fix-mtu-pfc, set-gid-index, fix-bond, load-nvidia-peermem, load-rdma-driver, raise-memlock, iommu-pt, disable-numa-balancing, update-bios, synchronize-clock]
#   since: "0.5"
#   grades:
#     row: "{subject}[ of nodes with {hardware}]: {values:comma}; {why}"
#     joint:
#       severity: high
#       remedies: [unset-env, align-nodes]
#       text: "{subject}: {values:comma}; all ranks of a job must have the same value"
#     setting:
#       severity: info
#       confidence: possible
#       remedies: [unset-env, align-nodes]
#       text: "{subject}: {values:comma}; that may be intended"
package gpudoctor.rules.nodes_differ

import data.gpudoctor.lib.fleet
import data.tables.fleet as table
import data.tables.variables

findings contains object.union(of(t), {
	"grade": "row",
	"severity": row.severity,
	"confidence": object.get(row, "confidence", "likely"),
	"remedies": object.get(row, "remedies", ["align-nodes"]),
	"about": {"values": fleet.said(t), "why": row.why, "hardware": object.get(t, "hardware", "")},
}) if {
	some t in fleet.differing
	some row in table.traits
	row.name == t.name
}

findings contains object.union(of(t), {"grade": grade, "about": {"values": fleet.said(t)}, "params": {"variable": t.name}}) if {
	some t in fleet.differing
	variables.known[t.name]
	grade := {true: "joint", false: "setting"}[t.name in variables.joint]
}

of(t) := {"subject": t.name, "nodes": fleet.odd(t), "evidence": [fleet.evidence(t)]}
