package gpudoctor.rules.nccl_bug_test

import data.gpudoctor.rules.nccl_bug

message(id, order) := {"id": id, "program": "nccl", "role": "cause", "text": "said", "source": "a.log", "line": 3, "order": order, "count": 1, "ranks": 1}
loaded(version) := [{"name": "nccl", "version": version, "manager": "log", "source": "a.log", "line": 1}]

test_a_table_of_wrong_values_has_no_order if {
	document := {"software": loaded("2.17.1"), "benchmarks": [{"wrong": 3, "source": "b.txt", "line": 9}]}
	some f in nccl_bug.findings with input as document
	f.params.fault == "tree-ll128"
	count(f.messages) == 0
}

test_fires_under_wsl if {
	failed := message("nccl-unhandled-system-error", 1)
	some f in nccl_bug.findings with input as {"host": {"kernel": "4.19.128-microsoft-standard"}, "software": loaded("2.8.3"), "logs": {"messages": [failed]}}
	[f.severity, count(f.messages), f.remedies] == ["critical", 1, ["upgrade-nccl"]]
	count(nccl_bug.findings) == 0 with input as {"host": {"kernel": "5.15.133.1-microsoft-standard-WSL2"}, "software": loaded("2.18.3"), "logs": {"messages": [failed]}}
	count(nccl_bug.findings) == 0 with input as {"host": {"kernel": "5.15.0-25-generic"}, "software": loaded("2.8.3"), "logs": {"messages": [failed]}}
}

machine(versions, gpu) := {
	"gpus": {"devices": [{"address": "0000:01:00.0", "vendor": "nvidia", "name": gpu}]},
	"libraries": {"files": [{"kind": "libnccl", "path": sprintf("/opt/%s/libnccl.so.2", [v]), "version": v, "found_by": "python"} | some v in versions]},
}

# Which of two versions a job loads decides.
test_unresolvable_with_two_versions if {
	some m in nccl_bug.missing with input as machine(["2.20.5", "2.28.9"], "NVIDIA B200")
	contains(m.words, "installed versions")
	count(nccl_bug.missing) == 0 with input as machine(["2.28.3", "2.28.9"], "NVIDIA B200")
}
