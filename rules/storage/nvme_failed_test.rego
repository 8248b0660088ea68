package gpudoctor.rules.nvme_failed_test

import data.gpudoctor.rules.nvme_failed

test_unresolvable if {
	count(nvme_failed.findings) == 0 with input as {}
	count(nvme_failed.missing) == 1 with input as {"storage": {"drives": [{"name": "nvme0"}]}}
}
