package gpudoctor.rules.driver_hang_test

import data.gpudoctor.rules.driver_hang

machine(report) := {"gpus": {"nvml": "ok", "devices": [{"address": "0000:01:00.0"}]}, "transfers": report}
grades(found) := {f.grade | some f in found}

# A GPU can be reset only through a driver that answers.
test_advice_by_stage if {
	advice(machine({"outcome": "hang", "stage": "cuInit"})) == ["reset-gpu", "reboot-or-reload-driver", "upgrade-driver"]
	advice(machine({"outcome": "hang", "stage": "cleanup"})) == ["reboot-or-reload-driver", "upgrade-driver"]
}

advice(document) := sort([f.remedies | some f in found])[0] if {
	found := driver_hang.findings with input as document
	count(found) > 0
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

unready(codes) := machine({"outcome": "ok", "devices": [{"address": sprintf("0000:0%d:00.0", [i]), "outcome": "error", "error_code": code, "error_name": "X"} | some i, code in codes]})

test_a_gpu_that_cannot_be_made_ready if {
	found := driver_hang.findings with input as unready([999, 999, 46, 2, 214, 802])
	grades(found) == {"unready"}
	some f in found
	f.subject == "0000:00:00.0 and 0000:01:00.0"
}

test_unresolvable if {
	count(driver_hang.findings) == 0 with input as {}
	count(driver_hang.missing) == 1 with input as machine({"outcome": "unknown"})
	count(driver_hang.missing) == 0 with input as machine({"outcome": "unknown", "devices": [{"address": "0000:01:00.0", "outcome": "ok"}]})
}
