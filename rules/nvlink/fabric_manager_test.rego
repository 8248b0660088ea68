package gpudoctor.rules.fabric_manager_test

import data.gpudoctor.rules.fabric_manager

gpus := ["0000:19:00.0", "0000:3b:00.0"]

machine(fabric, manager) := {
	"host": {"virtualization": {"guest": false}},
	"pci": {"devices": [{"address": "0000:07:00.0", "kind": "nvswitch"}]},
	"gpus": {
		"nvml": "ok", "nvswitches": 4,
		"driver": {"version": "580.95.05", "kernel_version": "580.95.05", "fabric_manager": manager},
		"devices": [{"address": x, "vendor": "nvidia", "fabric": fabric} | some x in gpus],
	},
}

complete := {"state": "completed", "status": "SUCCESS"}
running := {"running": true, "version": "580.95.05"}
guest := {"host": {"virtualization": {"guest": true}}}

grades(found) := {[f.severity, f.confidence] | some f in found}

test_confirmed_by_cuda if {
	by_device := {"transfers": {"outcome": "ok", "devices": [{"address": gpus[0], "outcome": "error", "error_code": 802}]}}
	grades(fabric_manager.findings) == {["critical", "confirmed"]} with input as object.union(machine(complete, running), by_device)
}

test_registration_failed if {
	some f in fabric_manager.findings with input as machine({"state": "completed", "status": "ERROR_NOT_SUPPORTED"}, running)
	contains(f.message, "ERROR_NOT_SUPPORTED")
}

test_version_mismatch if {
	grades(fabric_manager.findings) == {["medium", "likely"]} with input as machine(complete, {"running": true, "version": "575.57.08"})
}

test_without_nvml if {
	dumb := object.union(machine(complete, {"running": false}), {"gpus": {"nvml": "error", "devices": [{"address": x} | some x in gpus]}})
	grades(fabric_manager.findings) == {["critical", "likely"]} with input as dumb
}

test_silent_where_it_runs_elsewhere if {
	count(fabric_manager.findings) == 0 with input as object.union(machine(complete, {"running": false}), guest)
	contained := object.union(machine(complete, {"running": false}), {"container": {"private_pid": true}})
	count(fabric_manager.findings) == 0 with input as contained
}

test_unresolvable if {
	count(fabric_manager.findings) == 0 with input as {}
	silent := {"host": {"virtualization": {"guest": true}}, "gpus": {"nvswitches": 4, "devices": [{"address": gpus[0]}]}}
	count(fabric_manager.missing) == 1 with input as silent
}

test_few_gpus_are_named if {
	odd := object.union(machine(complete, running), {"gpus": {"devices": [
		{"address": gpus[0], "vendor": "nvidia", "fabric": {"state": "in-progress"}},
		{"address": gpus[1], "vendor": "nvidia", "fabric": complete},
	]}})
	some f in fabric_manager.findings with input as odd
	contains(f.message, sprintf("of GPU %s is in progress", [gpus[0]]))
}

said(id, role, text, fields) := {"logs": {"messages": [{"id": id, "program": "cuda", "role": role, "text": text, "fields": fields, "source": "app.log", "line": 3, "order": 5}]}}

test_the_fabric_manager_says_it if {
	versions := {"manager": "550.127.05", "driver": "550.120"}
	some f in fabric_manager.findings with input as said("fm-version-mismatch", "cause", "fabric manager ...", versions)
	f.remedies[0] == "match-fabric-manager"
	some g in fabric_manager.findings with input as said("fm-switch-fatal", "cause", "detected NVSwitch fatal error", {"sxid": "20034"})
	g.remedies[0] == "reset-all-gpus"
	contains(g.message, "20034")
	some h in fabric_manager.findings with input as said("fm-topology", "cause", "detected number of", {})
	h.severity == "critical"
}

test_a_service_that_fails_alone_is_none if {
	ready := {"logs": {"messages": [
		{"id": "fm-service-failed", "program": "systemd", "role": "category", "text": "x", "source": "a", "line": 1, "order": 0},
		{"id": "cuda-system-not-ready", "program": "cuda", "role": "cause", "text": "system not yet initialized", "source": "a", "line": 2, "order": 1},
	]}}
	some f in fabric_manager.findings with input as ready
	contains(f.message, "service")
}

