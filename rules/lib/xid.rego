# NVIDIA driver error codes in the kernel log. The entries of the table of Xids and SXids (rules/data/xids.yaml) for the
# events in the kernel log.
package gpudoctor.lib.xid

import data.tables.xids

# meaning is the table's entry for an Xid.
meaning[x.code] := x if some x in xids.xids

severity(code) := meaning[code].severity

# An Xid that is not in the table may be any fault, so it is not ignored.
severity(code) := "medium" if not meaning[code]

name(code) := meaning[code].name

name(code) := "unknown to gpudoctor" if not meaning[code]

# remedies are what helps against an Xid, the best first.
remedies(code) := xids.actions[meaning[code].action]

remedies(code) := ["other"] if not meaning[code]

# impossible_checks are, by GPU, the checks of a kernel's descriptor that failed (Xid 13, "SKEDCHECK06_REGISTER_COUNT
# failed"), where they are so many that no program can have asked for it: a launch beyond the limits fails one or two.
impossible_checks[address] := checks if {
	some address, _ in launch_checks
	checks := {c | some [c, _] in launch_checks[address]}
	count(checks) >= 4
}

impossible_launches[address] contains e if {
	some address, _ in impossible_checks
	some [_, e] in launch_checks[address]
}

launch_checks[place] contains [check, e] if {
	some e in input.kernel_log.events
	e.id == "kernel-xid-launch-check"
	place := event_place(e)
	check := e.fields.check
}

# event_place is the GPU that an event names, or the host.
event_place(e) := e.address if {
	e.address != ""
} else := "host"

# sxid_severity weighs an NVSwitch error by its code, and by what the line
# itself says ("Fatal", "Non-fatal") where it says it.
sxid_severity(event) := "critical" if {
	event.code in xids.sxids.critical
} else := "critical" if {
	event.fatal == true
} else := "high" if {
	event.code in xids.sxids.high
} else := "info" if {
	event.code in xids.sxids.noted
} else := "info" if {
	event.id == "kernel-sxid-data" # Another line names the error.
} else := "low" if {
	event.fatal == false
} else := "medium"

# times counts how often events came.
times(events) := "once" if {
	sum([e.count | some e in events]) <= 1
} else := sprintf("%d times", [sum([e.count | some e in events])])

# stillborn are GPUs that the driver could not start, as its messages have it, for a reason that no other rule has:
# modules of the wrong kind or version are for driver-library-mismatch, and BARs without room for bar-too-small.
stillborn[event_place(e)] contains e if {
	count(input.texts) > 0
	some e in input.kernel_log.events
	e.id == "nvrm-init-failed"
	count(elsewhere) == 0
}

elsewhere contains e if {
	some e in input.kernel_log.events
	e.kind == "bar"
}

elsewhere contains e if {
	some e in input.kernel_log.events
	e.id in {"nvrm-api-mismatch-event", "nvrm-open-modules-required"}
}
