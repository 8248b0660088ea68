package gpudoctor.rules.raid_degraded_test

import data.gpudoctor.rules.raid_degraded

array(more) := {"storage": {"arrays": [object.union({"name": "md0", "level": "raid1", "state": "active", "disks": 2, "degraded": 0, "sync": "idle"}, more)]}}

only(m) := f if {
	found := raid_degraded.findings with input as m
	some f in found
	count(found) == 1
}

lacks(m) := found if found := {x.fact | some x in raid_degraded.missing} with input as m

test_fires_degraded if {
	f := only(array({"degraded": 1, "members": [{"device": "nvme1n1", "state": "faulty"}]}))
	[f.id, f.severity, f.params.array] == ["degraded", "medium", "md0"]
	contains(f.message, "lacks 1 device of 2 (nvme1n1 failed)")
}

test_fires_rebuild if {
	f := only(array({"degraded": 1, "sync": "recover", "sync_percent": 42.5}))
	f.severity == "low"
	contains(f.message, "(42.5 % done)")
}

test_fires_broken if only(array({"level": "raid0", "state": "broken"})).id == "broken"

test_fires_inactive if {
	f := only(array({"state": "inactive", "members": [{"device": "sdb1"}]}))
	[f.id, f.severity] == ["inactive", "low"]
	contains(f.message, "(it has sdb1)")
}

test_silent if {
	every more in [{}, {"sync": "check"}, {"sync": "resync"}, {"state": "inactive", "container": true}, {"state": "read-auto"}, {"state": "clean"}] {
		count(raid_degraded.findings) == 0 with input as array(more)
	}
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
	nothing := only({"storage": {"arrays": [{"name": "md0", "degraded": 1}]}})
	startswith(nothing.message, "The array md0 lacks 1 device; nothing rebuilds it")
	only(array({"degraded": 1, "sync": "recover"})).severity == "low"
	only(array({"state": "inactive"})).id == "inactive"
}

test_not_applicable if {
	raid_degraded.not_applicable == {"no md array"} with input as {"storage": {"arrays": []}}
	raid_degraded.not_applicable == {"no md array"} with input as array({"container": true})
	raid_degraded.not_applicable == set() with input as {"storage": {}}
}
