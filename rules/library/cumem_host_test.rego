package gpudoctor.rules.cumem_host_test

import data.gpudoctor.rules.cumem_host

message(id, fields) := {"id": id, "program": "nccl", "role": "cause", "text": "said", "fields": fields, "source": "a.log", "line": 3, "order": 2, "count": 1, "ranks": 1}
loaded(version) := [{"name": "nccl", "version": version, "manager": "log", "source": "a.log", "line": 1}]

shm := message("nccl-cuda-peer-access-unsupported", {"file": "transport/shm.cc", "error": "217"})
off := {"env": {"variables": [{"name": "NCCL_CUMEM_HOST_ENABLE", "value": "0", "source": "environment", "effective": true}]}}

test_fires_where_mapping_fails if {
	other := message("nccl-cuda-not-permitted", {"file": "transport/shm.cc"})
	some g in cumem_host.findings with input as {"logs": {"messages": [other]}}
	g.confidence == "likely"
}

# Peer access that the transport over peer access lacks is another matter.
test_silent_for_other_transports if {
	count(cumem_host.findings) == 0 with input as {"software": loaded("2.20.5"), "logs": {"messages": [shm]}}
}

test_silent_when_switched_off if {
	count(cumem_host.findings) == 0 with input as object.union({"logs": {"messages": [shm]}}, off)
	whole := {"env": {"variables": [{"name": "NCCL_CUMEM_ENABLE", "value": "0", "source": "environment", "effective": true}]}}
	count(cumem_host.not_applicable) == 1 with input as whole
}

test_allocation_fails if {
	alloc := message("nccl-cuda-invalid-argument", {"file": "include/alloc.h"})
	some f in cumem_host.findings with input as {"software": loaded("2.26.2"), "logs": {"messages": [alloc]}}
	f.grade == "allocation"
	count(cumem_host.findings) == 0 with input as {"software": loaded("2.27.7"), "logs": {"messages": [alloc]}}
}
