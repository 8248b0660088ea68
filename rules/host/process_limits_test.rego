package gpudoctor.rules.process_limits_test

import data.gpudoctor.rules.process_limits

test_unresolvable_without_logs if count(process_limits.missing) == 1 with input as {"texts": [{"name": "notes.txt"}]}

opens(files) := {"container": {"nofile_soft": files}}

test_fires_on_a_lowered_limit if {
	some f in process_limits.findings with input as opens(256)
	f.severity == "low"
	f.confidence == "possible"
}

test_silent_for_defaults_and_no_limit if {
	count(process_limits.findings) == 0 with input as opens(1024)
	count(process_limits.findings) == 0 with input as opens(-1)
}
