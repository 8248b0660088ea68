# Benchmark results. Readings of benchmark tables that rules share.
package gpudoctor.lib.benchmarks

import data.gpudoctor.lib.logs

# low are, for each table, its values below what counts as good.
low[i] contains p if {
	some i, b in input.benchmarks
	some p in b.points
	p.gbps < p.expected_gbps * p.threshold
}

# worst is the value that reaches the least part of what its links carry; of several the first.
worst(points) := sort([[p.gbps / p.expected_gbps, p.line, p] | some p in points])[0][2]

# evidence shows a field of a table, points_evidence the first four of some values.
evidence(b, field, value) := {"fact": sprintf("benchmarks[%s].%s", [b.tool, field]), "value": value, "source": logs.at(b)}

points_evidence(b, points) := array.slice(
	[object.union(evidence(b, "points", p.gbps), {"source": sprintf("%s:%d", [b.source, p.line])}) | some [_, p] in sort([[p.line, p] | some p in points])],
	0, 4,
)

# job_failed is true where a text shows that a job does not run as it should: by a complaint, or a benchmark that broke
# off or found wrong values.
job_failed if logs.failed
job_failed if false in {b.complete | some b in input.benchmarks}
job_failed if count(wrong) > 0

# wrong are the benchmarks that found values that arrived wrong.
wrong contains b if {
	some b in input.benchmarks
	b.wrong > 0
}
