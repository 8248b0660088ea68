package gpudoctor.rules.build_unsupported_test

import data.gpudoctor.rules.build_unsupported

ended_by(class) := {"logs": {"messages": [], "job": {"first": {"what": "signal", "class": class, "text": "a line", "source": "job.log", "line": 3}}}}

test_fires_on_an_instruction_that_the_processor_lacks if {
	{f.id | some f in build_unsupported.findings} == {"instruction"} with input as ended_by("SIGILL")
}

test_is_silent_on_other_signals if {
	count(build_unsupported.findings) == 0 with input as ended_by("SIGSEGV")
}

report(gpu, version) := {
	"gpus": {"devices": [{"name": gpu}]},
	"software": [object.union({"source": "a.txt", "line": 3, "manager": "collect_env"}, version)],
}

test_fires_on_a_pytorch_older_than_the_gpu if {
	every row in [
		["NVIDIA GeForce RTX 5090", {"name": "cuda-runtime", "version": "11.8"}],
		["NVIDIA B200", {"name": "torch", "version": "2.3.1+cu121"}],
		["NVIDIA H100 80GB HBM3", {"name": "torch", "version": "2.0.0+cu117"}],
	] {
		{[f.id, f.severity] | some f in build_unsupported.findings} == {["architecture", "medium"]} with input as report(row[0], row[1])
	}
	complains := {"logs": {"messages": [{"id": "x", "role": "category"}]}}
	some f in build_unsupported.findings with input as object.union(complains, report("NVIDIA GeForce RTX 5090", {"name": "cuda-runtime", "version": "11.8"}))
	f.severity == "high"
}

test_is_silent_on_a_pytorch_for_the_gpu if {
	every row in [
		["NVIDIA GeForce RTX 5090", {"name": "cuda-runtime", "version": "12.8"}],
		["NVIDIA GeForce RTX 4090", {"name": "torch", "version": "2.0.0+cu117"}], # It runs the code for 8.6.
		["NVIDIA GeForce RTX 5090", {"name": "torch", "version": "2.7.0"}], # It does not say for which CUDA.
		["NVIDIA GeForce RTX 5090", {"name": "cuda-runtime", "version": "11.8", "manager": "pip"}],
	] {
		count(build_unsupported.findings) == 0 with input as report(row[0], row[1])
	}
}
