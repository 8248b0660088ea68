package gpudoctor.lib.rank_gpus_test

import data.gpudoctor.lib.rank_gpus

log(id, fields) := {"logs": {"messages": [{"id": id, "program": "nccl", "role": "cause", "text": "said", "fields": fields, "source": "a.log", "line": 1, "order": 0}]}}

seen(document) := count(messages) if messages := rank_gpus.beyond_sight with input as document

test_beyond_sight if {
	seen(log("nccl-cuda-invalid-device", {"file": "transport/p2p.cc"})) == 1
	seen(log("nccl-cuda-invalid-device", {})) == 1
	seen(log("nccl-cuda-invalid-device", {"file": "transport/shm.cc"})) == 0
	seen(log("nccl-cuda-invalid-device", {"file": "alloc.h"})) == 0
	seen(log("openmpi-cuda-ipc-failed", {"error": "10"})) == 1
	seen(log("nccl-ipc-open-failed", {"error": "201"})) == 0
}

test_neighbours if {
	rank_gpus.neighbours({"3", "4", "9"})
	not rank_gpus.neighbours({"0", "8"})
}
