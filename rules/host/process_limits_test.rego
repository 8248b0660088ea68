package gpudoctor.rules.process_limits_test

import data.gpudoctor.rules.process_limits

test_unresolvable_without_logs if {
	count(process_limits.missing) == 1 with input as {"texts": [{"name": "notes.txt"}]}
	count(process_limits.missing) == 0 with input as {}
}

opens(files) := {"container": {"nofile_soft": files}}

test_fires_on_a_lowered_limit if {
	some f in process_limits.findings with input as opens(256)
	f.severity == "low"
	f.confidence == "possible"
	contains(f.message, "256 files, fewer than the kernel's default of 1024")
}

test_silent_for_defaults_and_no_limit if {
	count(process_limits.findings) == 0 with input as opens(1024)
	count(process_limits.findings) == 0 with input as opens(-1)
	count(process_limits.findings) == 0 with input as {"container": {}}
}

# machine has two GPUs, and this came of a connection of a process to itself.
machine(connection) := {
	"gpus": {"nvml": "ok", "devices": [{"address": address, "vendor": "nvidia", "in_nvml": true} | some address in ["0000:01:00.0", "0000:02:00.0"]]},
	"container": {"attempts": {"connection": connection}},
}

test_fires_without_a_free_port if {
	connection := {"outcome": "refused", "call": "connect", "errno": "EADDRNOTAVAIL", "interface": "eth0", "address": "10.0.0.5"}
	some f in process_limits.findings with input as machine(connection)
	f.subject == "network"
	contains(f.message, "No local port is free")
}

test_silent_when_connected if {
	count(process_limits.findings) == 0 with input as machine({"outcome": "ok", "interface": "eth0", "address": "10.0.0.5"})
}

test_fires_near_the_limit_on_tasks if {
	document := object.union(machine({"outcome": "ok"}), {"container": {"tasks": {"limit": 512, "used": 400}}})
	some f in process_limits.findings with input as document
	f.severity == "low"
	contains(f.message, "112 of 512")
}

test_silent_with_many_tasks_left if {
	document := object.union(machine({"outcome": "ok"}), {"container": {"tasks": {"limit": 4096, "used": 400}}})
	count(process_limits.findings) == 0 with input as document
}
