# METADATA
# title: Failed copies between GPUs
# description: >-
#   What benchmarks and NCCL's own check show about copies over peer access:
#   wrong values, endless waits, and tables that end early.
package gpudoctor.lib.peer_copies

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.logs
import data.tables.limits

# wrong are the copies between GPUs with values that were found wrong: a tensor that was
# printed before and after, a benchmark that checks (simpleP2P).
wrong contains b if {
	some what in ["copy", "copy-read", "bidirectional"]
	some b in benchmarks.of[what]
	b.wrong > 0
	not b.p2p == false
}

bench_words(b) := sprintf("%s, %s to %s", [b.test, b.points[0].a, b.points[0].b]) if {
	b.points[0].a != ""
} else := b.tool

# told_wrong are the transfers of NCCL's own check with wrong data, by whether NVLink
# connects the two GPUs.
told_wrong[over_nvlink] contains m if {
	some m in logs.by_id["nccl-diag-p2p-mismatch"]
	over_nvlink := m.fields.path in {"NVL", "NVB", "XGMI", "C2C"}
}

# late are the latencies of p2pBandwidthLatencyTest with peer access that no path
# has: its kernel waits for a word that does not arrive until a limit of tens of
# milliseconds ends the wait.
late[b] contains p.microseconds if {
	some b in benchmarks.of.latency
	b.p2p == true
	some p in b.points
	p.microseconds > limits.late_us
}

# broken_off are the benchmarks of peer copies that do not end: their table stops
# where peer access comes on. Where the driver refused a mapping, that is why.
broken_off contains b if {
	some b in input.benchmarks
	b.tool in {"p2pBandwidthLatencyTest", "simpleP2P"}
	b.complete == false
	count(logs.mapping_refused) == 0
}
