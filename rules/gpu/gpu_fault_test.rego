package gpudoctor.rules.gpu_fault_test

import data.gpudoctor.rules.gpu_fault

a := "0000:01:00.0"
b := "0000:02:00.0"
both := "0000:01:00.0 and 0000:02:00.0"

machine(changes) := {"gpus": {"nvml": "ok", "devices": [object.union({"address": a, "vendor": "nvidia", "in_pci": true, "in_nvml": true}, changes)]}}
logged(events) := {"kernel_log": {"source": "/dev/kmsg", "events": [object.union({"address": a, "message": "x", "seconds": 12.5, "count": 1}, e) |
	some e in events
]}}

function(more) := {"pci": {"devices": [object.union({"address": a}, more)]}}
dropped := object.union_n([machine({"in_nvml": false}), logged([]), function({"driver": "nvidia"}), {"container": {"inside": false}}])
root := {"host": {"root": true}}
listed(revisions) := {
	"texts": [{"name": "lspci.txt"}],
	"pci": {"devices": [{"address": address, "kind": "gpu", "vendor": "0x10de", "off_bus": off} | some address, off in revisions]},
}

transfers(list) := {"transfers": {"transfers": [{"test": "host-staged", "source": s, "destination": d, "outcome": outcome} |
	some [s, d, outcome] in list
]}}

said(id, fields) := {"logs": {"messages": [{
	"id": id, "program": "x", "role": "cause", "text": "x", "fields": fields, "source": "app.log", "line": 9, "order": 4,
}]}}

unrecovered(driver) := {"kind": "aer", "id": "kernel-aer-no-recovery", "fields": {"driver": driver}}

checks := ["02_LOCAL_MEMORY_LOW_SIZE", "05_LOCAL_MEMORY_TOTAL_SIZE", "06_REGISTER_COUNT", "11_TOTAL_THREADS"]
skedcheck(names) := logged([{"kind": "xid", "code": 13, "id": "kernel-xid-launch-check", "fields": {"check": sprintf("SKEDCHECK%s", [name])}} |
	some name in names
])

unstarted(more) := object.union({"texts": [{"name": "dmesg.txt"}]}, logged(array.concat([{"kind": "nvrm", "id": "nvrm-init-failed"}], more)))

test_findings if {
	every row in [
		[[machine({}), logged([{"kind": "sxid", "code": 20034}])], {[a, "high", "likely"]}],
		[[machine({}), logged([{"kind": "sxid", "code": 39999}])], {[a, "medium", "possible"]}],
		# A scheduler keeps GPUs from a job by a device cgroup; a driver that gave one up says so in the kernel log.
		[[dropped], {[a, "low", "possible"]}],
		[[dropped, logged([{"kind": "nvrm"}])], {[a, "high", "confirmed"]}],
		[[dropped, root], {[a, "high", "confirmed"]}],
		[[dropped, root, function({"driver": "vfio-pci"})], set()],
		[[dropped, root, {"container": {"inside": true}}], set()],
		[[dropped, root, {"container": {"driver_devices": [{"address": a, "excluded": true}]}}], set()],
		# All that it answers is ones; one that no driver has, as in a notebook, sleeps.
		[[machine({}), function({"off_bus": true, "kind": "gpu", "driver": "nvidia"})], {[a, "critical", "confirmed"]}],
		[[machine({}), function({"off_bus": true, "kind": "gpu"})], set()],
		[[listed({a: false, b: true})], {[b, "critical", "confirmed"]}],
		[[listed({a: true})], set()],
		# The probe initializes it.
		[[machine({}), {"transfers": {"devices": [{"address": a, "outcome": "hang"}]}}], {[a, "critical", "confirmed"]}],
		[[machine({}), {"transfers": {"devices": [{"address": a, "outcome": "error", "error_code": 46}]}}], set()],
		# The way through host memory fails.
		[[machine({}), transfers([[a, b, "corrupt"]])], {[both, "critical", "confirmed"]}],
		[[machine({}), transfers([[a, b, "corrupt"], ["0000:03:00.0", a, "corrupt"]])], {[a, "critical", "confirmed"]}],
		[[machine({}), transfers([[a, b, "ok"]])], set()],
		# A log says it.
		[[said("gpu-handle-failed", {})], {["host", "critical", "confirmed"]}],
		[[machine({}), said("gpu-handle-failed", {"gpu": "00000000:01:00.0", "reason": "Unknown Error"})], {[a, "critical", "confirmed"]}],
		[[machine({"index": 5}), said("nvsmi-err", {"gpu": "5"})], {[a, "high", "likely"]}],
		[[machine({}), skedcheck(checks)], {[a, "high", "likely"]}],
		[[machine({}), skedcheck(array.slice(checks, 2, 4))], set()],
		[[logged([unrecovered("nvme")])], set()],
		# The driver could not start it, for no other reason.
		[[unstarted([])], {[a, "high", "likely"]}],
		[[unstarted([{"kind": "nvrm", "id": "nvrm-open-modules-required"}])], set()],
		[[unstarted([{"kind": "bar"}])], set()],
		[[object.remove(unstarted([]), ["texts"])], set()],
	] {
		found := gpu_fault.findings with input as object.union_n(row[0])
		{[f.subject, f.severity, f.confidence] | some f in found} == row[1]
	}
}

test_advice if {
	every row in [
		[said("gpu-handle-failed", {}), "reboot"],
		[object.union(machine({}), skedcheck(checks)), "reseat-or-fix-pcie-link"],
		[logged([unrecovered("nvidia")]), "reseat-or-fix-pcie-link"],
	] {
		some f in gpu_fault.findings with input as row[0]
		f.remedies[0] == row[1]
	}
}
