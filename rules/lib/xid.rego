# NVIDIA driver error codes in the kernel log. The entries of the table of Xids and SXids (rules/data/xids.yaml) for the
# events in the kernel log.
package gpudoctor.lib.xid

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.tables.xids

by_code[x.code] := x if some x in xids.xids

# meaning is the table's entry for an Xid. One that is not in the table may be any fault, so it is not ignored.
meaning(code) := object.get(by_code, code, {
	"class": "unknown", "severity": "medium", "name": "unknown to gpudoctor", "action": "unknown",
})

# remedies are what helps against an Xid, the best first.
remedies(code) := object.get(xids.actions, meaning(code).action, ["other"])

# text names an Xid and counts its events.
text(code, events) := sprintf("Xid %d (%s), %s", [code, meaning(code).name, facts.counted(max([1, n]), "time")]) if {
	n := sum([e.count | some e in events])
}

# impossible_launches are, by GPU, the failed checks of a kernel's descriptor (Xid 13, "SKEDCHECK06_REGISTER_COUNT
# failed"), where they are so many that no program can have asked for it: a launch beyond the limits fails one or two.
impossible_launches[place] := es if {
	some place, es in launch_checks
	count({e.fields.check | some e in es}) >= 4
}

launch_checks[pci.place(e)] contains e if {
	some e in input.kernel_log.events
	e.id == "kernel-xid-launch-check"
}

# sxid_severity weighs an NVSwitch error by its code, and by what the line itself says ("Fatal", "Non-fatal") where it
# says it.
sxid_severity(event) := array.flatten([
	["critical" | event.code in xids.sxids.critical],
	["critical" | event.fatal == true],
	["high" | event.code in xids.sxids.high],
	["info" | event.code in xids.sxids.noted],
	["info" | event.id == "kernel-sxid-data"], # Another line names the error.
	["low" | event.fatal == false],
	"medium",
])[0]
