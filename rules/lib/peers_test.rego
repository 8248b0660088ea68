package gpudoctor.lib.peers_test

import data.gpudoctor.lib.peers

a := "0000:01:00.0"

b := "0000:02:00.0"

pair := {"a": a, "b": b, "kind": "gpu-gpu"}

transfer(test, source, destination, outcome) := {"test": test, "source": source, "destination": destination, "outcome": outcome}

probed(transfers) := {"transfers": {"outcome": "ok", "transfers": transfers}}

both(test, outcome) := [transfer(test, a, b, outcome), transfer(test, b, a, outcome)]

test_vendor if {
	peers.both_nvidia(pair) with input as {"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in [a, b]]}}
	peers.both_nvidia(pair) with input as {"pci": {"devices": [{"address": x, "vendor": "0x10de"} | some x in [a, b]]}}
	not peers.both_nvidia(pair) with input as {"pci": {"devices": [{"address": x, "vendor": "0x1002"} | some x in [a, b]]}}
}

test_joined if {
	peers.joined(object.union(pair, {"nvlinks": 18})) == "nvlink" with input as {}
	peers.joined(object.union(pair, {"nvlinks": 0})) == "pcie" with input as {}
	peers.joined(pair) == "unknown" with input as {}
	peers.joined(pair) == "pcie" with input as {"gpus": {"devices": [{"address": a, "nvlinks": []}]}}
}

test_refused if {
	peers.refused(object.union(pair, {"p2p": {"write": "gpu-not-supported"}})) with input as {}
	not peers.refused(object.union(pair, {"p2p": {"read": "ok", "write": "unknown"}})) with input as {}
	peers.refused(pair) with input as {"transfers": {"peers": [{"source": b, "destination": a, "access": false}]}}
	peers.refused(pair) with input as {"transfers": {"peers": [{"source": a, "destination": b, "access": false}]}}
	not peers.refused(pair) with input as {"transfers": {"peers": [{"source": a, "destination": b, "access": true}]}}
}

test_measured if {
	peers.measured(a, b) == "good" with input as probed(both("copy", "ok"))
	peers.measured(b, a) == "good" with input as probed(both("copy", "ok"))
	peers.measured(a, b) == "slow" with input as probed(array.concat(both("copy", "ok"), both("sm-store", "slow")))
	peers.measured(a, b) == "failed" with input as probed(array.concat(both("copy", "slow"), both("sm-load", "hang")))
	peers.measured(a, b) == "nothing" with input as probed([transfer("copy", a, b, "ok")])
	peers.measured(a, b) == "nothing" with input as {}
}

test_what_the_probe_could_not_try_has_not_failed if {
	peers.failed({"outcome": "error"})
	peers.failed({"outcome": "error", "error_code": 700})
	not peers.failed({"outcome": "error", "error_code": 2})
}

test_texts if {
	peers.seen(both("copy", "ok")) == ["copy: ok"]
	peers.shorten({"b", "a"}) == "a, b"
	peers.shorten({"a", "b", "c", "d"}) == "a and 3 more"
	peers.pairs_text({pair}) == sprintf("%s and %s", [a, b])
	peers.pairs_text({pair, object.union(pair, {"b": "c"})}) == "2 pairs of GPUs"
	peers.ends({pair}) == {a, b}
	peers.decimal(28) == "28.0"
	peers.decimal(27.46) == "27.5"
}
