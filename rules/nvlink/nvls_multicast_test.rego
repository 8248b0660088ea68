package gpudoctor.rules.nvls_multicast_test

import data.gpudoctor.rules.nvls_multicast

said(id, role, text) := {"logs": {"messages": [{"id": id, "program": "nccl", "role": role, "text": text, "source": "nccl.log", "line": 7, "order": 3}]}}

cuda := "h:1:2 [1] transport/nvls.cc:223 NCCL WARN Cuda failure 999 'unknown error'"

board(n) := {
	"gpus": {"devices": [{"address": sprintf("GPU%d", [i])} | some i in numbers.range(0, n - 1)]},
	"links": {"pairs": [{"a": "GPU0", "b": "GPU1", "kind": "gpu-gpu", "nvlinks": 18}]},
}

first(document) := f if some f in nvls_multicast.findings with input as document

test_fires if {
	f := first(said("nccl-cuda-failure", "category", cuda))
	f.remedies[0] == "reset-gpu"
	f.order == 3
	f.evidence[0].source == "nccl.log:7"
	count(nvls_multicast.findings) == 1 with input as said("cuda-multicast-failed", "cause", "cuMulticastBindMem failed")
	count(nvls_multicast.findings) == 1 with input as said("nccl-nvls-bind", "cause", "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 4 : CUDA error 401 'x'.")
}

test_a_slice_of_a_machine_cannot_reset_it if {
	first(object.union(said("nccl-cuda-failure", "category", cuda), board(4))).remedies[0] == "nccl-nvls-disable"
	first(object.union(said("nccl-cuda-failure", "category", cuda), board(8))).remedies[0] == "reset-gpu"
	first(object.union(said("nccl-cuda-failure", "category", cuda), {"container": {"inside": true}})).remedies[0] == "nccl-nvls-disable"
}

test_without_a_fabric_manager if {
	stopped := {"gpus": {"driver": {"fabric_manager": {"running": false}}}}
	f := first(object.union(said("nccl-cuda-failure", "category", cuda), stopped))
	f.remedies[0] == "start-fabric-manager"
	contains(f.message, "does not run")
}

test_silent if {
	quiet := [
		"Failed to bind NVLink SHARP (NVLS) Multicast memory of size 4 : CUDA error 401 'x'. Proceeding without NVLS support.",
		"h:1:2 [1] transport/nvls.cc:223 NCCL WARN Cuda failure 2 'out of memory'",
		"h:1:2 [1] transport/nvls.cc:223 NCCL WARN Cuda failure 802 'system not yet initialized'",
		"h:1:2 [1] transport/p2p.cc:223 NCCL WARN Cuda failure 999 'unknown error'",
	]
	every text in quiet {
		count(nvls_multicast.findings) == 0 with input as said("nccl-cuda-failure", "category", text)
	}
	count(nvls_multicast.findings) == 0 with input as said("nccl-nvls", "setting", "NVLS multicast support is available on dev 0")
	count(nvls_multicast.missing) == 0 with input as said("nccl-nvls", "setting", "NVLS multicast support is available on dev 0")
}

test_unresolvable if {
	count(nvls_multicast.findings) == 0 with input as {}
	count(nvls_multicast.missing) == 1 with input as {}
}

test_not_applicable_on_a_live_machine if {
	count(nvls_multicast.not_applicable) == 1 with input as board(8)
	count(nvls_multicast.missing) == 0 with input as board(8)
}

test_multicast_groups_run_out if {
	f := first(said("nccl-nvls-bind-failed", "cause", "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 2 'out of memory'."))
	f.confidence == "likely"
	f.remedies[0] == "nccl-nvls-disable"
	count(nvls_multicast.findings) == 0 with input as said("nccl-nvls-bind-failed", "cause", "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 4 : CUDA error 2 'out of memory'. Proceeding without NVLS support.")
}
