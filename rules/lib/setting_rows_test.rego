package gpudoctor.lib.setting_rows_test

import data.gpudoctor.lib.setting_rows

set(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "run.log", "effective": true}]}}

test_fits if {
	setting_rows.fits({"is": [1]}, "1")
	setting_rows.fits({"at_most": 4}, "2")
	setting_rows.fits({"text": ["socket"]}, "Socket")
	setting_rows.fits({"like": "^eth"}, "eth0")
	setting_rows.fits({"lacks": ["cuda_copy"]}, "rc,sm")
	not setting_rows.fits({"lacks": ["cuda_copy"]}, "rc, cuda_copy")
	not setting_rows.fits({"lacks": ["cuda_copy"]}, "^ud")
	setting_rows.fits({"why": "is set"}, "anything")
	not setting_rows.fits({"is": [1]}, "2")
}

# Three rows name NCCL_DEBUG: one the level that writes most, one the others, one the rest.
test_decisive_is_the_first_that_fits if {
	not setting_rows.decisive("NCCL_DEBUG").inert with input as set("NCCL_DEBUG", "TRACE")
	setting_rows.decisive("NCCL_DEBUG").silent with input as set("NCCL_DEBUG", "INFO")
	setting_rows.decisive("NCCL_DEBUG").inert with input as set("NCCL_DEBUG", "LOUD")
	not setting_rows.decisive("NCCL_DEBUG") with input as {}
}

test_a_chosen_setting_weighs_little if {
	row := {"severity": "high"}
	shown := {"texts": [{"name": "run.log"}]}
	setting_rows.weighed(row, {"source": "run.log"}) == "low" with input as shown
	setting_rows.weighed(row, {"source": "environment"}) == "high" with input as shown
	slow := {"benchmarks": [{"points": [{"gbps": 20, "expected_gbps": 450, "threshold": 0.35}]}]}
	setting_rows.weighed(row, {"source": "run.log"}) == "high" with input as object.union(shown, slow)
}

copies(gbps, staged) := {"transfers": {"outcome": "ok", "transfers": [
	{"test": "copy", "source": "0000:01:00.0", "destination": "0000:02:00.0", "outcome": "ok", "gbps": gbps},
	{"test": "host-staged", "source": "0000:01:00.0", "destination": "0000:02:00.0", "outcome": "ok", "gbps": staged},
]}}

test_severity_by_loss if {
	row := {"severity": "by-loss"}
	setting_rows.severity(row) == "medium" with input as copies(53, 43)
	setting_rows.severity(row) == "high" with input as copies(53, 11)
	setting_rows.severity(row) == "high" with input as {}
}
