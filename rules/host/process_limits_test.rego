package gpudoctor.rules.process_limits_test

import data.gpudoctor.rules.process_limits

test_unresolvable_without_logs if {
	count(process_limits.missing) == 1 with input as {}
}
