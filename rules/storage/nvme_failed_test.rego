package gpudoctor.rules.nvme_failed_test

import data.gpudoctor.rules.nvme_failed

machine(state) := {"storage": {"drives": [{"name": "nvme0", "model": "X", "address": "0000:3b:00.0", "state": state}]}}

off(m) := object.union(m, {"pci": {"devices": [{"address": "0000:3b:00.0", "kind": "nvme", "off_bus": true}, {"address": "0000:18:00.0", "kind": "gpu", "off_bus": true}]}})

test_fires_dead if {
	some f in nvme_failed.findings with input as machine("dead")
	[f.id, f.subject] == ["dead", "nvme0"]
	contains(f.message, "nvme0 at 0000:3b:00.0 (X)")
}

test_fires_off_bus if {
	{f.subject | some f in nvme_failed.findings with input as off({"storage": {"drives": []}})} == {"0000:3b:00.0"}
}

test_once if {f.id | some f in nvme_failed.findings with input as off(machine("dead"))} == {"dead"}

test_silent if {
	every state in ["live", "new", "resetting", "connecting", "deleting"] {
		count(nvme_failed.findings) == 0 with input as machine(state)
	}
}

test_unresolvable if {
	count(nvme_failed.findings) == 0 with input as {}
	count(nvme_failed.missing) == 1 with input as {"storage": {"drives": [{"name": "nvme0"}]}}
	count(nvme_failed.missing) == 0 with input as machine("live")
}

test_not_applicable if {
	nvme_failed.not_applicable == {"no NVMe drive"} with input as {"storage": {"drives": []}}
	nvme_failed.not_applicable == set() with input as {"storage": {}}
}
