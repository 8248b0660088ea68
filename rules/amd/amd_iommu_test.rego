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

found(document) := {[f.severity, f.confidence, f.remedies] | some f in amd_iommu.findings with input as document}

test_fires_on_a_hang if {
	found(hung("AMD Instinct MI100")) == {["critical", "likely", ["iommu-pt", "nccl-p2p-disable"]]}
	found(hung("")) == {["critical", "possible", ["iommu-pt", "nccl-p2p-disable"]]}
	some f in amd_iommu.findings with input as object.union(hung("AMD Instinct MI100"), {"iommu": {"mode": "translated"}})
	contains(f.message, "does translate")
	{m.order | some m in f.messages} == {3}
}

test_silent_where_it_is_passed_through if {
	every fact in [
		{"iommu": {"mode": "passthrough"}},
		{"iommu": {"units": []}},
		{"host": {"command_line": ["ro", "iommu.passthrough=1"]}},
		{"iommu": {"command_line": ["iommu=pt"]}},
	] {
		found(object.union(hung("AMD Instinct MI100"), fact)) == set()
	}
}

fault := {"kind": "amd-vi-fault", "address": "0000:43:00.0", "message": "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:43:00.0 domain=0x0]"}

faulty(name) := {"gpus": {"devices": gpus(name)}, "kernel_log": {"source": "dmesg.txt", "events": [fault]}}

test_silent_on_faults_of_others if {
	found(object.union(faulty("AMD Instinct MI210"), {"host": {"virtualization": {"kind": "none", "guest": false, "passthrough_host": true}}})) == set()
	found({"gpus": {"devices": [{"address": "0000:01:00.0", "vendor": "nvidia"}]}, "kernel_log": {"source": "x", "events": [fault]}}) == set()
}

test_low_on_a_translated_machine if {
	document := {"gpus": {"devices": gpus("AMD Instinct MI210")}, "iommu": {"mode": "translated"}}
	found(document) == {["low", "likely", ["iommu-pt"]]}
	found(object.union(document, {"host": {"virtualization": {"kind": "kvm", "guest": true}}})) == set()
	found(object.union(document, {"gpus": {"devices": gpus("AMD Radeon PRO W7900")}})) == set()
}

test_unresolvable if {
	count(amd_iommu.missing) == 1 with input as {}
	count(amd_iommu.missing) == 1 with input as {"gpus": {"devices": gpus("AMD Instinct MI210")}}
	count(amd_iommu.missing) == 0 with input as hung("AMD Instinct MI100")
	count(amd_iommu.missing) == 0 with input as {"gpus": {"devices": gpus("x")}, "iommu": {"mode": "passthrough"}}
	count(amd_iommu.missing) == 0 with input as object.union(faulty("x"), {})
	count(amd_iommu.not_applicable) == 1 with input as {"gpus": {"devices": []}}
}

table := {"tool": "rccl-tests", "test": "all_reduce", "what": "collective", "ranks": 2, "gpu_names": ["AMD Instinct MI100"], "complete": false, "source": "out.txt", "line": 2}

test_a_table_that_stands_still if {
	quiet := {"benchmarks": [table], "host": {"command_line": ["root=/dev/sda1", "ro"]}}
	found(quiet) == {["high", "possible", ["iommu-pt", "nccl-p2p-disable"]]}
	found(object.union(quiet, {"iommu": {"default_domain": "translated"}})) == {["high", "likely", ["iommu-pt", "nccl-p2p-disable"]]}
	found({"benchmarks": [table], "host": {"command_line": ["root=/dev/sda1", "iommu=pt"]}}) == set()
	found({"benchmarks": [table]}) == set()
	found({"benchmarks": [object.union(table, {"gpu_names": ["Radeon RX 7900 XTX"]})], "host": {"command_line": ["ro"]}}) == set()
}

# rocm-smi without addresses: the driver's name in the line says whose it was.
test_fires_on_a_fault_in_the_drivers_name if {
	named := object.union(fault, {"fields": {"driver": "amdgpu"}, "message": "amdgpu 0000:43:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0014 address=0xf081000000 flags=0x0020]"})
	document := {"gpus": {"devices": [{"address": "GPU0", "vendor": "amd", "name": "AMD Radeon RX 7900 XTX"}]}, "kernel_log": {"source": "journal.txt", "events": [named]}}
	found(document) == {["high", "likely", ["nccl-p2p-disable", "iommu-pt"]]}
}

cards(name, mode) := {"gpus": {"devices": gpus(name)}, "iommu": {"mode": mode}, "host": {"command_line": ["ro", "iommu=pt"]}}

joined(accessible) := {"links": {"pairs": [{"a": "0000:06:00.0", "b": "0000:43:00.0", "kind": "gpu-gpu", "link_type": "pcie", "accessible": accessible}]}}

test_radeon_wants_remapping if {
	found(cards("AMD Radeon AI PRO R9700", "passthrough")) == {["low", "likely", ["iommu-remap", "nccl-p2p-disable"]]}
	found(cards("AMD Radeon AI PRO R9700", "translated")) == set()
	found(object.union(cards("AMD Radeon AI PRO R9700", "passthrough"), joined(false))) == {["medium", "possible", ["iommu-remap", "nccl-p2p-disable"]]}
	found(object.union(cards("AMD Radeon AI PRO R9700", "off"), joined(true))) == {["low", "possible", ["iommu-remap", "nccl-p2p-disable"]]}
}

# What is in force counts, not what the command line asks for.
test_the_state_counts if {
	found(cards("AMD Instinct MI300X", "translated")) == {["low", "likely", ["iommu-pt"]]}
	found(cards("AMD Instinct MI300X", "passthrough")) == set()
	some f in amd_iommu.findings with input as cards("AMD Instinct MI250X", "translated")
	contains(f.message, "256 threads")
	some g in amd_iommu.findings with input as cards("AMD Instinct MI300X", "translated")
	contains(g.message, "instead of disabling it")
}
