# METADATA
# title: Benchmark results between GPUs are slow or wrong
# description: >-
#   A table of p2pBandwidthLatencyTest, nvbandwidth or nccl-tests has values far below what the links between the GPUs
#   carry, or counts wrong values. The thresholds are the same fractions as for gpudoctor's own transfers; if the texts
#   do not show the links, the NVLinks that a model always has apply.
# related_resources:
#   - ref: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
#     description: What bus bandwidth is, and how it compares with the links
#   - {ref: https://github.com/NVIDIA/nvbandwidth, description: The reference measurement of the paths}
#   - {ref: https://github.com/Azure/azurehpc-health-checks, description: Acceptance values of healthy machines}
# custom:
#   severity: medium
#   confidence: confirmed
#   symptom: true
#   cause: p2p-broken-platform
#   texts_only: true
#   needs:
#     - benchmarks[].points[].gbps
#     - benchmarks[].points[].expected_gbps
#     - benchmarks[].points[].threshold
#     - benchmarks[].points[].basis
#   remedies: [unset-env, disable-acs, iommu-pt, nccl-p2p-disable, nccl-p2p-level, update-bios, upgrade-driver, reset-gpu]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.measured_transfers

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.collective_ways
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.restricting_settings
import data.tables.thresholds

# left_to_others are the paths that other rules judge: those to the host's memory (pcie-link-degraded) and those between
# machines (gdr-topology, roce-mtu-pfc, pcie-link-degraded).
left_to_others := {"host-to-gpu", "gpu-to-host", "network"}

findings contains {
	"subject": sprintf("%s, %s", [b.tool, b.test]),
	"message": sprintf("%s: %s GB/s%s, where %s carry %v and at least %s counts as good. %s", [
		b.test, peers.decimal(worst.gbps), between(worst), worst.basis, round(worst.expected_gbps), peers.decimal(worst.expected_gbps * worst.threshold), count_text(ps, b, worst),
	]),
	"severity": grade(b, worst),
	"evidence": array.concat(benchmarks.points_evidence(b, ps), way_evidence(b, worst)),
	"remedies": cures(b, worst),
	"params": {"level": "PXB"},
} if {
	some i, ps in benchmarks.low
	b := input.benchmarks[i]
	not b.what in left_to_others
	not on_purpose(b)
	worst := benchmarks.worst(ps)
}

# A setting that disables peer access explains a slow collective: env-misconfig judges it,
# and the table only shows that it works.
on_purpose(b) if {
	b.what == "collective"
	count(restricting_settings.in_force) > 0
}

# Below half of what counts as good, the cause is a wrong path, not noise. A collective that
# goes around the links may have been told to, by a setting that the input does not show.
grade(b, p) := "medium" if {
	collective_way(b, p) == "around"
} else := "high" if {
	p.gbps < (p.expected_gbps * p.threshold) * thresholds.wrong_path
} else := "medium"

# collective_way is the way of a collective's value; undefined for another table.
collective_way(b, p) := collective_ways.way(p) if b.what == "collective"

way_evidence(b, p) := collective_ways.evidence(collective_way(b, p))

default way_evidence(_, _) := []

cures(b, p) := ["unset-env", "nccl-p2p-level", "update-bios", "upgrade-driver", "reset-gpu"] if {
	collective_way(b, p) != "unknown"
} else := ["nccl-p2p-level", "disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu"] if {
	b.what == "collective"
} else := ["disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu", "nccl-p2p-level"]

between(p) := sprintf(" from %s to %s", [p.a, p.b]) if {
	p.a != ""
} else := ""

count_text(ps, b, p) := collective_ways.words(collective_way(b, p)) if {
	b.what == "collective"
} else := sprintf("%d of %d values of this table are too low", [count(ps), count(b.points)])

findings contains {
	"subject": sprintf("%s, %s", [b.tool, b.test]),
	"message": sprintf("%s counted %d wrong values: data between the GPUs arrives corrupted", [b.tool, b.wrong]),
	"severity": "critical",
	"evidence": [benchmarks.evidence(b, "wrong", b.wrong)],
	"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu"],
} if some b in benchmarks.wrong
