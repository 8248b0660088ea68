package gpudoctor.lib.benchmarks_test

import data.gpudoctor.lib.benchmarks

point(gbps, line) := {"gbps": gbps, "expected_gbps": 20, "threshold": 0.8, "line": line}

table := {"tool": "nvbandwidth", "what": "copy", "points": [point(19, 1), point(9, 2), point(9, 3)], "source": "b.txt", "line": 1}

test_low_values if {
	benchmarks.low[0] == {point(9, 2), point(9, 3)} with input as {"benchmarks": [table]}
	benchmarks.worst(table.points).line == 2
	[e.source | some e in benchmarks.points_evidence(table, table.points)] == ["b.txt:1", "b.txt:2", "b.txt:3"]
	benchmarks.of.copy == {table} with input as {"benchmarks": [table]}
	benchmarks.points(object.remove(table, ["points"])) == []
}

test_job_failed if {
	benchmarks.job_failed with input as {"benchmarks": [{"complete": false}]}
	benchmarks.job_failed with input as {"benchmarks": [{"wrong": 3}]}
	benchmarks.job_failed with input as {"logs": {"messages": [{"role": "cause"}]}}
	not benchmarks.job_failed with input as {"benchmarks": [{"complete": true, "wrong": 0}]}
}
