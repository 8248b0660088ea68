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
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.restricting_settings
import data.tables.thresholds

findings contains {
	"subject": sprintf("%s, %s", [b.tool, b.test]),
	"message": sprintf("%s: %s GB/s%s, where %s carry %v and at least %s counts as good. %s", [
		b.test, peers.decimal(worst.gbps), concat("", [sprintf(" from %s to %s", [worst.a, worst.b]) | worst.a != ""]),
		worst.basis, round(worst.expected_gbps), peers.decimal(worst.expected_gbps * worst.threshold),
		object.get(words, way, sprintf("%d of %d values of this table are too low", [count(ps), count(b.points)])),
	]),
	"severity": severity(way, worst),
	"evidence": array.concat(
		benchmarks.points_evidence(b, ps),
		[{"fact": "logs.transports", "value": t.kind, "source": logs.at(t)} | t := channels[way][0]],
	),
	"remedies": object.get(cures, way, ["unset-env", "nccl-p2p-level", "update-bios", "upgrade-driver", "reset-gpu"]),
	"params": {"level": "PXB"},
} if {
	some i, ps in benchmarks.low
	b := input.benchmarks[i]

	# Other rules judge the paths to the host's memory (pcie-link-degraded) and those between machines (gdr-topology,
	# roce-mtu-pfc, pcie-link-degraded).
	not b.what in {"host-to-gpu", "gpu-to-host", "network"}
	not on_purpose(b)
	worst := benchmarks.worst(ps)
	way := way_of(b, worst)
}

# A setting that disables peer access explains a slow collective: env-misconfig judges it,
# and the table only shows that it works.
on_purpose(b) if {
	b.what == "collective"
	count(restricting_settings.in_force) > 0
}

# channels are those that NCCL sent through host memory, or over TCP between GPUs of one machine.
channels := {
	"shm": sort([t | some t in input.logs.transports; t.kind == "shm"]),
	"tcp": sort([t | some t in input.logs.transports; t.kind == "net"; t.network == "Socket"; t.same_host == true]),
}

# way_of is how a collective went, as far as a log or a rate that is too low for the links shows it, or "copies".
way_of(b, p) := "copies" if {
	b.what != "collective"
} else := logged[0] if {
	logged := [way | some way in ["shm", "tcp"]; count(channels[way]) > 0]
	count(logged) > 0
} else := "around" if {
	p.gbps < p.expected_gbps * thresholds.staged
} else := "unknown"

words := {
	"shm": "NCCL's log shows why: its channels go through host memory instead of from GPU to GPU (via SHM)",
	"tcp": "NCCL's log shows why: its channels between the GPUs of one machine go over TCP (via NET/Socket)",
	"around": "That is less than a tenth: the traffic goes through the host or over a NIC, not over the links between the GPUs. A log with NCCL_DEBUG=INFO shows which (via SHM, via NET)",
	"unknown": "This is the best value of the table",
}

# Below half of what counts as good, the cause is a wrong path, not noise. A collective that
# goes around the links may have been told to, by a setting that the input does not show.
severity(way, p) := "high" if {
	way != "around"
	p.gbps < (p.expected_gbps * p.threshold) * thresholds.wrong_path
} else := "medium"

cures := {
	"copies": ["disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu", "nccl-p2p-level"],
	"unknown": ["nccl-p2p-level", "disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu"],
}

findings contains {
	"subject": sprintf("%s, %s", [b.tool, b.test]),
	"message": sprintf("%s counted %d wrong values: data between the GPUs arrives corrupted", [b.tool, b.wrong]),
	"severity": "critical",
	"evidence": [benchmarks.evidence(b, "wrong", b.wrong)],
	"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "update-bios", "upgrade-driver", "reset-gpu"],
} if some b in benchmarks.wrong
