package gpudoctor.rules.nvme_failed_test

import data.gpudoctor.rules.nvme_failed

machine(state) := {"storage": {"drives": [{"name": "nvme0", "model": "X", "address": "0000:3b:00.0", "state": state}]}}

test_unresolvable if {
	count(nvme_failed.findings) == 0 with input as {}
	count(nvme_failed.missing) == 1 with input as {"storage": {"drives": [{"name": "nvme0"}]}}
	count(nvme_failed.missing) == 0 with input as machine("live")
}
