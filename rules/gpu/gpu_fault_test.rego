package gpudoctor.rules.gpu_fault_test

import data.gpudoctor.rules.gpu_fault

a := "0000:01:00.0"
b := "0000:02:00.0"

healthy := {
	"address": a, "vendor": "nvidia", "in_pci": true, "in_nvml": true, "recovery_action": "none",
	"ecc": {"enabled": true, "volatile_corrected": 3, "volatile_uncorrected": 0, "aggregate_uncorrected": 2, "retired_pages_pending": false},
	"remapped_rows": {"corrected": 1, "uncorrected": 0, "pending": false, "failed": false},
}

machine(changes) := {
	"gpus": {"nvml": "ok", "devices": [object.union(healthy, changes)]},
	"kernel_log": {"source": "/dev/kmsg", "events": []},
}

logged(events) := object.union(machine({}), {"kernel_log": {"source": "/dev/kmsg", "events": events}})
event(kind, code, n) := {"kind": kind, "code": code, "address": a, "message": sprintf("NVRM: Xid (PCI:0000:01:00): %d", [code]), "seconds": 12.5, "count": n}
graded(found) := {[f.subject, f.severity, f.confidence] | some f in found}

test_sxids if {
	graded(gpu_fault.findings) == {[a, "high", "likely"]} with input as logged([event("sxid", 20034, 1)])
	graded(gpu_fault.findings) == {[a, "medium", "possible"]} with input as logged([event("sxid", 39999, 1)])
}

absent := object.union(machine({"in_nvml": false}), {
	"pci": {"devices": [{"address": a, "driver": "nvidia"}]},
	"container": {"inside": false},
})

# A scheduler keeps GPUs from a job by a device cgroup; a driver that gave one up says so in the kernel log.
test_kept_from_a_user if graded(gpu_fault.findings) == {[a, "low", "possible"]} with input as absent

staged(source, destination, outcome) := {"test": "host-staged", "source": source, "destination": destination, "outcome": outcome}

test_control_arm_fails if {
	one := object.union(machine({}), {"transfers": {"transfers": [staged(a, b, "corrupt")]}})
	graded(gpu_fault.findings) == {["0000:01:00.0 and 0000:02:00.0", "critical", "confirmed"]} with input as one
	common := object.union(machine({}), {"transfers": {"transfers": [staged(a, b, "corrupt"), staged("0000:03:00.0", a, "corrupt")]}})
	graded(gpu_fault.findings) == {[a, "critical", "confirmed"]} with input as common
	count(gpu_fault.findings) == 0 with input as object.union(machine({}), {"transfers": {"transfers": [staged(a, b, "ok")]}})
}

test_unresolvable if count(gpu_fault.findings) == 0 with input as {}

said(id, text, fields) := {"logs": {"messages": [{"id": id, "program": "x", "role": "cause", "text": text, "fields": fields, "source": "app.log", "line": 9, "order": 4}]}}

test_a_log_says_it if {
	some f in gpu_fault.findings with input as said("gpu-handle-failed", "Unable to determine the device handle", {})
	[f.subject, f.severity, f.confidence, f.remedies[0]] == ["host", "critical", "confirmed", "reboot"]
}

test_a_log_names_the_gpu if {
	lost := said("gpu-handle-failed", "Unable to determine the device handle", {"gpu": "00000000:01:00.0", "reason": "Unknown Error"})
	graded(gpu_fault.findings) == {[a, "critical", "confirmed"]} with input as object.union(machine({}), lost)
	indexed := said("nvsmi-err", "ERR!", {"gpu": "5"})
	graded(gpu_fault.findings) == {[a, "high", "likely"]} with input as object.union(machine({"index": 5}), indexed)
}

skedcheck(names) := logged([object.union(event("xid", 13, 1), {"id": "kernel-xid-launch-check", "fields": {"check": sprintf("SKEDCHECK%s", [name])}}) | some name in names])

test_impossible_launches if {
	all := ["02_LOCAL_MEMORY_LOW_SIZE", "05_LOCAL_MEMORY_TOTAL_SIZE", "06_REGISTER_COUNT", "11_TOTAL_THREADS"]
	some f in gpu_fault.findings with input as skedcheck(all)
	[f.severity, f.confidence, f.remedies[0]] == ["high", "likely", "reseat-or-fix-pcie-link"]
}

test_fires_on_a_pcie_error_that_the_driver_does_not_survive if {
	some f in gpu_fault.findings with input as {"kernel_log": {"events": [{
		"id": "kernel-aer-no-recovery", "kind": "aer", "address": "0000:02:00.0", "count": 1, "fields": {"driver": "nvidia"},
		"message": "nvidia 0000:02:00.0: can't recover (no error_detected callback)",
	}]}}
	f.remedies[0] == "reseat-or-fix-pcie-link"
}

test_leaves_other_devices_errors_alone if {
	count(gpu_fault.findings) == 0 with input as {"kernel_log": {"events": [{
		"id": "kernel-aer-no-recovery", "kind": "aer", "address": "0000:05:00.0", "count": 1, "fields": {"driver": "nvme"},
		"message": "nvme 0000:05:00.0: can't recover (no error_detected callback)",
	}]}}
}

# What a kernel log alone tells of GPUs that did not start.
stillborn_log(messages) := {"texts": [{"name": "dmesg.txt"}], "kernel_log": {"events": [object.union({"kind": "nvrm", "count": 1}, m) | some m in messages]}}

test_a_gpu_that_the_driver_could_not_start if {
	failed := {"id": "nvrm-init-failed", "address": a, "message": "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x65:1792)"}
	graded(gpu_fault.findings) == {[a, "high", "likely"]} with input as stillborn_log([failed])
}
