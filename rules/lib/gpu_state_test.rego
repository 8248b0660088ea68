package gpudoctor.lib.gpu_state_test

import data.gpudoctor.lib.gpu_state

a := "0000:01:00.0"

graded(document) := {[address, s.severity, s.confidence] |
	signs := gpu_state.signs with input as document
	some address, ss in signs
	some s in ss
}

test_signs if {
	graded({"gpus": {"devices": [{"address": a, "error": "ERROR_GPU_IS_LOST"}]}}) == {[a, "critical", "confirmed"]}
	graded({"gpus": {"devices": [{"address": a, "ecc": {"volatile_uncorrected": 2}}]}}) == {[a, "high", "confirmed"]}
}
