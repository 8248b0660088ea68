package gpudoctor.lib.peers_test

import data.gpudoctor.lib.peers

a := "0000:01:00.0"
b := "0000:02:00.0"
pair := {"a": a, "b": b, "kind": "gpu-gpu"}

test_decimal if [peers.decimal(12), peers.decimal(12.3)] == ["12.0", "12.3"]

test_vendor if {
	peers.both_nvidia(pair) with input as {"pci": {"devices": [{"address": x, "vendor": "0x10de"} | some x in [a, b]]}}
}

test_joined if {
	peers.joined(object.union(pair, {"nvlinks": 0})) == "pcie" with input as {}
	peers.joined(pair) == "unknown" with input as {}
	peers.joined(pair) == "pcie" with input as {"gpus": {"devices": [{"address": a, "nvlinks": []}]}}
}

test_refused if {
	peers.refused(object.union(pair, {"p2p": {"write": "gpu-not-supported"}})) with input as {}
	not peers.refused(object.union(pair, {"p2p": {"read": "ok", "write": "unknown"}})) with input as {}
	peers.refused(pair) with input as {"transfers": {"peers": [{"source": b, "destination": a, "access": false}]}}
	peers.refused(pair) with input as {"transfers": {"peers": [{"source": a, "destination": b, "access": false}]}}
}
