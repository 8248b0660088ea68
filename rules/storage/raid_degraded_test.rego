package gpudoctor.rules.raid_degraded_test

import data.gpudoctor.rules.raid_degraded

array(more) := {"storage": {"arrays": [object.union({"name": "md0", "level": "raid1", "state": "active", "disks": 2, "degraded": 0, "sync": "idle"}, more)]}}
lacks(m) := found if found := {x.fact | some x in raid_degraded.missing} with input as m

test_unresolvable if {
	count(raid_degraded.findings) == 0 with input as {}
	every key in ["state", "level", "degraded"] {
		m := {"storage": {"arrays": [object.remove(array({}).storage.arrays[0], [key])]}}
		lacks(m) == {"storage.arrays"}
	}
}
