package gpudoctor.rules.raid_degraded_test

import data.gpudoctor.rules.raid_degraded

array(more) := {"storage": {"arrays": [object.union({"name": "md0", "level": "raid1", "state": "active", "disks": 2, "degraded": 0, "sync": "idle"}, more)]}}

only(m) := f if {
	found := raid_degraded.findings with input as m
	some f in found
	count(found) == 1
}

lacks(m) := found if found := {x.fact | some x in raid_degraded.missing} with input as m

test_fires if {
	f := only(array({"degraded": 1, "members": [{"device": "nvme1n1", "state": "faulty"}]}))
	[f.id, f.params.array, f.about.failed] == ["degraded", "md0", {"nvme1n1"}]
	only(array({"degraded": 1, "sync": "recover", "sync_percent": 42.5})).about.progress == [42.5]
	only(array({"level": "raid0", "state": "broken"})).id == "broken"
	only(array({"state": "inactive", "members": [{"device": "sdb1"}]})).about.members == {"sdb1"}
}

test_unresolvable if {
	count(raid_degraded.findings) == 0 with input as {}
	lacks(array({})) == set()
	lacks(array({"level": "raid0", "degraded": 0})) == set()
	lacks(array({"container": true, "level": ""})) == set()
	every key in ["state", "level", "degraded"] {
		m := {"storage": {"arrays": [object.remove(array({}).storage.arrays[0], [key])]}}
		lacks(m) == {"storage.arrays"}
	}
	only({"storage": {"arrays": [{"name": "md0", "degraded": 1}]}}).id == "degraded"
	only(array({"degraded": 1, "sync": "recover"})).id == "recover"
	only(array({"state": "inactive"})).id == "inactive"
}
