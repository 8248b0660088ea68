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

# reserves is a process with this limit on its address space, and a GPU that reports that memory ran out.
reserves(limit) := says(limit, "torch-out-of-memory")

says(limit, id) := {
	"container": {"address_space_soft_bytes": limit},
	"logs": {"messages": [{"id": id, "program": "pytorch", "role": "cause", "text": "said", "source": "a.log", "line": 1, "order": 0, "count": 1, "ranks": 1}]},
}

test_fires_on_a_limited_address_space if {
	some f in process_limits.findings with input as reserves(16384000000)
	f.id == "address-space"
	count(process_limits.findings) == 1 with input as says(16384000000, "nccl-cuda-out-of-memory")
	every document in [reserves(-1), object.remove(reserves(16384000000), ["logs"])] {
		count(process_limits.findings) == 0 with input as document
	}
}

ended_by(class) := {"logs": {"messages": [], "job": {"first": {"what": "signal", "class": class, "text": "a line", "source": "job.log", "line": 3}}}}

test_fires_on_a_signal_of_a_limit if {
	{[f.id, f.subject] | some f in process_limits.findings} == {["signal", "RLIMIT_CPU"]} with input as ended_by("SIGXCPU")
	{[f.id, f.subject] | some f in process_limits.findings} == {["signal", "RLIMIT_FSIZE"]} with input as ended_by("SIGXFSZ")
	count(process_limits.findings) == 0 with input as ended_by("SIGSEGV")
}

test_fires_on_a_limit_of_file_sizes if {
	some f in process_limits.findings with input as {"logs": {
		"job": {"first": {"text": "unexpected pos", "behind": ["RuntimeError: PytorchStreamWriter failed writing file"], "source": "a.log", "line": 1}},
		"messages": [{"id": "file-size-limited", "role": "setting", "order": 0, "fields": {"blocks": "8192"}, "source": "b.txt", "line": 1}],
	}}
	f.id == "file-size"
}
