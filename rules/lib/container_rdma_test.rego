package gpudoctor.lib.container_rdma_test

import data.gpudoctor.lib.container_rdma

barred := {"logs": {"messages": [{"id": "nccl-network-not-found", "program": "nccl", "role": "cause", "text": "said", "source": "a.log", "line": 1, "order": 0}]}}

asked(launch) := {
	"logs": barred.logs,
	"env": {"variables": [{"name": "NCCL_NET", "value": "IB", "source": "a.log", "effective": true}]},
	"launches": [object.union({"kind": "docker-run", "source": "a.txt", "line": 1}, launch)],
}

graded(document) := {f.severity | some f in found} if found := container_rdma.found with input as document

test_found if {
	graded(asked({})) == {"critical"}
	graded(asked({"devices": ["/dev/infiniband/uverbs0"]})) == set()
	graded(barred) == set()
}
