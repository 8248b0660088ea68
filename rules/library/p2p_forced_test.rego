package gpudoctor.rules.p2p_forced_test

import data.gpudoctor.rules.p2p_forced

garbage := {"id": "model-output-degenerate", "program": "frameworks", "role": "category", "text": "!!!!!!!!!!!!", "source": "a.log", "line": 3, "order": 2, "count": 1, "ranks": 1}

with_variable(name, value) := {
	"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]},
	"logs": {"messages": [garbage]},
}

test_fires if {
	some f in p2p_forced.findings with input as with_variable("GGML_CUDA_P2P", "1")
	f.subject == "GGML_CUDA_P2P"
	f.remedies == ["unset-env"]
	f.order == 2
	count(p2p_forced.findings) == 1 with input as with_variable("VLLM_SKIP_P2P_CHECK", "1")
}

# llama.cpp asks whether it is set at all.
test_values if {
	count(p2p_forced.findings) == 1 with input as with_variable("GGML_CUDA_P2P", "0")
	count(p2p_forced.findings) == 0 with input as with_variable("VLLM_SKIP_P2P_CHECK", "0")
}

test_silent_without_garbage if {
	document := object.union(with_variable("GGML_CUDA_P2P", "1"), {"logs": {"messages": []}})
	count(p2p_forced.findings) == 0 with input as document
}

test_silent_without_the_switch if count(p2p_forced.findings) == 0 with input as with_variable("NCCL_DEBUG", "INFO")

test_unresolvable if {
	count(p2p_forced.missing) == 2 with input as {}
	count(p2p_forced.findings) == 0 with input as {}
}
