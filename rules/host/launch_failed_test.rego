package gpudoctor.rules.launch_failed_test

import data.gpudoctor.rules.launch_failed

test_unresolvable_without_logs if {
	count(launch_failed.missing) == 1 with input as {}
	count(launch_failed.missing) == 0 with input as {"logs": {"messages": []}}
}
