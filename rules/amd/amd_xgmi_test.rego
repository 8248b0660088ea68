package gpudoctor.rules.amd_xgmi_test

import data.gpudoctor.rules.amd_xgmi

address(i) := sprintf("0000:%d5:00.0", [i])

# board is a board of so many accelerators; joined says how two of them are.
board(name, n, joined) := {
	"gpus": {"devices": [{"address": address(i), "vendor": "amd", "name": name} | some i in numbers.range(1, n)]},
	"links": {"pairs": [{"a": address(i), "b": address(j), "kind": "gpu-gpu", "link_type": object.get(joined, sprintf("%d-%d", [i, j]), "xgmi")} |
		some i in numbers.range(1, n)
		some j in numbers.range(1, n)
		i < j
	]},
}

found(document) := {[f.subject, f.severity, f.confidence] | some f in amd_xgmi.findings with input as document}

test_fires_on_a_missing_link if {
	document := board("AMD Instinct MI300X", 4, {"1-3": "pcie"})
	found(document) == {["host", "high", "likely"]}
	some f in amd_xgmi.findings with input as document
	f.affects == ["0000:15:00.0", "0000:35:00.0"]
}

test_fires_without_a_hive if {
	document := board("AMD Instinct MI325X", 2, {"1-2": "pcie"})
	found(document) == {["host", "high", "likely"]}
}

test_silent_on_whole_hives if {
	found(board("AMD Instinct MI300X", 4, {})) == set()

	# Two bridged pairs of cards, and cards without bridges.
	found(board("AMD Instinct MI210", 4, {"1-3": "pcie", "1-4": "pcie", "2-3": "pcie", "2-4": "pcie"})) == set()
	found(board("AMD Radeon PRO W7900", 2, {"1-2": "pcie"})) == set()
}

test_fires_on_counted_errors if {
	document := {"gpus": {"devices": [{"address": "GPU0", "vendor": "amd", "xgmi_errors": 2}, {"address": "GPU1", "vendor": "amd", "xgmi_errors": 0}]}}
	found(document) == {["GPU0", "medium", "likely"]}
}

test_unresolvable if {
	count(amd_xgmi.missing) == 1 with input as {}
	count(amd_xgmi.findings) == 0 with input as {}
	count(amd_xgmi.missing) == 0 with input as board("x", 2, {})
	count(amd_xgmi.missing) == 0 with input as {"kernel_log": {"source": "x", "events": [{"id": "amdgpu-xgmi-hive-failed", "kind": "amdgpu"}]}}
	count(amd_xgmi.missing) == 0 with input as {"gpus": {"devices": [{"address": "GPU0", "vendor": "amd", "xgmi_errors": 2}]}}
	count(amd_xgmi.not_applicable) == 1 with input as {"gpus": {"devices": []}}
}

test_cards_that_a_bridge_can_join if {
	found(board("AMD Instinct MI100", 2, {"1-2": "pcie"})) == {["host", "low", "possible"]}
	found(board("AMD Instinct MI100", 2, {})) == set()
	found(board("Radeon RX 7900 XTX", 2, {"1-2": "pcie"})) == set()
}

oam(address, extra) := object.union({"address": address, "vendor": "amd", "name": "AMD Instinct MI300X"}, extra)

in_hive(node) := {"kfd": {"node": node, "hive": "0x4a1c"}}

severities(document) := {[f.severity, f.confidence] | some f in amd_xgmi.findings with input as document}

test_fires_on_counters_of_links if {
	wafl := {"ras": [{"block": "xgmi_wafl", "uncorrectable": 3, "correctable": 1}]}
	severities({"gpus": {"devices": [oam("0000:05:00.0", wafl)]}}) == {["high", "likely"]}
	quiet := {"ras": [{"block": "xgmi_wafl", "uncorrectable": 0, "correctable": 7}]}
	severities({"gpus": {"devices": [oam("0000:05:00.0", quiet)]}}) == set()
}

test_fires_on_a_gpu_without_a_hive if {
	alone := {"kfd": {"node": 4, "hive": ""}}
	document := {"gpus": {"devices": [oam("0000:05:00.0", in_hive(2)), oam("0000:26:00.0", in_hive(3)), oam("0000:46:00.0", alone)]}}
	severities(document) == {["high", "likely"]}
	severities(object.union(document, {"host": {"virtualization": {"kind": "kvm", "guest": true, "source": "x"}}})) == set()
	whole := {"gpus": {"devices": [oam("0000:05:00.0", in_hive(2)), oam("0000:26:00.0", in_hive(3)), oam("0000:46:00.0", in_hive(4))]}}
	severities(whole) == set()
	count(amd_xgmi.missing) == 0 with input as whole
}

function(address) := {"address": address, "kind": "gpu", "vendor": "0x1002", "device": "0x74a1", "driver": "amdgpu"}

test_fires_on_a_gpu_that_the_compute_driver_lost if {
	document := {
		"gpus": {
			"amd": {"kfd": "ok"},
			"devices": [oam("0000:05:00.0", in_hive(2)), oam("0000:26:00.0", in_hive(3)), oam("0000:46:00.0", {})],
		},
		"pci": {"devices": [function(address) | some address in ["0000:05:00.0", "0000:26:00.0", "0000:46:00.0"]]},
	}
	severities(document) == {["high", "likely"]}
	severities(object.union(document, {"container": {"inside": true}})) == set()
	severities(object.union(document, {"gpus": {"amd": {"kfd": "unreadable"}}})) == set()
}

xgmi_address(i) := sprintf("0000:%d5:00.0", [i])

test_partitions_are_no_links if {
	partitions := {"links": {"pairs": [{"a": "0000:05:00.0", "b": "0000:05:00.1", "kind": "gpu-gpu", "link_type": "pcie"}]}}
	amd_xgmi.links == set() with input as partitions
}

# in_hive is an accelerator that the compute driver lists as a node of a hive.
xgmi_in_hive(i, hive) := {"address": xgmi_address(i), "vendor": "amd", "name": "AMD Instinct MI300X", "kfd": {"node": i, "hive": hive}}

# driven are accelerators that are bound to the driver, of which the last is no node of the compute driver.
driven(hive) := {
	"gpus": {"amd": {"kfd": "ok"}, "devices": [xgmi_in_hive(1, hive), xgmi_in_hive(2, hive), {"address": xgmi_address(3), "vendor": "amd"}]},
	"pci": {"devices": [{"address": xgmi_address(i), "kind": "gpu", "vendor": "0x1002", "device": "0x74a1", "driver": "amdgpu"} | some i in [1, 2, 3]]},
}

test_lost if {
	amd_xgmi.lost == {xgmi_address(3)} with input as driven("0x4a1c")
	amd_xgmi.lost == set() with input as driven("")
}
