# METADATA
# title: A program was told to use peer access, and its results are garbage
# description: >-
#   Some programs leave peer access between GPUs off unless they are told
#   otherwise, or test it first unless they are told not to, because there are
#   machines on which it is offered and yet delivers wrong data. Where such a
#   switch is set and a model answers with one sign over and over, the way
#   between the GPUs is what to suspect.
# related_resources:
#   - ref: https://github.com/unslothai/unsloth/issues/10613
#     description: GGML_CUDA_P2P=1 on two GPUs without NVLink, and answers of one sign
#   - ref: https://github.com/ggml-org/llama.cpp/blob/master/docs/build.md
#     description: GGML_CUDA_P2P, which depends on the platform
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   cause: p2p-broken-platform
#   remedies: [unset-env]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.p2p_forced

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# switches are variables that have a program use peer access without a test.
switches := {"GGML_CUDA_P2P", "VLLM_SKIP_P2P_CHECK", "SGLANG_SKIP_P2P_CHECK"}

# off are values that leave it off. llama.cpp asks only whether GGML_CUDA_P2P is
# set at all.
off(name, value) if {
	name != "GGML_CUDA_P2P"
	lower(value) in {"0", "", "false"}
}

findings contains {
	"subject": name,
	"message": sprintf("%s=%s has the program use peer access between the GPUs without a test, and what it computes is garbage: the transfers deliver wrong data on this platform (IOMMU translation, ACS, driver)", [name, v.value]),
	"severity": "high",
	"confidence": "likely",
	"evidence": [surroundings.variable_evidence(v), logs.evidence(m)],
	"remedies": ["unset-env"],
	"params": {"variable": name},
	"order": m.order,
} if {
	some name in switches
	v := facts.variable[name]
	not off(name, v.value)
	m := logs.first(logs.by_id["model-output-degenerate"])
}

missing contains "logs: no log of a job was given" if not input.logs

missing contains "env: variables were not read" if not input.env
