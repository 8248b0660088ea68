package gpudoctor.lib.own_connection_test

import data.gpudoctor.lib.own_connection

# machine has so many GPUs, and this came of a connection to itself.
machine(gpus, connection) := {
	"gpus": {"nvml": "ok", "devices": [{"address": sprintf("0000:%02x:00.0", [i]), "vendor": "nvidia", "in_nvml": true} | some i in numbers.range(1, gpus)]},
	"container": {"attempts": {"connection": connection}},
}

refused(errno) := {"outcome": "refused", "call": "connect", "errno": errno, "interface": "eth0", "address": "10.0.0.5"}

test_an_error_without_a_meaning if {
	some f in own_connection.blocked with input as machine(1, refused("EPROTO"))
	f.severity == "medium"
}

test_silent if {
	count(own_connection.blocked) == 0 with input as {"gpus": {"nvml": "ok", "devices": []}, "container": {"attempts": {"connection": refused("ETIMEDOUT")}}}
	count(own_connection.missing) == 0 with input as machine(2, {"outcome": "ok", "interface": "eth0"})
}
