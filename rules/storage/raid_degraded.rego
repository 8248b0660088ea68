# METADATA
# title: An md array is degraded or not started
# description: >-
#   An array of the md driver lacks a device, or the kernel has not started it. A degraded array still works: it is
#   slower, above all while it is being rebuilt, and one more failure may lose its data. Data on an array that is not
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
#   grades:
#     degraded: >-
#       The array {array}[ ({level})] lacks {degraded:device}[ of {disks}][ ({failed:few} failed)]; nothing rebuilds it,
#       and one more failure may lose its data
#     recover:
#       severity: low
#       text: >-
#         The array {array}[ ({level})] lacks {degraded:device}[ of {disks}][ ({failed:few} failed)]; it is being
#         rebuilt[ ({progress} % done)], which takes bandwidth from jobs
#     broken: >-
#       The array {array}[ ({level})] lost a device and has no redundancy[ ({failed:few} failed)]: its data cannot be
#       read
#     inactive:
#       severity: low
#       confidence: likely
#       text: >-
#         The array {array}[ ({level})] is assembled, but not started[ (it has {members:few})]: a device is missing, or
#         its devices are left from an array that is no longer used
package gpudoctor.rules.raid_degraded

# arrays are those that are meant to be active: a container only holds the metadata of others.
arrays contains a if {
	some a in input.storage.arrays
	a.name != ""
	not a.container == true
}

finding(a, grade, fields) := {
	"id": grade,
	"subject": a.name,
	"about": object.union(a, {
		"array": a.name,
		"members": {m.device | some m in a.members},
		"failed": {m.device | some m in a.members; "faulty" in split(m.state, ",")},
		"progress": [p | p := a.sync_percent; p >= 0],
		"disks": [n | n := a.disks; n > 0],
	}),
	"evidence": [{"fact": sprintf("storage.arrays[%s].%s", [a.name, f]), "value": a[f], "source": sprintf("/sys/block/%s/md", [a.name])} | some f in fields; a[f]],
	"params": {"array": a.name},
}

findings contains finding(a, grade, ["degraded", "disks", "sync"]) if {
	some a in arrays
	a.degraded > 0
	grade := {true: "recover", false: "degraded"}[object.get(a, "sync", "") == "recover"]
}

# An array that waits for a missing device is inactive, and so is what is left of one that is no longer used.
findings contains finding(a, a.state, ["state"]) if {
	some a in arrays
	a.state in {"broken", "inactive"}
}

# An array works if its state and level are known, and of a redundant one, what it lacks.
missing contains {"fact": "storage.arrays", "words": sprintf("the state of the array %s is not known", [a.name])} if {
	some a in arrays
	not told(a)
}

told(a) if {
	a.state != ""
	redundant := a.level in {"raid1", "raid4", "raid5", "raid6", "raid10"}
	true in {redundant == false, is_number(object.get(a, "degraded", ""))}
}

not_applicable contains "no md array" if {
	is_array(input.storage.arrays)
	count(arrays) == 0
}
