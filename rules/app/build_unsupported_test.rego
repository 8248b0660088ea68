package gpudoctor.rules.build_unsupported_test

import data.gpudoctor.rules.build_unsupported

test_unresolvable_without_logs if {
	count(build_unsupported.missing) == 1 with input as {}
	count(build_unsupported.missing) == 0 with input as {"logs": {"messages": []}}
}
