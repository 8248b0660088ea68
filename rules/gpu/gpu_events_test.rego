package gpudoctor.rules.gpu_events_test

import data.gpudoctor.rules.gpu_events

a := "0000:01:00.0"

event(code, n) := {"kind": "xid", "code": code, "address": a, "message": sprintf("NVRM: Xid (PCI:0000:01:00): %d", [code]), "seconds": 12.5, "count": n}

logged(events) := {
	"gpus": {"nvml": "ok", "devices": [{"address": a}]},
	"kernel_log": {"source": "/dev/kmsg", "events": events},
}

graded(found) := {[f.subject, f.severity] | some f in found}

test_secondary_notes_and_unknown if {
	graded(gpu_events.findings) == {["host", "low"]} with input as logged([object.remove(event(13, 1), ["address"])])
}

test_silent_for_impossible_launches if {
	document := logged([object.union(event(13, 1), {"id": "kernel-xid-launch-check", "fields": {"check": sprintf("SKEDCHECK%d_X", [n])}}) | some n in numbers.range(2, 6)])
	count(gpu_events.findings) == 0 with input as document
}
