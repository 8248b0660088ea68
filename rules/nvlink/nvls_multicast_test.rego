package gpudoctor.rules.nvls_multicast_test

import data.gpudoctor.rules.nvls_multicast

said(id, role, fields) := {"logs": {"messages": [{"id": id, "program": "nccl", "role": role, "text": "x", "fields": fields, "source": "nccl.log", "line": 7, "order": 3}]}}

cuda := {"file": "transport/nvls.cc", "error": "999"}

board(n) := {
	"gpus": {"devices": [{"address": sprintf("GPU%d", [i])} | some i in numbers.range(0, n - 1)]},
	"links": {"pairs": [{"a": "GPU0", "b": "GPU1", "kind": "gpu-gpu", "nvlinks": 18}]},
}

first(document) := f if some f in nvls_multicast.findings with input as document

test_a_slice_of_a_machine_cannot_reset_it if {
	first(object.union(said("nccl-cuda-unknown-error", "category", cuda), board(4))).remedies[0] == "nccl-nvls-disable"
	first(object.union(said("nccl-cuda-unknown-error", "category", cuda), board(8))).remedies[0] == "reset-all-gpus"
}

# begun is a log of ranks of which so many came to the end of their start.
begun(completed) := object.union(
	said("nccl-nvls-binding", "setting", {}),
	{"logs": {"communicators": [{"source": "nccl.log", "started": 4, "completed": completed}]}},
)

test_the_last_step_is_the_binding if {
	first(begun(0)).id == "stopped"
	not first(begun(4))
}

test_silent if {
	every quiet in [
		["nccl-cuda-out-of-memory", {"file": "transport/nvls.cc", "error": "2"}],
		["nccl-cuda-system-not-ready", {"file": "transport/nvls.cc", "error": "802"}],
		["nccl-nvls-bind-failed", {"error": "802"}],
	] {
		count(nvls_multicast.findings) == 0 with input as said(quiet[0], "cause", quiet[1])
	}
}
