# METADATA
# title: Peer access forced by a variable
# description: >-
#   Variables that make a program use peer access without a check, where no
#   NVLink connects the GPUs.
package gpudoctor.lib.forced_peer_access

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.peers

# forced are variables that make a program use peer access which it would otherwise not
# use, or check first. llama.cpp checks only that its own variable is set, not the value.
# Over NVLink that is right.
forced[name] := v if {
	some name in {"GGML_CUDA_P2P", "VLLM_SKIP_P2P_CHECK", "SGLANG_SKIP_P2P_CHECK"}
	v := facts.variable[name]
	not left_off(name, v.value)
	only_pcie
}

left_off(name, value) if {
	name != "GGML_CUDA_P2P"
	lower(value) in {"0", "", "false"}
}

only_pcie if peers.over_pcie

# Radeon cards have no link but PCIe, except a few with a bridge (Radeon Pro VII,
# W6800X Duo). Where llama.cpp lists several, peer access goes over it.
only_pcie if count(radeons) > 1

radeons := {m.fields.index |
	some m in logs.by_id["ggml-rocm-device"]
	regex.match(`Radeon.*(?:RX|R9700|W[67][0-9]{3}\b)`, m.fields.name)
}
