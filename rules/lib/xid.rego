# METADATA
# title: Error codes of the NVIDIA driver in the kernel log
# description: >-
#   What each Xid and SXid means, how much it matters, and what NVIDIA asks to
#   do at once. Names and actions follow NVIDIA's Xid catalog
#   (docs.nvidia.com/deploy/xid-errors) and the appendix of its Fabric Manager
#   User Guide; the severities are ours.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.xid

# meaning is by Xid. "class" is "fault" for a fault of the GPU or the way to
# it, "link" for one of NVLink, "application" for what a program's own error
# causes, "secondary" for a consequence of another event, and "note" for what
# wants no action now. "action" is what is to be done at once.
meaning := {
	13: {"name": "graphics engine exception", "class": "application", "action": "restart"},
	31: {"name": "memory page fault", "class": "application", "action": "restart"},
	32: {"name": "corrupt push buffer", "class": "application", "action": "restart"},
	43: {"name": "GPU stopped processing a program", "class": "application", "action": "none"},
	45: {"name": "preemptive removal of a program", "class": "secondary", "action": "none"},
	46: {"name": "GPU timeout", "class": "fault", "severity": "high", "action": "reset"},
	48: {"name": "double-bit ECC error", "class": "fault", "severity": "high", "action": "reset"},
	61: {"name": "internal microcontroller breakpoint", "class": "fault", "severity": "high", "action": "reset"},
	62: {"name": "internal microcontroller halt", "class": "fault", "severity": "high", "action": "reset"},
	63: {"name": "row remapping or page retirement recorded", "class": "note", "action": "none"},
	64: {"name": "row remapping or page retirement failed", "class": "fault", "severity": "high", "action": "reset"},
	74: {"name": "NVLink error", "class": "link", "severity": "high", "action": "reset"},
	79: {"name": "GPU has fallen off the bus", "class": "fault", "severity": "critical", "action": "restart-host"},
	92: {"name": "high rate of single-bit ECC errors", "class": "note", "action": "none"},
	94: {"name": "contained memory error", "class": "fault", "severity": "medium", "action": "restart"},
	95: {"name": "uncontained memory error", "class": "fault", "severity": "high", "action": "reset"},
	109: {"name": "context switch timeout", "class": "fault", "severity": "high", "action": "reset"},
	119: {"name": "no answer from the GPU's system processor (GSP)", "class": "fault", "severity": "high", "action": "reset-firmware"},
	120: {"name": "error of the GPU's system processor (GSP)", "class": "fault", "severity": "high", "action": "reset-firmware"},
	121: {"name": "error of the link to the Grace processor (C2C)", "class": "note", "action": "none"},
	136: {"name": "NVLink training failed", "class": "link", "severity": "high", "action": "reset"},
	137: {"name": "NVLink access violation, often a peer process that died", "class": "application", "action": "none"},
	140: {"name": "unrecovered ECC error", "class": "fault", "severity": "high", "action": "reset"},
	143: {"name": "GPU initialization failed", "class": "fault", "severity": "critical", "action": "reset"},
	144: {"name": "NVLink 5 error (SAW)", "class": "link", "severity": "high", "action": "reset"},
	145: {"name": "NVLink 5 error (RLW)", "class": "link", "severity": "high", "action": "reset"},
	146: {"name": "NVLink 5 error (TLW)", "class": "link", "severity": "high", "action": "reset"},
	147: {"name": "NVLink 5 error (TREX)", "class": "link", "severity": "high", "action": "reset"},
	148: {"name": "NVLink 5 error (NVLPW_CTRL)", "class": "link", "severity": "high", "action": "reset"},
	149: {"name": "NVLink 5 error (NETIR)", "class": "link", "severity": "high", "action": "reset"},
	150: {"name": "NVLink 5 error (MSE)", "class": "link", "severity": "high", "action": "reset"},
	151: {"name": "key rotation error of confidential computing", "class": "fault", "severity": "medium", "action": "restart-host"},
	154: {"name": "the recovery action changed", "class": "secondary", "action": "none"},
	155: {"name": "NVLink software error", "class": "link", "severity": "high", "action": "reset"},
	156: {"name": "a resource was retired", "class": "fault", "severity": "medium", "action": "reset"},
	157: {"name": "retirement of a resource failed", "class": "note", "action": "none"},
	158: {"name": "fatal timeout of the GPU", "class": "fault", "severity": "critical", "action": "reset"},
	167: {"name": "fatal timeout of PCIe", "class": "fault", "severity": "critical", "action": "restart-host"},
}

