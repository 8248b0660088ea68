package gpudoctor.rules.nccl_version_mismatch_test

import data.gpudoctor.rules.nccl_version_mismatch

message(id) := {"id": id, "program": "nccl", "role": "cause", "text": "said", "source": "a.log", "line": 3, "order": 2, "count": 1, "ranks": 1}
wheel(name, version, host) := {"name": name, "version": version, "manager": "pip", "host": host, "source": sprintf("%s.txt", [host]), "line": 2}

hosts := [
	wheel("nvidia-nccl-cu11", "2.14.3", "n1"), wheel("nvidia-nccl-cu12", "2.20.5", "n1"),
	wheel("nvidia-nccl-cu11", "2.14.3", "n2"), wheel("nvidia-nccl-cu12", "2.19.3", "n2"),
]

test_hosts_differ_and_the_job_failed if {
	some f in nccl_version_mismatch.findings with input as {"software": hosts, "logs": {"messages": [message("nccl-unhandled-system-error")]}}
	f.severity == "high"
}

test_garbage_alone_is_possible if {
	document := {"logs": {"messages": [message("nccl-address-family-unknown")]}}
	some f in nccl_version_mismatch.findings with input as document
	f.grade == "garbage"
}

network(host, name, source) := {"host": host, "name": name, "source": source, "line": 3, "count": 1}

test_networks_of_other_code if {
	mixed := {"logs": {"messages": [], "networks": [network("n1", "IB", "a.log"), network("n2", "IBext_v8", "a.log")]}}
	some f in nccl_version_mismatch.findings with input as mixed
	f.grade == "networks"
	f.about.hosts == {"n1 IB", "n2 IBext_v8"}
}

test_silent_on_plugins_of_two_runs if {
	tried := {"logs": {"messages": [], "networks": [network("n1", "IB", "a.log"), network("n1", "IBext_v8", "a.log")]}}
	count(nccl_version_mismatch.findings) == 0 with input as tried
	tcp := {"logs": {"messages": [], "networks": [network("n1", "IB", "a.log"), network("n2", "Socket", "a.log")]}}
	count(nccl_version_mismatch.findings) == 0 with input as tcp
}
