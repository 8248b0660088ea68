package gpudoctor.lib.collective_ways_test

import data.gpudoctor.lib.collective_ways

point(gbps) := {"gbps": gbps, "expected_gbps": 450, "threshold": 0.35}
channels(transports) := {"logs": {"transports": transports}}

tcp := {"kind": "net", "network": "Socket", "same_host": true, "channels": 2, "a": 0, "b": 1, "source": "t.txt", "line": 6}

test_ways if {
	collective_ways.way(point(3)) == "tcp" with input as channels([tcp])
	contains(collective_ways.words("tcp"), "over TCP") with input as channels([tcp])
	count(collective_ways.evidence("tcp")) == 1 with input as channels([tcp])
	collective_ways.way(point(100)) == "unknown" with input as {}
	collective_ways.way(point(3)) == "around" with input as channels([object.union(tcp, {"same_host": false})])
}
