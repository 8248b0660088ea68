package gpudoctor.rules.gpu_events_test

import data.gpudoctor.rules.gpu_events

a := "0000:01:00.0"

event(code, n) := {"kind": "xid", "code": code, "address": a, "message": sprintf("NVRM: Xid (PCI:0000:01:00): %d", [code]), "seconds": 12.5, "count": n}

logged(events) := {
	"gpus": {"nvml": "ok", "devices": [{"address": a}]},
	"kernel_log": {"source": "/dev/kmsg", "events": events},
}

graded(found) := {[f.subject, f.severity] | some f in found}

test_fires if {
	found := gpu_events.findings with input as logged([event(31, 2), object.union(event(31, 3), {"message": "other"})])
	graded(found) == {[a, "low"]}
	some f in found
	f.affects == [a]
	contains(f.message, "5 times")
	contains(f.message, "error in a program")
	count(f.evidence) == 2
}

test_secondary_notes_and_unknown if {
	graded(gpu_events.findings) == {[a, "info"]} with input as logged([event(45, 1)])
	graded(gpu_events.findings) == {[a, "info"]} with input as logged([event(63, 1)])
	graded(gpu_events.findings) == {[a, "medium"]} with input as logged([event(9999, 1)])
	graded(gpu_events.findings) == {["host", "low"]} with input as logged([object.remove(event(13, 1), ["address"])])
}

test_silent_beside_a_fault if {
	count(gpu_events.findings) == 0 with input as logged([event(79, 1), event(45, 9), event(13, 1)])
}

test_silent if {
	count(gpu_events.findings) == 0 with input as logged([])
	count(gpu_events.missing) == 0 with input as logged([])
	count(gpu_events.findings) == 0 with input as logged([{"kind": "aer", "address": a, "message": "corrected", "seconds": 1, "count": 1}])
}

test_unresolvable if {
	count(gpu_events.findings) == 0 with input as {}
	count(gpu_events.missing) == 1 with input as {}
}

test_not_applicable_without_a_gpu if {
	count(gpu_events.not_applicable) == 1 with input as {"gpus": {"devices": []}}
}

test_silent_for_impossible_launches if {
	document := logged([object.union(event(13, 1), {"id": "kernel-xid-launch-check", "fields": {"check": sprintf("SKEDCHECK%d_X", [n])}}) | some n in numbers.range(2, 6)])
	count(gpu_events.findings) == 0 with input as document
}
