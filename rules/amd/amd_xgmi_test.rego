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

found(document) := {[f.subject, object.get(f, "grade", f.id)] | some f in amd_xgmi.findings with input as document}

test_findings if {
	every row in [
		[board("AMD Instinct MI300X", 4, {"1-3": "pcie"}), ["host", "incomplete"]],
		[board("AMD Instinct MI325X", 2, {"1-2": "pcie"}), ["host", "incomplete"]],
		[{"gpus": {"devices": [{"address": "GPU0", "vendor": "amd", "xgmi_errors": 2}, {"address": "GPU1", "vendor": "amd", "xgmi_errors": 0}]}}, ["GPU0", "counted"]],
	] {
		found(row[0]) == {row[1]}
	}
}

test_silent if {
	every document in [
		# Two bridged pairs of cards, and cards without bridges.
		board("AMD Instinct MI210", 4, {"1-3": "pcie", "1-4": "pcie", "2-3": "pcie", "2-4": "pcie"}),
		board("AMD Instinct MI100", 2, {"1-2": "pcie"}),
		board("AMD Instinct MI210", 3, {"1-3": "pcie", "2-3": "pcie"}),
	] {
		found(document) == set()
	}

	# Partitions of one accelerator have no link.
	amd_xgmi.links == set() with input as {"links": {"pairs": [{"a": "0000:05:00.0", "b": "0000:05:00.1", "kind": "gpu-gpu", "link_type": "pcie"}]}}
}
