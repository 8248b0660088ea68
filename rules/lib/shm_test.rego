package gpudoctor.lib.shm_test

import data.gpudoctor.lib.shm

log(ids) := {"logs": {"messages": [{"id": id, "program": "x", "role": "category", "text": id, "source": "a.log", "line": i, "order": i} | some i, id in ids]}}

kinds(document) := {t.id | some t in told; count(t.messages) > 0} if told := shm.told with input as document

test_told if {
	kinds(log(["nccl-shm-no-space"])) == {"stated"}
	kinds(log(["bus-error", "no-space-left"])) == {"implied", "full"}
	kinds({}) == set()
}

# A size of which nothing is known is neither small nor large.
test_size if {
	shm.small with input as {"container": {"shm": {"size_bytes": 67108864}}}
	shm.roomy with input as {"container": {"shm": {"size_bytes": 1073741824}}}
	not shm.small with input as {}
	not shm.roomy with input as {}
}
