package gpudoctor.lib.forced_peer_access_test

import data.gpudoctor.lib.forced_peer_access

asked(name, value, nvlinks) := {
	"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]},
	"links": {"pairs": [{"a": "GPU0", "b": "GPU1", "kind": "gpu-gpu", "nvlinks": nvlinks}]},
}

test_forced if {
	object.keys(forced_peer_access.forced) == {"VLLM_SKIP_P2P_CHECK"} with input as asked("VLLM_SKIP_P2P_CHECK", "1", 0)
	forced_peer_access.forced == {} with input as asked("VLLM_SKIP_P2P_CHECK", "0", 0)
	forced_peer_access.forced == {} with input as asked("NCCL_DEBUG", "1", 0)
}

# llama.cpp heeds that the variable is set.
test_whatever_its_value if {
	object.keys(forced_peer_access.forced) == {"GGML_CUDA_P2P"} with input as asked("GGML_CUDA_P2P", "0", 0)
}

test_silent_over_nvlink if {
	forced_peer_access.forced == {} with input as asked("GGML_CUDA_P2P", "1", 4)
}

listed(names) := {
	"env": {"variables": [{"name": "GGML_CUDA_P2P", "value": "1", "source": "environment", "effective": true}]},
	"logs": {"messages": [{"id": "ggml-rocm-device", "fields": {"index": sprintf("%d", [i]), "name": name}} | some i, name in names]},
}

test_radeon_cards if {
	card := "AMD Radeon AI PRO R9700"
	count(forced_peer_access.forced) == 1 with input as listed([card, card])
	forced_peer_access.radeons == {"0", "1"} with input as listed([card, card])
	forced_peer_access.forced == {} with input as listed([card])
	forced_peer_access.forced == {} with input as listed(["AMD Instinct MI210", "AMD Instinct MI210"])
}
