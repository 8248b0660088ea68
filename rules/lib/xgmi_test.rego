package gpudoctor.lib.xgmi_test

import data.gpudoctor.lib.xgmi

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

test_whole_hive if {
	document := board("AMD Instinct MI300X", 4, {})
	count(xgmi.links) == 6 with input as document
	xgmi.missed == set() with input as document
	xgmi.outside == set() with input as document
}

test_partitions_are_no_links if {
	partitions := {"links": {"pairs": [{"a": "0000:05:00.0", "b": "0000:05:00.1", "kind": "gpu-gpu", "link_type": "pcie"}]}}
	xgmi.links == set() with input as partitions
}

test_missed if {
	missed := xgmi.missed with input as board("AMD Instinct MI300X", 4, {"1-3": "pcie"})
	{[p.a, p.b] | some p in missed} == {[address(1), address(3)]}

	# Two bridged pairs of cards have no GPU in common.
	xgmi.missed == set() with input as board("AMD Instinct MI210", 4, {"1-3": "pcie", "1-4": "pcie", "2-3": "pcie", "2-4": "pcie"})
}

test_outside if {
	alone := {"1-4": "pcie", "2-4": "pcie", "3-4": "pcie"}
	xgmi.outside == {address(4)} with input as board("AMD Instinct MI300X", 4, alone)
	xgmi.outside == set() with input as board("AMD Instinct MI210", 4, alone)
	xgmi.outside == set() with input as board("AMD Instinct MI300X", 2, {"1-2": "pcie"})
}

test_by_pcie_alone if {
	xgmi.by_pcie_alone({address(1), address(2)}) with input as board("x", 2, {"1-2": "pcie"})
	not xgmi.by_pcie_alone({address(1)}) with input as board("x", 2, {"1-2": "pcie"})
	not xgmi.by_pcie_alone({address(1), address(2)}) with input as board("x", 2, {})
	not xgmi.by_pcie_alone({address(1), address(2)}) with input as {}
}

test_bridged if {
	count(xgmi.bridged) == 2 with input as board("AMD Instinct MI100", 2, {})
	xgmi.bridged == set() with input as board("Radeon RX 7900 XTX", 2, {})
	xgmi.bridged == {"GPU0"} with input as {"gpus": {"devices": [{"address": "GPU0", "vendor": "amd", "architecture": "gfx908"}]}}
}

# in_hive is an accelerator that the compute driver lists as a node of a hive.
in_hive(i, hive) := {"address": address(i), "vendor": "amd", "name": "AMD Instinct MI300X", "kfd": {"node": i, "hive": hive}}

test_hives if {
	document := {"gpus": {"devices": [in_hive(1, "0x4a1c"), in_hive(2, "0x4a1c"), in_hive(3, "")]}}
	xgmi.hives == {"0x4a1c": {address(1), address(2)}} with input as document
	xgmi.others_in_hives == {address(1), address(2)} with input as document
	xgmi.hiveless == {address(3)} with input as document
	xgmi.hiveless == set() with input as {"gpus": {"devices": [in_hive(1, ""), in_hive(2, "")]}}
}

# driven are accelerators that are bound to the driver, of which the last is no node of
# the compute driver.
driven(hive) := {
	"gpus": {"amd": {"kfd": "ok"}, "devices": [in_hive(1, hive), in_hive(2, hive), {"address": address(3), "vendor": "amd"}]},
	"pci": {"devices": [{"address": address(i), "kind": "gpu", "vendor": "0x1002", "device": "0x74a1", "driver": "amdgpu"} | some i in [1, 2, 3]]},
}

test_lost if {
	xgmi.lost == {address(3)} with input as driven("0x4a1c")
	xgmi.lost == set() with input as driven("")
}