hung := {"logs": {"messages": [{
	"id": "torch-watchdog-timeout", "program": "pytorch", "role": "category", "text": "Watchdog caught collective operation timeout",
	"source": "a.log", "line": 1, "order": 0,
}]}}

board(model, running, packaged) := {
	"texts": [{"name": "a"}],
	"gpus": {
		"driver": {"version": "550.54.15", "fabric_manager": {"running": running}},
		"devices": [{"address": sprintf("GPU%d", [i]), "vendor": "nvidia", "name": model} | some i in numbers.range(0, 7)],
	},
	"software": [{"name": "nvidia-fabricmanager-550", "version": packaged, "manager": "dpkg", "source": "a", "line": 2}],
}

test_hang_on_a_board_without_its_manager if {
	some f in fabric_manager.findings with input as object.union(hung, board("NVIDIA H100 80GB HBM3", false, "550.90.07-1"))
	contains(f.message, "version 550.90.07 and the driver 550.54.15")
	some g in fabric_manager.findings with input as object.union(hung, board("NVIDIA A100-SXM4-80GB", false, "550.54.15-1"))
	g.remedies[0] == "start-fabric-manager"

	# Cards in slots need none, nor does a job that runs, nor one whose manager runs.
	count(fabric_manager.findings) == 0 with input as object.union(hung, board("NVIDIA H100 PCIe", false, "550.54.15-1"))
	count(fabric_manager.findings) == 0 with input as board("NVIDIA H100 80GB HBM3", false, "550.54.15-1")
	count(fabric_manager.findings) == 0 with input as object.union(hung, board("NVIDIA H100 80GB HBM3", true, "550.54.15-1"))
}

test_fires_on_the_word_of_the_driver_of_the_switches if {
	text := "nvidia-nvswitch: Version mismatch, kernel version 450.80.02 user version 450.51.06"
	some f in fabric_manager.findings with input as said("nvswitch-version-mismatch", "cause", text, {"driver": "450.80.02", "manager": "450.51.06"})
	[f.severity, f.confidence, f.remedies[0]] == ["critical", "confirmed", "match-fabric-manager"]
}

# switched_machine is one whose lspci shows NVSwitches, as a text tells of it.
switched_machine := {
	"texts": [{"name": "a.txt"}],
	"pci": {"devices": [{"address": "0000:c4:00.0", "kind": "nvswitch"}]},
	"gpus": {"devices": [{"address": "GPU0", "vendor": "nvidia", "name": "A100-SXM4-40GB"}]},
}

driver_packages := {"software": [{"name": n, "version": "460.32.03-1.el7", "manager": "rpm", "source": "b", "line": i + 1} | some i, n in ["nvidia-driver", "nvidia-driver-libs"]]}

test_no_gpu_for_cuda_on_a_machine_with_switches if {
	blind := said("cuda-no-device", "category", "No CUDA devices", {})
	some f in fabric_manager.findings with input as object.union(switched_machine, blind)
	[f.severity, f.confidence] == ["critical", "possible"]
	some g in fabric_manager.findings with input as object.union(object.union(switched_machine, blind), driver_packages)
	[g.confidence, g.remedies[0]] == ["likely", "start-fabric-manager"]
	contains(g.message, "not among the driver's packages")

	# Without switches, without a failure, and where a variable hides GPUs.
	count(fabric_manager.findings) == 0 with input as object.union(object.remove(switched_machine, ["pci"]), blind)
	hidden := {"env": {"variables": [{"name": "CUDA_VISIBLE_DEVICES", "value": "", "source": "e", "effective": true}]}}
	count(fabric_manager.findings) == 0 with input as object.union(object.union(switched_machine, blind), hidden)
}

test_a_subnet_manager_without_its_module if {
	some f in fabric_manager.findings with input as said("fm-umad-missing", "cause", "nvlsm: ibwarn: is ib_umad module loaded?", {})
	[f.confidence, f.remedies[0]] == ["confirmed", "start-fabric-manager"]
	contains(f.message, "ib_umad")
}
