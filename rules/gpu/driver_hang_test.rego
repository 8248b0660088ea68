package gpudoctor.rules.driver_hang_test

import data.gpudoctor.rules.driver_hang

machine(report) := {"gpus": {"nvml": "ok", "devices": [{"address": "0000:01:00.0"}]}, "transfers": report}
grades(found) := {f.grade | some f in found}

test_stuck if {
	grades(driver_hang.findings) == {"hang"} with input as machine({"outcome": "hang", "stage": "cuInit"})
	grades(driver_hang.findings) == {"stuck"} with input as machine({"outcome": "hang", "stage": "cuInit", "left": true})
}

test_nvml_does_not_answer if {
	hung := {"gpus": {"nvml": "hang", "devices": []}}
	grades(driver_hang.findings) == {"silent"} with input as hung
	grades(driver_hang.findings) == {"silent", "stuck"} with input as object.union(hung, {"transfers": {"outcome": "hang"}})
}

test_crash if {
	some f in driver_hang.findings with input as machine({"outcome": "error", "stage": "contexts", "signal": "SIGSEGV"})
	f.about.signal == "SIGSEGV"
}

test_error_without_a_cause if {
	grades(driver_hang.findings) == {"failed"} with input as machine({"outcome": "error", "stage": "cuInit", "error_code": 999, "error_name": "CUDA_ERROR_UNKNOWN"})
}

test_the_gpu_is_named if {
	some f in driver_hang.findings with input as machine({"outcome": "hang", "stage": "contexts", "gpu": "0000:01:00.0"})
	f.about.gpu == "0000:01:00.0"
}

test_a_known_error if count(driver_hang.findings) == 0 with input as machine({"outcome": "error", "stage": "cuInit", "error_code": 803, "error_name": "X"})

test_unresolvable if count(driver_hang.findings) == 0 with input as {}
