package gpudoctor.rules.driver_not_loaded_test

import data.gpudoctor.rules.driver_not_loaded

test_unresolvable_without_logs if {
	count(driver_not_loaded.missing) == 1 with input as {}
	count(driver_not_loaded.missing) == 0 with input as {"logs": {"messages": []}}
}
