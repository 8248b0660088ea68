# METADATA
# title: An md array is degraded or not started
# description: >-
#   An array of the md driver lacks a device, or the kernel has not started it.
#   A degraded array still works: it is slower, above all while it is being
#   rebuilt, and one more failure may lose its data. Data on an array that is not
#   started, or that lost a device without redundancy, cannot be read.
# related_resources:
#   - ref: https://docs.kernel.org/admin-guide/md.html
#     description: The files of an array and what their values mean
# custom:
#   severity: medium
#   confidence: confirmed
#   cause: other
#   needs: [storage.arrays]
#   remedies: [repair-raid]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.raid_degraded

import data.gpudoctor.lib.facts

# arrays are those that are meant to be active: a container only holds the metadata of others.
arrays contains a if {
	some a in input.storage.arrays
	a.name != ""
	not a.container == true
}

shown(a, field) := {"fact": sprintf("storage.arrays[%s].%s", [a.name, field]), "value": a[field], "source": sprintf("/sys/block/%s/md", [a.name])}

# out are the devices of an array that failed.
out(a) := {m.device |
	some m in a.members
	"faulty" in split(m.state, ",")
}

failed(a) := sprintf(" (%s failed)", [facts.few(out(a))]) if {
	count(out(a)) > 0
} else := ""

described(a) := sprintf("%s (%s)", [a.name, a.level]) if {
	a.level != ""
} else := a.name

meant(a) := sprintf(" of %d", [a.disks]) if {
	a.disks > 0
} else := ""

rebuilt(a) if a.sync == "recover"

progress(a) := sprintf(" (%v %% done)", [a.sync_percent]) if {
	a.sync_percent >= 0
} else := ""

grade(a) := ["low", sprintf("it is being rebuilt%s, which takes bandwidth from jobs", [progress(a)])] if {
	rebuilt(a)
} else := ["medium", "nothing rebuilds it, and one more failure may lose its data"]

findings contains {
	"id": "degraded",
	"subject": a.name,
	"message": sprintf("The array %s lacks %s%s%s; %s", [described(a), facts.counted(a.degraded, "device"), meant(a), failed(a), words]),
	"evidence": [shown(a, field) | some field in ["degraded", "disks", "sync"]; a[field]],
	"params": {"array": a.name},
	"severity": severity,
} if {
	some a in arrays
	a.degraded > 0
	[severity, words] := grade(a)
}

findings contains {
	"id": "broken",
	"subject": a.name,
	"message": sprintf("The array %s lost a device and has no redundancy%s: its data cannot be read", [described(a), failed(a)]),
	"evidence": [shown(a, "state")],
	"params": {"array": a.name},
	"severity": "medium",
} if {
	some a in arrays
	a.state == "broken"
}

# An array that waits for a missing device is inactive, and so is what is left of one that is no longer used.
findings contains {
	"id": "inactive",
	"subject": a.name,
	"message": sprintf("The array %s is assembled, but not started%s: a device is missing, or its devices are left from an array that is no longer used", [described(a), present(a)]),
	"evidence": [shown(a, "state")],
	"params": {"array": a.name},
	"severity": "low",
	"confidence": "likely",
} if {
	some a in arrays
	a.state == "inactive"
}

present(a) := sprintf(" (it has %s)", [facts.few({m.device | some m in a.members})]) if {
	count(a.members) > 0
} else := ""

# redundant are the levels whose arrays tell how many devices are missing.
redundant := {"raid1", "raid4", "raid5", "raid6", "raid10"}

missing contains {"fact": "storage.arrays", "words": sprintf("the state of the array %s is not known", [a.name])} if {
	some a in arrays
	not told(a)
}

# told is true of an array whose state and level are known, and of a redundant one that works, what it lacks.
told(a) if {
	a.state != ""
	a.level != ""
	not a.level in redundant
}

told(a) if {
	a.state != ""
	a.level in redundant
	is_number(a.degraded)
}

not_applicable contains "no md array" if {
	is_array(input.storage.arrays)
	count(arrays) == 0
}
