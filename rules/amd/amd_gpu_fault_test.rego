package gpudoctor.rules.amd_gpu_fault_test

import data.gpudoctor.rules.amd_gpu_fault

found(document) := {[f.subject, object.get(f, "grade", "logged"), object.get(f, "severity", "")] | some f in amd_gpu_fault.findings with input as document}
log(event) := {"kernel_log": {"source": "dmesg.txt", "events": [event]}}

failed := {"id": "amdgpu-init-failed", "kind": "amdgpu", "address": "0000:05:00.0", "message": "amdgpu 0000:05:00.0: amdgpu: Fatal error during GPU init"}

block(step, name) := {
	"id": "amdgpu-block-failed", "kind": "amdgpu", "message": "[drm:amdgpu_device_init [amdgpu]] *ERROR*",
	"fields": {"step": step, "block": name},
}

test_fires_on_a_gpu_that_did_not_start if {
	found(log(block("hw_init", "gfx_v9_0"))) == {["host", "logged", ""]}
}

test_fires_on_counts if {
	document := {"gpus": {"devices": [
		{"address": "0000:05:00.0", "vendor": "amd", "ecc": {"enabled": true, "volatile_uncorrected": 4}},
		{"address": "0000:26:00.0", "vendor": "amd", "retired_pages": 2},
		{"address": "0000:46:00.0", "vendor": "amd", "retired_pages": 0},
	]}}
	found(document) == {["0000:05:00.0", "counted", "high"], ["0000:26:00.0", "counted", "low"]}
}

# A GPU that did not start for want of room is bar-too-small's.
test_silent_on_gpus_without_room if {
	room := {"kind": "bar", "address": "0000:05:00.0", "message": "pci 0000:05:00.0: BAR 5 [mem size 0x00080000]: can't assign; no space"}
	memory := {"kind": "amdgpu", "address": "0000:05:00.0", "code": 12, "message": "amdgpu: probe of 0000:05:00.0 failed with error -12"}
	found({"kernel_log": {"source": "x", "events": [failed, memory]}}) == set()
	found({"kernel_log": {"source": "x", "events": [block("sw_init", "gmc_v9_0"), room]}}) == set()
	elsewhere := object.union(room, {"address": "0000:26:00.0"})
	found({"kernel_log": {"source": "x", "events": [failed, elsewhere]}}) == {["0000:05:00.0", "logged", ""]}
}

counted(block) := {"gpus": {"devices": [{"address": "0000:05:00.0", "vendor": "amd", "ras": [block]}]}}

test_fires_on_the_drivers_counters if {
	found(counted({"block": "umc", "uncorrectable": 1, "correctable": 40})) == {["0000:05:00.0", "counted", "high"]}
	found(counted({"block": "umc", "uncorrectable": 0, "correctable": 0, "deferred": 2})) == {["0000:05:00.0", "counted", "medium"]}
	found(counted({"block": "xgmi_wafl", "uncorrectable": 4, "correctable": 0})) == set()
}

test_fires_on_a_gpu_that_the_compute_driver_leaves_out if {
	document := {
		"container": {"inside": false},
		"gpus": {"amd": {"kfd": "ok"}, "devices": [{"address": "0000:05:00.0", "vendor": "amd", "kfd": {"node": 1}}, {"address": "0000:26:00.0", "vendor": "amd"}]},
		"pci": {"devices": [{"address": address, "kind": "gpu", "vendor": "0x1002", "device": "0x7551", "driver": "amdgpu"} | some address in ["0000:05:00.0", "0000:26:00.0"]]},
	}
	found(document) == {["0000:26:00.0", "unlisted", ""]}
	found(object.union(document, {"container": {"inside": true}})) == set()
}
