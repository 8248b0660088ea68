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

checks := ["02_LOCAL_MEMORY_LOW_SIZE", "05_LOCAL_MEMORY_TOTAL_SIZE", "06_REGISTER_COUNT", "11_TOTAL_THREADS"]
skedcheck(names) := logged([{"kind": "xid", "code": 13, "id": "kernel-xid-launch-check", "fields": {"check": sprintf("SKEDCHECK%s", [name])}} |
	some name in names
])

test_findings if {
	every row in [
		[[machine({"error": "ERROR_GPU_IS_LOST"})], {[a, "critical", "state"]}],
		[[machine({"ecc": {"volatile_uncorrected": 2}})], {[a, "high", "state"]}],
		[[machine({}), logged([{"kind": "sxid", "code": 20034}])], {[a, "high", "nvswitch"]}],
		[[machine({}), logged([{"kind": "sxid", "code": 39999}])], {[a, "medium", "nvswitch"]}],
		# A scheduler keeps GPUs from a job by a device cgroup; a driver that gave one up says so in the kernel log.
		[[dropped], set()],
		[[dropped, logged([{"kind": "nvrm"}])], {[a, "high", "state"]}],
		[[dropped, root], {[a, "high", "state"]}],
		[[dropped, root, function({"driver": "vfio-pci"})], set()],
		[[dropped, root, {"container": {"inside": true}}], set()],
		[[dropped, root, {"container": {"driver_devices": [{"address": a, "excluded": true}]}}], set()],
		# All that it answers is ones; one that no driver has, as in a notebook, sleeps.
		[[machine({}), function({"off_bus": true, "kind": "gpu", "driver": "nvidia"})], {[a, "critical", "state"]}],
		[[machine({}), function({"off_bus": true, "kind": "gpu"})], set()],
		[[listed({a: false, b: true})], {[b, "critical", "state"]}],
		[[listed({a: true})], set()],
		# The probe initializes it.
		[[machine({}), {"transfers": {"devices": [{"address": a, "outcome": "hang"}]}}], {[a, "critical", "state"]}],
		[[machine({}), {"transfers": {"devices": [{"address": a, "outcome": "error", "error_code": 46}]}}], set()],
		# The way through host memory fails.
		[[machine({}), transfers([[a, b, "corrupt"]])], {[both, "critical", "staged"]}],
		[[machine({}), transfers([[a, b, "corrupt"], ["0000:03:00.0", a, "corrupt"]])], {[a, "critical", "staged"]}],
		[[machine({}), transfers([[a, b, "ok"]])], set()],
		[[machine({}), skedcheck(checks)], {[a, "high", "logged"]}],
		[[machine({}), skedcheck(array.slice(checks, 2, 4))], set()],
	] {
		found := gpu_fault.findings with input as object.union_n(row[0])
		{[f.subject, object.get(f, "severity", "critical"), f.grade] | some f in found} == row[1]
	}
}
