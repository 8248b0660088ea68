package gpudoctor.rules.process_limits_test

import data.gpudoctor.rules.process_limits

given(id) := {"logs": {"messages": [{"id": id, "program": "x", "role": "cause", "text": id, "source": "a.log", "line": 1, "order": 0, "count": 1}]}}

found(document) := {f.subject | some f in process_limits.findings with input as document}

test_fires_for_each_limit if {
	found(given("too-many-open-files")) == {"open files"}
	found(given("nccl-thread-creation-failed")) == {"processes"}
	found(given("sysv-shm-no-space")) == {"segments"}
}

test_fires_with_the_limit if {
	some f in process_limits.findings with input as object.union(given("shm-object-too-many-files"), {"container": {"nofile_soft": 1024}})
	f.severity == "critical"
	count(f.evidence) == 2
}

test_silent_for_others if found(given("torch-out-of-memory")) == set()

test_unresolvable_without_logs if {
	count(process_limits.missing) == 1 with input as {}
	found({}) == set()
}
