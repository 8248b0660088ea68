package gpudoctor.rules.rccl_bug_test

import data.gpudoctor.rules.rccl_bug

rocm(version) := {"name": "rocm", "version": version, "manager": "rocm", "source": "a.txt", "line": 1}

serving := {"name": "nccl", "version": "2.27.7", "manager": "log", "source": "a.log", "line": 2}
radeon := {"devices": [{"address": "GPU0", "vendor": "amd", "architecture": "gfx1201", "name": "AMD Radeon AI PRO R9700"}]}
hang := {"id": "torch-watchdog-timeout", "program": "pytorch", "role": "category", "text": "timeout", "source": "a.log", "line": 3, "order": 2, "count": 1, "ranks": 1}

test_other_signs_of_several_ranks if {
	communicator := {"software": [rocm("7.2.1")], "gpus": radeon, "logs": {"messages": [], "communicators": [{"library": "rccl", "ranks": 2}]}}
	count(rccl_bug.findings) == 1 with input as communicator
	launch := {"software": [rocm("7.2.1")], "gpus": radeon, "launches": [{"kind": "command", "tensor_parallel": 2}]}
	count(rccl_bug.findings) == 1 with input as launch
}

test_symptom_and_message if {
	mi350 := {"devices": [{"address": "GPU0", "vendor": "amd", "architecture": "gfx950", "name": "AMD Instinct MI355X"}]}
	document := {"software": [rocm("7.0.1")], "gpus": mi350, "logs": {"messages": [hang]}}
	some f in rccl_bug.findings with input as document
	count(f.messages) == 1
	fault := object.union(hang, {"id": "rocr-memory-fault"})
	some g in rccl_bug.findings with input as {"software": [rocm("5.3.0")], "logs": {"messages": [fault]}}
	g.params.fault == "async-memset"
}

test_silent_with_the_workaround if {
	document := {"software": [rocm("7.2.1"), serving], "gpus": radeon, "env": {"variables": [{"name": "NCCL_PROTO", "value": "Simple", "effective": true}]}}
	count(rccl_bug.findings) == 0 with input as document
}

test_silent_with_one_rank if count(rccl_bug.findings) == 0 with input as {"software": [rocm("7.2.1")], "gpus": radeon}
codeless(fields) := {"id": "hip-no-code-object", "program": "hip", "role": "cause", "text": "said", "source": "log.txt", "line": 5, "order": 1, "fields": fields}

test_unresolvable if count(rccl_bug.missing) == 1 with input as {"software": [{"name": "rccl", "version": "", "manager": "pip"}], "logs": {"messages": [codeless({})]}}

test_fires_on_a_machine_alone if {
	some f in rccl_bug.findings with input as {
		"gpus": {"amd": {"rocm": "6.2.4"}, "devices": [{"address": "0000:01:00.0", "vendor": "amd", "architecture": "gfx1201"}]},
		"libraries": {"files": []},
	}
	f.subject == "rocm"
}
