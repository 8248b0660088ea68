package gpudoctor.lib.acs_paths_test

import data.gpudoctor.lib.acs_paths

a := "0000:41:00.0"

b := "0000:61:00.0"

nic := "0000:42:00.0"

port(address, bits) := {"address": address, "vendor": "0x1022", "class": "0x060400", "kind": "bridge", "acs": {"control": bits}}

pair := {"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0, "bridges": ["0000:40:01.1", "0000:60:01.1"]}

below := {"a": a, "b": nic, "kind": "gpu-nic", "bridges": ["0000:40:01.1"], "common_bridge": "0000:40:00.0"}

machine(pairs, nic_class) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in [a, b]]},
	"links": {"pairs": pairs},
	"pci": {"devices": [
		port("0000:40:01.1", ["ReqRedir"]), port("0000:60:01.1", []),
		{"address": nic, "vendor": "0x8086", "class": nic_class, "kind": "nic"},
	]},
}

test_affected_by_the_bridges_that_redirect if {
	bridges := acs_paths.affected[pair] with input as machine([pair], "0x020000")
	bridges == {"0000:40:01.1"}
	guest := {"host": {"virtualization": {"guest": true}}}
	count(acs_paths.affected) == 0 with input as object.union(machine([pair], "0x020000"), guest)
}

test_judged if {
	acs_paths.judged == {pair, below} with input as machine([pair, below], "0x020000")

	# A NIC beyond the switch, and GPUs that NVLink or xGMI joins.
	others := [object.remove(below, ["common_bridge"]), object.union(pair, {"nvlinks": 4}), object.union(pair, {"link_type": "xgmi"})]
	acs_paths.judged == set() with input as machine(others, "0x020000")
}

test_standing if {
	acs_paths.standing(pair) == "implied" with input as machine([pair], "0x020000")
	acs_paths.standing(below) == "rdma" with input as machine([below], "0x020700")
	acs_paths.standing(below) == "nic" with input as machine([below], "0x020000")
	unread := object.remove(pair, ["nvlinks"])
	acs_paths.standing(unread) == "unsure" with input as machine([unread], "0x020000")
	amd := {"gpus": {"devices": [{"address": x, "vendor": "amd"} | some x in [a, b]]}}
	acs_paths.standing(pair) == "tolerated" with input as object.union(machine([pair], "0x020000"), amd)
	slow := {"transfers": {"outcome": "ok", "transfers": [{"test": "copy", "source": a, "destination": b, "outcome": "slow"}]}}
	acs_paths.standing(pair) == "slow" with input as object.union(machine([pair], "0x020000"), slow)
}
