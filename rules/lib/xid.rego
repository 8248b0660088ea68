# The entries of the table of Xids and SXids (rules/data/xids.yaml) for the NVIDIA driver's events in the kernel log.
package gpudoctor.lib.xid

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.tables.xids

by_code[x.code] := x if some x in xids.xids

# meaning is the table's entry for an Xid. One that is not in the table may be any fault, so it is not ignored.
meaning(code) := object.get(by_code, code, {"class": "unknown", "severity": "medium", "name": "unknown to gpudoctor", "action": "unknown"})

remedies(code) := object.get(xids.actions, meaning(code).action, ["other"])

# of_nvlink are the Xids by which the driver reports a fault of an NVLink: 74, and 144 to 150 of NVLink 5.
of_nvlink := {74, 144, 145, 146, 147, 148, 149, 150}

text(code, events) := sprintf("Xid %d (%s), %s", [code, meaning(code).name, facts.counted(max([1, n]), "time")]) if {
	n := sum([e.count | some e in events])
}

# impossible_launches are, by GPU, the failed checks of a kernel's descriptor (Xid 13, "SKEDCHECK06_REGISTER_COUNT
# failed"), where they are more than the one or two of a launch beyond the limits.
impossible_launches[place] := es if {
	some place, es in launch_checks
	count({e.fields.check | some e in es}) >= 4
}

launch_checks[pci.place(e)] contains e if {
	some e in pci.events.xid
	e.id == "kernel-xid-launch-check"
}

# sxid_severity weighs an NVSwitch error by its code, then by what the line itself says ("Fatal", "Non-fatal").
sxid_severity(event) := array.flatten([
	["critical" | event.code in xids.sxids.critical],
	["critical" | event.fatal == true],
	["high" | event.code in xids.sxids.high],
	["info" | event.code in xids.sxids.noted],
	["info" | event.id == "kernel-sxid-data"], # Another line names the error.
	["low" | event.fatal == false],
	"medium",
])[0]