# severity of an Xid: its own, or by its class. A program's error, a
# consequence and a note say nothing against the machine.
severity(code) := meaning[code].severity

severity(code) := "low" if meaning[code].class == "application"

severity(code) := "info" if meaning[code].class in {"secondary", "note"}

# An Xid that is not in the table is not nothing, and no more is known.
severity(code) := "low" if not meaning[code]

name(code) := meaning[code].name

name(code) := "not in gpudoctor's table" if not meaning[code]

# remedies are what helps against an Xid, the best first. NVIDIA's health
# validation names the same steps: reset, restart, service. A consequence and a
# note want nothing; a row that was set aside takes effect at the next reset.
remedies(code) := ["fix-application"] if meaning[code].class == "application"

remedies(code) := by_action[meaning[code].action] if meaning[code].class in {"fault", "link"}

remedies(63) := ["reset-gpu"]

remedies(code) := [] if {
	meaning[code].class in {"secondary", "note"}
	code != 63
}

remedies(code) := [] if not meaning[code]

by_action := {
	"restart": ["reset-gpu", "replace-hardware"],
	"reset": ["reset-gpu", "reboot", "replace-hardware"],
	"reset-firmware": ["reset-gpu", "reboot", "upgrade-driver"],
	"restart-host": ["reboot", "reseat-or-fix-pcie-link", "replace-hardware"],
}

# impossible_checks are, by GPU, the checks of a kernel's descriptor that failed
# (Xid 13, "SKEDCHECK06_REGISTER_COUNT failed"), where they are so many that no
# program can have asked for it: a launch beyond the limits fails one or two.
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
	e.kind == "xid"
	e.code == 13
	place := event_place(e)
	some check in regex.find_n(`SKEDCHECK[0-9]+_[A-Z_]+`, e.message, -1)
}

# event_place is the GPU that an event names, or the host.
event_place(e) := e.address if {
	e.address != ""
} else := "host"

# fatal_sxids always stop the fabric; grave_sxids may. Others, such as 11004
# (invalid ACL), 12028, 19084, 20001 (replay), 20009, 20012, 22013 and
# corrected memory errors, do not.
fatal_sxids := {10003, 12020, 22003, 22011} | numbers_from(23001, 23017)

grave_sxids := {
	10001, 10002, 10004, 11001, 11009, 11013, 11018, 11019, 11020, 12001, 12002, 12022, 12024, 12025, 12026, 12027,
	12030, 12031, 12032, 14017, 15001, 15006, 15009, 15010, 15012, 15013, 20034, 22012, 24004, 24005, 24006, 24007,
}

numbers_from(first, last) := {n | some n in numbers.range(first, last)}

# sxid_severity weighs an NVSwitch error by its code, and by what the line
# itself says ("Fatal", "Non-fatal") where it says it.
sxid_severity(event) := "critical" if {
	event.code in fatal_sxids
} else := "critical" if {
	event.fatal == true
} else := "high" if {
	event.code in grave_sxids
} else := "info"

# times counts how often events came.
times(events) := "once" if {
	sum([e.count | some e in events]) <= 1
} else := sprintf("%d times", [sum([e.count | some e in events])])

# source names where the kernel log was read, for evidence.
source := input.kernel_log.source if {
	input.kernel_log.source != ""
} else := "kernel log"
