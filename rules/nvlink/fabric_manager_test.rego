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

said(id, role, fields) := {"logs": {"messages": [{
	"id": id, "program": "cuda", "role": role, "text": "x", "fields": fields, "source": "app.log", "line": 3, "order": 5,
}]}}

hung := said("torch-watchdog-timeout", "category", {})
no_device := said("cuda-no-device", "category", {})

# board is a machine of eight GPUs of a model, of which texts tell.
board(model, active, packaged) := {
	"texts": [{"name": "a"}],
	"gpus": {
		"driver": {"version": "550.54.15", "fabric_manager": {"running": active}},
		"devices": [{"address": sprintf("GPU%d", [i]), "vendor": "nvidia", "name": model} | some i in numbers.range(0, 7)],
	},
	"software": [{"name": "nvidia-fabricmanager-550", "version": packaged, "manager": "dpkg", "source": "a", "line": 2}],
}

# switched is one whose lspci shows NVSwitches.
switched := {
	"texts": [{"name": "a.txt"}],
	"pci": {"devices": [{"address": "0000:c4:00.0", "kind": "nvswitch"}]},
	"gpus": {"devices": [{"address": "GPU0", "vendor": "nvidia", "name": "A100-SXM4-40GB"}]},
}

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
		# Cards in slots need none, nor does a job that runs, nor one whose manager runs.
		[[hung, board("NVIDIA H100 PCIe", false, "550.54.15-1")], set()],
		[[board("NVIDIA H100 80GB HBM3", false, "550.54.15-1")], set()],
		[[hung, board("NVIDIA H100 80GB HBM3", true, "550.54.15-1")], set()],
		# CUDA finds no GPU on a machine with switches.
		[[switched, no_device], {["critical", "possible"]}],
		[[object.remove(switched, ["pci"]), no_device], set()],
		[
			[switched, no_device, {"env": {"variables": [{"name": "CUDA_VISIBLE_DEVICES", "value": "", "source": "e", "effective": true}]}}],
			set(),
		],
	] {
		found := fabric_manager.findings with input as object.union_n(row[0])
		{[object.get(f, "severity", "critical"), object.get(f, "confidence", "likely")] | some f in found} == row[1]
	}
}

# A service that fails alone is none.
service_failed := {"logs": {"messages": [
	{"id": "fm-service-failed", "program": "systemd", "role": "category", "text": "x", "source": "a", "line": 1, "order": 0},
	{"id": "cuda-system-not-ready", "program": "cuda", "role": "cause", "text": "system not yet initialized", "source": "a", "line": 2, "order": 1},
]}}

test_what_is_said if {
	every row in [
		[machine([{"state": "completed", "status": "ERROR_NOT_SUPPORTED"}, complete], running), "ERROR_NOT_SUPPORTED"],
		[machine([{"state": "in-progress"}, complete], running), "of 1 of 2 GPUs is in progress"],
		[service_failed, "service"],
		[object.union(hung, board("NVIDIA H100 80GB HBM3", false, "550.90.07-1")), "version 550.90.07 and the driver 550.54.15"],
	] {
		some f in fabric_manager.findings with input as row[0]
		contains(f.message, row[1])
	}
}

test_advice if {
	every row in [
		[object.union(hung, board("NVIDIA A100-SXM4-80GB", false, "550.54.15-1")), "start-fabric-manager"],
		[object.union(switched, no_device), "start-fabric-manager"],
	] {
		some f in fabric_manager.findings with input as row[0]
		f.remedies[0] == row[1]
	}
}

test_unresolvable if {
	count(fabric_manager.findings) == 0 with input as {}
	count(fabric_manager.missing) == 1 with input as object.union(guest, {"gpus": {"nvswitches": 4, "devices": [{"address": gpus[0]}]}})
}
