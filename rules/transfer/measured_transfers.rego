# METADATA
# title: Benchmark results between GPUs are slow or wrong
# description: >-
#   A table of p2pBandwidthLatencyTest, nvbandwidth or nccl-tests has values far below what the links between the GPUs
#   carry (by default the NVLinks of the model), or counts wrong values.
# related_resources:
#   - {ref: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md, description: What bus bandwidth is}
#   - {ref: https://github.com/NVIDIA/nvbandwidth, description: The reference measurement of the paths}
#   - {ref: https://github.com/Azure/azurehpc-health-checks, description: Acceptance values of healthy machines}
# custom:
#   severity: medium
#   confidence: confirmed
#   symptom: true
#   cause: p2p-broken-platform
#   texts_only: true
#   needs: ["benchmarks[].points[].gbps", "benchmarks[].points[].expected_gbps", "benchmarks[].points[].threshold", "benchmarks[].points[].basis"]
#   remedies: [unset-env, disable-acs, iommu-pt, nccl-p2p-disable, nccl-p2p-level, update-bios, upgrade-driver, reset-gpu]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     low: >-
#       {test}: {gbps:.1f} GB/s[ from {a} to {b}], where {basis} carry {expected_gbps:.0f} and at least {good:.1f} counts as
#       good. {low} of {all:value} of this table are too low[. {way}]
#     wrong:
#       severity: critical
#       text: "{tool} counted {wrong:wrong value}: data between the GPUs arrives corrupted"
package gpudoctor.rules.measured_transfers

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.restricting_settings
import data.tables.thresholds

subject(b) := sprintf("%s, %s", [b.tool, b.test])

findings contains {
	"grade": "low",
	"subject": subject(b),
	"about": object.union(object.filter(worst, ["gbps", "a", "b", "basis", "expected_gbps"]), {
		"test": b.test, "good": worst.expected_gbps * worst.threshold, "low": count(ps), "all": count(b.points),
		"way": ["A log with NCCL_DEBUG=INFO shows which way the data goes (via P2P, SHM, NET)" | b.what == "collective"],
	}),
	"severity": severity(b, worst),
	"evidence": benchmarks.points_evidence(b, ps),
	"remedies": {
		true: ["unset-env", "nccl-p2p-level", "update-bios", "upgrade-driver", "reset-gpu"],
		false: ["disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu", "nccl-p2p-level"],
	}[b.what == "collective"],
	"params": {"level": "PXB"},
} if {
	some i, ps in benchmarks.low
	b := input.benchmarks[i]

	# Other rules judge the paths to the host's memory (pcie-link-degraded) and those between machines (gdr-topology,
	# roce-mtu-pfc, pcie-link-degraded).
	not b.what in {"host-to-gpu", "gpu-to-host", "network"}
	not on_purpose(b)
	worst := benchmarks.worst(ps)
}

# A setting that disables peer access explains a slow collective: env-misconfig judges it,
# and the table only shows that it works.
on_purpose(b) if {
	b.what == "collective"
	count(restricting_settings.in_force) > 0
}

# Below half of what counts as good, the cause is a wrong path, not noise. A collective may have been told to take it, by
# a setting that the input does not show.
severity(b, p) := "high" if {
	b.what != "collective"
	p.gbps < (p.expected_gbps * p.threshold) * thresholds.wrong_path
} else := "medium"

findings contains {
	"grade": "wrong",
	"subject": subject(b),
	"about": object.filter(b, ["tool", "wrong"]),
	"evidence": [benchmarks.evidence(b, "wrong", b.wrong)],
	"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu"],
} if some b in benchmarks.wrong
