# METADATA
# title: An md array is degraded
# description: >-
#   An array of the md driver lacks a device. It still works, slower, above all while it is being rebuilt, and one more
#   failure may lose its data. Data on an array that lost a device without redundancy cannot be read.
# related_resources:
#   - {ref: https://docs.kernel.org/admin-guide/md.html, description: The files of an array and what their values mean}
# custom:
#   severity: medium
#   confidence: confirmed
#   cause: other
#   needs: ["storage.arrays[].state"]
#   remedies: [repair-raid]
#   profiles: [training]
#   since: "0.2"
#   grades:
#     degraded: >-
#       The array {name}[ ({level})] lacks {degraded:device}[ of {disks}][ ({failed:few} failed)], and one more failure may
#       lose its data[; sync_action is {sync}]
#     broken: "The array {name}[ ({level})] lost a device and has no redundancy[ ({failed:few} failed)]: its data cannot be read"
package gpudoctor.rules.raid_degraded

findings contains {
	"id": id,
	"subject": a.name,
	"about": object.union(a, {"failed": {m.device | some m in a.members; "faulty" in split(m.state, ",")}}),
	"evidence": [{
		"fact": sprintf("storage.arrays[%s]", [a.name]),
		"value": object.filter(a, ["level", "state", "disks", "degraded", "sync", "sync_percent"]),
		"source": sprintf("/sys/block/%s/md", [a.name]),
	}],
	"params": {"array": a.name},
} if {
	some a in input.storage.arrays
	some id, true in {"degraded": object.get(a, "degraded", 0) > 0, "broken": a.state == "broken"}
}

missing contains {"fact": "storage.arrays", "words": sprintf("what the array %s lacks is not known", [a.name])} if {
	some a in input.storage.arrays
	not object.get(a, "level", "") in {"raid0", "linear", "container"} # These have no redundancy.
	not is_number(object.get(a, "degraded", null))
}

not_applicable contains "no md array" if count(input.storage.arrays) == 0
