package gpudoctor.rules.process_limits_test

import data.gpudoctor.rules.process_limits

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
