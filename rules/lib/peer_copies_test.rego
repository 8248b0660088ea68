package gpudoctor.lib.peer_copies_test

import data.gpudoctor.lib.peer_copies

benchmark(extra) := {"benchmarks": [object.union({"tool": "simpleP2P", "test": "copy", "what": "copy", "complete": true, "source": "p2p.txt", "line": 20}, extra)]}

test_wrong if {
	count(peer_copies.wrong) == 1 with input as benchmark({"wrong": 1})
	count(peer_copies.wrong) == 0 with input as benchmark({"wrong": 0})
	count(peer_copies.wrong) == 0 with input as benchmark({"wrong": 1, "p2p": false})
	count(peer_copies.wrong) == 0 with input as benchmark({"wrong": 1, "what": "collective"})
}

test_words if {
	peer_copies.bench_words({"tool": "simpleP2P", "test": "copy"}) == "simpleP2P"
	peer_copies.bench_words({"tool": "own", "test": "copy", "points": [{"a": "GPU0", "b": "GPU1"}]}) == "copy, GPU0 to GPU1"
}

# diagnosed is what NCCL's own check says of a pair of GPUs.
diagnosed(path) := {"logs": {"messages": [{"id": "nccl-diag-p2p-mismatch", "fields": {"from": "0", "to": "1", "path": path, "what": "read"}}]}}

test_told_wrong if {
	object.keys(peer_copies.told_wrong) == {true} with input as diagnosed("NVL")
	object.keys(peer_copies.told_wrong) == {false} with input as diagnosed("PHB")
}

latency(us, p2p) := benchmark({"what": "latency", "p2p": p2p, "points": [{"a": "GPU0", "b": "GPU1", "microseconds": us}]})

test_late if {
	some us in peer_copies.late with input as latency(49206.88, true)
	us == {49206.88}
	count(peer_copies.late) == 0 with input as latency(17.2, true)
	count(peer_copies.late) == 0 with input as latency(49206.88, false)
}

test_broken_off if {
	count(peer_copies.broken_off) == 1 with input as benchmark({"complete": false})
	count(peer_copies.broken_off) == 0 with input as benchmark({})
	count(peer_copies.broken_off) == 0 with input as benchmark({"complete": false, "tool": "nvbandwidth"})
	refused := {"logs": {"messages": [{"id": "cuda-map-failed"}]}}
	count(peer_copies.broken_off) == 0 with input as object.union(benchmark({"complete": false}), refused)
}
