package gpudoctor.lib.facts_test

import data.gpudoctor.lib.facts

a := "0000:3b:00.0"

b := "0000:5e:00.0"

two_gpus := {"gpus": {"devices": [{"address": a, "name": "H200"}, {"address": b, "name": "H200"}]}}

paired := object.union(two_gpus, {"links": {"pairs": [
	{"a": a, "b": b, "kind": "gpu-gpu", "bridges": ["0000:40:01.1", "0000:40:03.1"]},
	{"a": a, "b": "0000:70:00.0", "kind": "gpu-nic", "bridges": ["0000:99:00.0"]},
]}})

transfer(source, destination, outcome) := {
	"test": "copy", "source": source, "destination": destination, "outcome": outcome, "gbps": 11.2,
}

probed(transfers) := object.union(two_gpus, {"transfers": {"outcome": "ok", "transfers": transfers}})

test_gpus if {
	facts.gpus == {a, b} with input as two_gpus
	facts.gpu[a].name == "H200" with input as two_gpus
	facts.gpus == set() with input as {"gpus": {"devices": []}}
}

test_gpus_at if {
	facts.gpus_at(a) == [a] with input as two_gpus
	facts.gpus_at("0000:99:00.0") == [] with input as two_gpus
	facts.gpus_at(a) == [] with input as {}
}

test_unknown_is_undefined if {
	not facts.gpus with input as {}
	not facts.gpu_pairs with input as {}
	not facts.peer_transfers with input as {}
	not facts.failed_peer_transfers with input as {}
	not facts.is_guest with input as {}
	not facts.is_passthrough_host with input as {}
	not facts.in_container with input as {}
	not facts.is_root with input as {}
	facts.staged_transfers == set() with input as {}
}

test_surroundings if {
	facts.is_guest with input as {"host": {"virtualization": {"guest": true}}}
	facts.is_guest == false with input as {"host": {"virtualization": {"guest": false}}}
	facts.is_passthrough_host with input as {"host": {"virtualization": {"passthrough_host": true}}}
	facts.in_container with input as {"container": {"inside": true}}
	facts.is_root with input as {"host": {"root": true}}
}

test_pairs if {
	count(facts.gpu_pairs) == 1 with input as paired
	facts.pair_name(a, b) == "0000:3b:00.0 -> 0000:5e:00.0"
}

test_variables if {
	variables := {"env": {"variables": [
		{"name": "NCCL_P2P_DISABLE", "value": "1", "source": "environment", "effective": true},
		{"name": "NCCL_P2P_DISABLE", "value": "0", "source": "/etc/nccl.conf", "effective": false},
	]}}
	facts.env == {"NCCL_P2P_DISABLE": "1"} with input as variables
	facts.variable.NCCL_P2P_DISABLE.source == "environment" with input as variables
}

test_failed_peer_transfers if {
	facts.failed_peer_transfers == {transfer(b, a, "hang")} with input as probed([transfer(a, b, "ok"), transfer(b, a, "hang")])
}

test_several if {
	facts.several with input as two_gpus
	facts.several with input as {}
	not facts.several with input as {"gpus": {"devices": [{"address": a}]}}
}

staged(outcome) := object.union(transfer(a, b, outcome), {"test": "host-staged"})

test_staged_transfers if {
	facts.staged_transfers == {staged("ok"), staged("slow")} with input as probed([staged("ok"), staged("slow"), staged("hang"), transfer(a, b, "ok")])
}

test_list if {
	facts.list({"b"}) == "b"
	facts.list({"b", "a"}) == "a and b"
	facts.list({"b", "a", "c"}) == "a, b and c"
}

test_bytes if {
	facts.bytes(-1) == "unlimited"
	facts.bytes(12) == "12 bytes"
	facts.bytes(65536) == "64 KiB"
	facts.bytes(67108864) == "64 MiB"
	facts.bytes(1610612736) == "1.5 GiB"
}

test_only_amd if {
	facts.only_amd with input as {"gpus": {"devices": [{"address": a, "vendor": "amd"}, {"address": b, "vendor": "amd"}]}}
	facts.only_amd with input as {"transfers": {"api": "hip", "devices": [{"index": 0, "address": a}]}}
	not facts.only_amd with input as {"gpus": {"devices": [{"address": a, "vendor": "amd"}, {"address": b, "vendor": "nvidia"}]}}
	not facts.only_amd with input as {"transfers": {"api": "cuda", "devices": [{"index": 0, "address": a}]}}
	not facts.only_amd with input as {"gpus": {"devices": []}}
	not facts.only_amd with input as {}
}

test_few if {
	facts.few({"a"}) == "a"
	facts.few({"d", "a", "c", "b"}) == "a, b, c and d"
	facts.few({"e", "d", "a", "c", "b"}) == "a, b, c and 2 more"
}
