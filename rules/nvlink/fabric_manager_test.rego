package gpudoctor.rules.fabric_manager_test

import data.gpudoctor.rules.fabric_manager

gpus := ["0000:19:00.0", "0000:3b:00.0"]

# machine has four switches, GPUs in a state, and a service.
machine(fabrics, manager) := {
	"host": {"virtualization": {"guest": false}},
	"pci": {"devices": [{"address": "0000:07:00.0", "kind": "nvswitch"}]},
	"gpus": {
		"nvml": "ok", "nvswitches": 4,
		"driver": {"version": "580.95.05", "kernel_version": "580.95.05", "fabric_manager": manager},
		"devices": [{"address": gpus[i], "vendor": "nvidia", "fabric": fabric} | some i, fabric in fabrics],
	},
}

complete := {"state": "completed", "status": "SUCCESS"}
fine(manager) := machine([complete, complete], manager)
running := {"running": true, "version": "580.95.05"}
stopped := fine({"running": false})
guest := {"host": {"virtualization": {"guest": true}}}

test_findings if {
	every row in [
		[
			[fine(running), {"transfers": {"outcome": "ok", "devices": [{"address": gpus[0], "outcome": "error", "error_code": 802}]}}],
			{["critical", "confirmed"]},
		],
		[[fine({"running": true, "version": "575.57.08"})], {["medium", "likely"]}],
		[[stopped, {"gpus": {"nvml": "error", "devices": [{"address": x} | some x in gpus]}}], {["critical", "likely"]}],
		# It runs elsewhere.
		[[stopped, guest], set()],
		[[stopped, {"container": {"private_pid": true}}], set()],
	] {
		found := fabric_manager.findings with input as object.union_n(row[0])
		{[object.get(f, "severity", "critical"), object.get(f, "confidence", "likely")] | some f in found} == row[1]
	}
}

# said are messages of a service that failed, and of CUDA.
said := {"logs": {"messages": [
	{"id": "fm-service-failed", "program": "systemd", "role": "category", "text": "x", "source": "a", "line": 1, "order": 0},
	{"id": "cuda-system-not-ready", "program": "cuda", "role": "cause", "text": "system not yet initialized", "source": "a", "line": 2, "order": 1},
]}}

test_what_is_said if {
	every row in [
		[machine([{"state": "completed", "status": "ERROR_NOT_SUPPORTED"}, complete], running), {"ERROR_NOT_SUPPORTED"}, 0],
		[machine([{"state": "in-progress"}, complete], running), {"in progress"}, 0],
		[said, set(), 2],
	] {
		some f in fabric_manager.findings with input as row[0]
		[f.about.states, count(f.messages)] == [row[1], row[2]]
	}
}

test_unresolvable if {
	count(fabric_manager.findings) == 0 with input as {}
	count(fabric_manager.missing) == 1 with input as object.union(guest, {"gpus": {"nvswitches": 4, "devices": [{"address": gpus[0]}]}})
}
