# METADATA
# title: A benchmark shows GPUs that talk slower than their links allow, or wrongly
# description: >-
#   A table of p2pBandwidthLatencyTest, nvbandwidth or nccl-tests holds values far
#   below what the links between the GPUs carry, or counts values that arrived
#   wrong. It is judged by the same shares as gpudoctor's own transfers; where
#   the texts do not tell the links, by the NVLinks that a model always has.
# related_resources:
#   - ref: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
#     description: What bus bandwidth is, and that it is to be compared with the links
#   - ref: https://github.com/NVIDIA/nvbandwidth
#     description: The reference measurement of the paths
#   - ref: https://github.com/Azure/azurehpc-health-checks
#     description: Acceptance values of healthy machines
# schemas:
#   - input: schema.facts
# custom:
#   severity: medium
#   confidence: confirmed
#   cause: p2p-broken-platform
#   needs:
#     - benchmarks[].points[].gbps
#     - benchmarks[].points[].expected_gbps
#     - benchmarks[].points[].threshold
#     - benchmarks[].points[].basis
#   remedies: [disable-acs, iommu-pt, nccl-p2p-disable, nccl-p2p-level, update-bios, upgrade-driver, reset-gpu]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.measured_transfers

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peers
import data.tables.limits

# left_to_others are the paths that other rules judge: those to the host's memory
# (pcie-link-degraded) and those between machines (gdr-topology, roce-mtu-pfc,
# pcie-link-degraded).
left_to_others := {"host-to-gpu", "gpu-to-host", "network"}

findings contains {
	"subject": sprintf("%s, %s", [b.tool, b.test]),
	"message": sprintf("%s: %s GB/s%s, where %s carry %v and at least %s counts as good. %s", [
		b.test, peers.decimal(worst.gbps), between(worst), worst.basis, round(worst.expected_gbps), peers.decimal(worst.expected_gbps * worst.threshold), count_text(ps, b),
	]),
	"severity": grade(worst),
	"confidence": "confirmed",
	"evidence": benchmarks.points_evidence(b, ps),
	"remedies": cures(b),
	"params": {"level": "PXB"},
} if {
	some i, ps in benchmarks.low
	b := input.benchmarks[i]
	not b.what in left_to_others
	not on_purpose(b)
	worst := benchmarks.worst(ps)
}

# A setting that takes peer access away explains a slow collective: it is judged
# by itself (env-misconfig), and the table shows no more than that it works.
on_purpose(b) if {
	b.what == "collective"
	some name in {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_CUMEM_ENABLE", "NCCL_NET_DISABLE_INTRA", "NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_ALGO", "NCCL_PROTO"}
	facts.env[name] != "0"
}

# Less than half of what counts as good is lost to a wrong path, not to noise.
grade(p) := "high" if {
	p.gbps < (p.expected_gbps * p.threshold) * limits.wrong_path
} else := "medium"

cures(b) := ["nccl-p2p-level", "disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu"] if {
	b.what == "collective"
} else := ["disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu", "nccl-p2p-level"]

between(p) := sprintf(" from %s to %s", [p.a, p.b]) if {
	p.a != ""
} else := ""

count_text(ps, b) := "It is the best value of the table" if {
	b.what == "collective"
} else := sprintf("%d of %d values of this table are too low", [count(ps), count(b.points)])

findings contains {
	"subject": sprintf("%s, %s", [b.tool, b.test]),
	"message": sprintf("%s counted %d wrong values: data between the GPUs arrives corrupted", [b.tool, b.wrong]),
	"severity": "critical",
	"confidence": "confirmed",
	"evidence": [benchmarks.evidence(b, "wrong", b.wrong)],
	"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu"],
} if {
	some b in benchmarks.wrong
}

missing contains {"fact": "benchmarks", "words": "no table of a benchmark was given"} if not input.benchmarks
