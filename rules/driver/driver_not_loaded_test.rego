package gpudoctor.rules.driver_not_loaded_test

import data.gpudoctor.rules.driver_not_loaded

said(ids) := {"logs": {"messages": [{"id": id, "program": "x", "role": "cause", "text": id, "source": "a.log", "line": i + 1, "order": i, "count": 1} |
	some i, id in ids
]}}

found(document) := {f.subject | some f in driver_not_loaded.findings with input as document}

test_fires_where_nvidia_smi_says_so if {
	some f in driver_not_loaded.findings with input as said(["nvidia-driver-unreachable"])
	contains(f.message, "not loaded")
	f.order == 0
}

test_fires_where_torch_says_so if found(said(["torch-no-driver"])) == {"driver"}

test_silent_where_torch_says_so_in_a_container if {
	launches := [{"kind": "docker-run", "source": "run.sh", "line": 1}]
	found(object.union(said(["torch-no-driver"]), {"launches": launches})) == set()
}

test_silent_where_versions_differ if found(said(["nvidia-driver-unreachable", "nvml-version-mismatch"])) == set()

test_silent_for_others if found(said(["torch-out-of-memory"])) == set()

test_unresolvable_without_logs if {
	count(driver_not_loaded.missing) == 1 with input as {}
	found({}) == set()
}
