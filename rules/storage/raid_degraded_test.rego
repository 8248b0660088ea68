package gpudoctor.rules.raid_degraded_test

import data.gpudoctor.rules.raid_degraded

test_unresolvable if {
	count(raid_degraded.findings) == 0 with input as {}
	count(raid_degraded.missing) == 1 with input as {"storage": {"arrays": [{"name": "md0", "level": "raid1", "state": "active"}]}}
}
