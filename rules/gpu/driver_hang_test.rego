package gpudoctor.rules.driver_hang_test

import data.gpudoctor.rules.driver_hang

machine(report) := {"gpus": {"nvml": "ok", "devices": [{"address": "0000:01:00.0"}]}, "transfers": report}

grades(found) := {[f.severity, f.confidence] | some f in found}

test_fires_on_a_hang if {
	found := driver_hang.findings with input as machine({"outcome": "hang", "stage": "cuInit", "left": true})
	grades(found) == {["critical", "confirmed"]}
	some f in found
	contains(f.message, "\"cuInit\"")
	contains(f.message, "only a reboot")
	f.remedies[0] == "reboot-or-reload-driver"
}

test_hang_in_cleanup if {
	grades(driver_hang.findings) == {["critical", "confirmed"]} with input as machine({"outcome": "hang", "stage": "cleanup"})
}

test_crash if {
	some f in driver_hang.findings with input as machine({"outcome": "error", "stage": "contexts", "signal": "SIGSEGV"})
	contains(f.message, "SIGSEGV")
}

test_error_without_a_cause if {
	grades(driver_hang.findings) == {["high", "likely"]} with input as machine({"outcome": "error", "stage": "cuInit", "error_code": 999, "error_name": "CUDA_ERROR_UNKNOWN"})
}

test_nvml if {
	every answer in ["hang", "crashed"] {
		some f in driver_hang.findings with input as {"gpus": {"nvml": answer, "devices": []}}
		f.severity == "high"
	}
}

test_silent if {
	count(driver_hang.findings) == 0 with input as machine({"outcome": "ok"})
	count(driver_hang.missing) == 0 with input as machine({"outcome": "ok"})
}

test_silent_where_others_judge if {
	every code in [35, 100, 802, 803] {
		count(driver_hang.findings) == 0 with input as machine({"outcome": "error", "stage": "cuInit", "error_code": code, "error_name": "X"})
	}
	hung := {"outcome": "hang", "stage": "copy", "transfers": [{"test": "copy", "source": "a", "destination": "b", "outcome": "hang"}]}
	count(driver_hang.findings) == 0 with input as machine(hung)
}

test_unresolvable if {
	count(driver_hang.findings) == 0 with input as {}
	count(driver_hang.missing) == 1 with input as {}
	count(driver_hang.missing) == 1 with input as machine({"outcome": "unknown"})
}

test_not_applicable_without_a_gpu if {
	count(driver_hang.not_applicable) == 1 with input as {"gpus": {"nvml": "not-found", "devices": []}}
}
