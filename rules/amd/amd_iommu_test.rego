package gpudoctor.rules.amd_iommu_test

import data.gpudoctor.rules.amd_iommu

warning := {
	"id": "rccl-iommu-pt-missing", "program": "rccl", "role": "setting", "source": "nccl.log", "line": 9, "order": 3,
	"text": `node:1:1 [0] init.cc:132 NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!`,
}

gpus(name) := [
	{"address": "0000:06:00.0", "vendor": "amd", "name": name},
	{"address": "0000:43:00.0", "vendor": "amd", "name": name},
]

# hung is a log of a communicator that did not come up.
hung(name) := {
	"gpus": {"devices": gpus(name)},
	"logs": {"messages": [warning], "communicators": [{"started": 2, "completed": 0}]},
}

found(document) := {[object.get(f, "grade", object.get(f, "id", "")), object.get(f, "severity", ""), object.get(f, "confidence", "")] |
	some f in amd_iommu.findings with input as document
}

fault := {"kind": "amd-vi-fault", "address": "0000:43:00.0", "message": "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:43:00.0 domain=0x0]"}

faulty(name) := {"gpus": {"devices": gpus(name)}, "kernel_log": {"source": "dmesg.txt", "events": [fault]}}

table := {"tool": "rccl-tests", "test": "all_reduce", "what": "collective", "ranks": 2, "gpu_names": ["AMD Instinct MI100"], "complete": false, "source": "out.txt", "line": 2}
quiet := {"benchmarks": [table], "host": {"command_line": ["root=/dev/sda1", "ro"]}}

# cards are on a machine whose command line asks for pass-through: what is in force counts.
cards(name, mode) := {"gpus": {"devices": gpus(name)}, "iommu": {"mode": mode}, "host": {"command_line": ["ro", "iommu=pt"]}}
joined(accessible) := {"links": {"pairs": [{"a": "0000:06:00.0", "b": "0000:43:00.0", "kind": "gpu-gpu", "link_type": "pcie", "accessible": accessible}]}}

stuck := {"logs": {"messages": [], "communicators": [{"started": 2, "completed": 0}]}}
r9700 := "AMD Radeon AI PRO R9700"
guest := {"host": {"virtualization": {"kind": "kvm", "guest": true}}}

test_findings if {
	every row in [
		[hung(""), {}, ["asked", "high", "possible"]],
		[hung("AMD Instinct MI100"), {"iommu": {"mode": "translated"}}, ["asked", "critical", "likely"]],
		[quiet, {}, ["asked", "critical", "likely"]],
		[cards("AMD Instinct MI300X", "translated"), {}, ["in-force", "low", ""]],
		[cards(r9700, "passthrough"), {}, ["in-force", "low", ""]],
		[cards(r9700, "passthrough"), object.union(joined(false), stuck), ["in-force", "high", ""]],
		[cards(r9700, "off"), joined(true), ["in-force", "low", ""]],
	] {
		row[2] in found(object.union(row[0], row[1]))
	}

	# rocm-smi without addresses: the driver's name in the line says whose it was.
	named := object.union(fault, {"fields": {"driver": "amdgpu"}})
	some h in amd_iommu.findings with input as {
		"gpus": {"devices": [{"address": "GPU0", "vendor": "amd", "name": "AMD Radeon RX 7900 XTX"}]},
		"kernel_log": {"source": "journal.txt", "events": [named]},
	}
	[h.id, h.remedies] == ["faults", ["nccl-p2p-disable", "iommu-pt"]]
}

test_silent if {
	every document in [
		object.union(hung("AMD Instinct MI100"), {"iommu": {"mode": "passthrough"}}),
		object.union(hung("AMD Instinct MI100"), {"iommu": {"units": []}}),
		object.union(hung("AMD Instinct MI100"), {"host": {"command_line": ["ro", "iommu.passthrough=1"]}}),
		object.union(faulty("AMD Instinct MI210"), {"host": {"virtualization": {"kind": "none", "guest": false, "passthrough_host": true}}}),
		object.union(faulty("x"), {"gpus": {"devices": [{"address": "0000:01:00.0", "vendor": "nvidia"}]}}),
		object.union(cards("AMD Instinct MI210", "translated"), guest),
		cards(r9700, "translated"),
		object.union(quiet, {"host": {"command_line": ["root=/dev/sda1", "iommu=pt"]}}),
		object.union(quiet, {"benchmarks": [object.union(table, {"gpu_names": ["Radeon RX 7900 XTX"]})]}),
	] {
		found(document) == set()
	}
}
