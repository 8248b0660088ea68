package gpudoctor.rules.build_unsupported_test

import data.gpudoctor.rules.build_unsupported

ended_by(class) := {"logs": {"messages": [], "job": {"first": {"what": "signal", "class": class, "text": "a line", "source": "job.log", "line": 3}}}}

test_fires_on_an_instruction_that_the_processor_lacks if {
	{f.id | some f in build_unsupported.findings} == {"instruction"} with input as ended_by("SIGILL")
}

test_is_silent_on_other_signals if {
	count(build_unsupported.findings) == 0 with input as ended_by("SIGSEGV")
}
