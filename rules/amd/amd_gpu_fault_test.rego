package gpudoctor.rules.amd_gpu_fault_test

import data.gpudoctor.rules.amd_gpu_fault

log(messages) := {
	"gpus": {"devices": [{"address": "0000:05:00.0", "vendor": "amd"}]},
	"kernel_log": {"source": "dmesg.txt", "events": [{"kind": "amdgpu", "address": "0000:05:00.0", "message": m} | some m in messages]},
}

found(document) := {[f.subject, f.severity, f.confidence, f.remedies[0]] | some f in amd_gpu_fault.findings with input as document}

test_fires_on_kernel_messages if {
	every message, want in {
		"amdgpu: Saved bad pages 150 reaches threshold value 128": ["critical", "confirmed", "replace-hardware"],
		"amdgpu: Fatal error during GPU init": ["critical", "confirmed", "reboot"],
		"amdgpu: GPU reset(4) failed": ["critical", "confirmed", "reboot"],
		"{15}Poison is created": ["high", "confirmed", "reset-amd-gpu"],
		"2 uncorrectable hardware errors detected in umc block": ["high", "confirmed", "reset-amd-gpu"],
		"MES failed to respond to msg=14": ["high", "likely", "reboot"],
		"ring sdma0 timeout, signaled seq=4, emitted seq=6": ["high", "possible", "reset-amd-gpu"],
	} {
		found(log([message])) == {array.concat(["0000:05:00.0"], want)}
	}
}

test_fires_without_an_address if {
	document := {"kernel_log": {"source": "x", "events": [{"kind": "amdgpu", "message": "qcm fence wait loop timeout expired"}]}}
	found(document) == {["host", "high", "likely", "reboot"]}
}

test_silent_on_what_is_corrected if {
	found(log(["3 correctable hardware errors detected in total in umc block"])) == set()
	found(log(["GPU reset begin!"])) == set()

	# amd-xgmi's.
	found(log(["2 uncorrectable hardware errors detected in xgmi_wafl block"])) == set()
}

test_fires_on_counts if {
	document := {"gpus": {"devices": [
		{"address": "0000:05:00.0", "vendor": "amd", "ecc": {"enabled": true, "volatile_uncorrected": 4}},
		{"address": "0000:26:00.0", "vendor": "amd", "retired_pages": 2},
		{"address": "0000:46:00.0", "vendor": "amd", "retired_pages": 0},
	]}}
	found(document) == {["0000:05:00.0", "high", "likely", "reset-amd-gpu"], ["0000:26:00.0", "low", "confirmed", "replace-hardware"]}
}

test_unresolvable if {
	count(amd_gpu_fault.missing) == 1 with input as {}
	count(amd_gpu_fault.missing) == 1 with input as {"gpus": {"devices": [{"address": "0000:05:00.0", "vendor": "amd"}]}}
	count(amd_gpu_fault.missing) == 0 with input as log([])
	count(amd_gpu_fault.not_applicable) == 1 with input as {"gpus": {"devices": []}}
}

# A GPU that did not start for want of room is bar-too-small's.
test_leaves_gpus_without_room_alone if {
	failed := {"kind": "amdgpu", "address": "0000:05:00.0", "message": "amdgpu 0000:05:00.0: amdgpu: Fatal error during GPU init"}
	block := {"kind": "amdgpu", "message": "[drm:amdgpu_device_init [amdgpu]] *ERROR* sw_init of IP block <gmc_v9_0> failed -19"}
	room := {"kind": "bar", "address": "0000:05:00.0", "message": "pci 0000:05:00.0: BAR 5 [mem size 0x00080000]: can't assign; no space"}
	memory := {"kind": "amdgpu", "address": "0000:05:00.0", "code": 12, "message": "amdgpu: probe of 0000:05:00.0 failed with error -12"}
	resizing := {"kind": "bar", "message": "[drm:amdgpu_device_resize_fb_bar [amdgpu]] *ERROR* Problem resizing BAR0 (-16)."}
	found({"kernel_log": {"source": "x", "events": [failed, room]}}) == set()
	found({"kernel_log": {"source": "x", "events": [failed, memory]}}) == set()
	found({"kernel_log": {"source": "x", "events": [failed, block, resizing]}}) == set()
	elsewhere := object.union(room, {"address": "0000:26:00.0"})
	found({"kernel_log": {"source": "x", "events": [failed, elsewhere]}}) == {["0000:05:00.0", "critical", "confirmed", "reboot"]}
}

counted(block) := {"gpus": {"devices": [{"address": "0000:05:00.0", "vendor": "amd", "ras": [block]}]}}

test_fires_on_the_drivers_counters if {
	found(counted({"block": "umc", "uncorrectable": 1, "correctable": 40})) == {["0000:05:00.0", "high", "likely", "reset-amd-gpu"]}
	found(counted({"block": "umc", "uncorrectable": 0, "correctable": 0, "deferred": 2})) == {["0000:05:00.0", "medium", "likely", "reset-amd-gpu"]}
	found(counted({"block": "gfx", "uncorrectable": 0, "correctable": 40})) == set()
	found(counted({"block": "xgmi_wafl", "uncorrectable": 4, "correctable": 0})) == set()
	both := object.union(counted({"block": "umc", "uncorrectable": 1, "correctable": 0}), {"kernel_log": {"source": "dmesg", "events": [{"kind": "amdgpu", "address": "0000:05:00.0", "message": "Poison is created"}]}})
	found(both) == {["0000:05:00.0", "high", "confirmed", "reset-amd-gpu"]}
}

test_fires_on_a_gpu_that_the_compute_driver_leaves_out if {
	document := {
		"container": {"inside": false},
		"gpus": {"amd": {"kfd": "ok"}, "devices": [{"address": "0000:05:00.0", "vendor": "amd", "kfd": {"node": 1}}, {"address": "0000:26:00.0", "vendor": "amd"}]},
		"pci": {"devices": [{"address": address, "kind": "gpu", "vendor": "0x1002", "device": "0x7551", "driver": "amdgpu"} | some address in ["0000:05:00.0", "0000:26:00.0"]]},
	}
	found(document) == {["0000:26:00.0", "high", "likely", "reboot"]}
	found(object.union(document, {"container": {"inside": true}})) == set()
	found(object.remove(document, ["container"])) == set()
}
