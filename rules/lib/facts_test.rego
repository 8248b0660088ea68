package gpudoctor.lib.facts_test

import data.gpudoctor.lib.facts

a := "0000:3b:00.0"
b := "0000:5e:00.0"
two_gpus := {"gpus": {"devices": [{"address": a, "name": "H200"}, {"address": b, "name": "H200"}]}}

transfer(source, destination, outcome) := {
	"test": "copy", "source": source, "destination": destination, "outcome": outcome, "gbps": 11.2,
}

probed(transfers) := object.union(two_gpus, {"transfers": {"outcome": "ok", "transfers": transfers}})
staged(outcome) := object.union(transfer(a, b, outcome), {"test": "host-staged"})

test_staged_transfers if {
	facts.staged_transfers == {staged("ok"), staged("slow")} with input as probed([staged("ok"), staged("slow"), staged("hang"), transfer(a, b, "ok")])
}

test_bytes if {
	facts.bytes(-1) == "unlimited"
	facts.bytes(12) == "12 bytes"
	facts.bytes(67108864) == "64 MiB"
	facts.bytes(1610612736) == "1.5 GiB"
}

test_only_amd if {
	facts.only_amd with input as {"gpus": {"devices": [{"address": a, "vendor": "amd"}, {"address": b, "vendor": "amd"}]}}
	facts.only_amd with input as {"transfers": {"api": "hip", "devices": [{"index": 0, "address": a}]}}
	not facts.only_amd with input as {"transfers": {"api": "cuda", "devices": [{"index": 0, "address": a}]}}
	not facts.only_amd with input as {"gpus": {"devices": []}}
}
