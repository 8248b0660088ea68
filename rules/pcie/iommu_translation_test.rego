package gpudoctor.rules.iommu_translation_test

import data.gpudoctor.rules.iommu_translation

a := "0000:41:00.0"
b := "0000:61:00.0"

gpus(vendor) := {"gpus": {"devices": [{"address": address, "vendor": vendor, "nvlinks": []} | some address in [a, b]]}}
pair := {"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0, "bridges": []}]}}
gpus_of_texts := {"gpus": {"devices": [{"address": address, "vendor": "nvidia"} | some address in [a, b]]}}
guest := {"host": {"virtualization": {"guest": true}}}

machine(kind) := object.union_n([gpus("nvidia"), pair, {
	"host": {"virtualization": {"guest": false}},
	"iommu": {
		"vendor": "amd", "units": ["ivhd0"], "command_line": ["amd_iommu=on"],
		"groups": [{"id": 12, "type": kind, "devices": [a]}, {"id": 15, "type": kind, "devices": [b]}],
	},
}])

transfers(outcome) := {"transfers": {"outcome": "ok", "transfers": [
	{"test": "copy", "source": a, "destination": b, "outcome": outcome},
	{"test": "copy", "source": b, "destination": a, "outcome": "ok"},
]}}

# What people send: what the kernel log tells of the IOMMU, and its command line.
text := {"texts": [{"name": "dmesg.txt", "lines": 1, "bytes": 1, "kinds": []}]}
logged(event) := {"kernel_log": {"source": "dmesg.txt", "events": [object.union({"message": "x", "count": 4, "source": "dmesg.txt", "line": 8}, event)]}}
refused := logged({"kind": "amd-vi-fault", "address": a, "fields": {"driver": "nvidia"}})
intel_fault := object.union(gpus("nvidia"), logged({
	"kind": "dmar-fault", "address": a, "message": "DMAR: [DMA Write] Request device [41:00.0] fault addr f1000000",
}))

boot := object.union_n([text, gpus("nvidia"), pair, logged({"kind": "iommu-mode", "line": 1}), {
	"iommu": {"vendor": "amd", "default_domain": "translated", "units": [], "groups": []},
	"origins": [{"fact": "iommu.vendor", "source": "dmesg.txt", "line": 3}],
}])

asked_for(words) := object.union_n([text, gpus("nvidia"), {
	"iommu": {"command_line": words},
	"origins": [{"fact": "iommu.command_line", "source": "cmdline.txt", "line": 1}],
}])

wrong_copy := {"benchmarks": [{
	"tool": "pytorch", "test": "x", "what": "copy", "wrong": 2, "complete": true, "source": "app.log", "line": 7,
}]}

broken_off := {"benchmarks": [{
	"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "complete": false, "source": "t", "line": 1,
}]}

command_line(words) := {"host": {"command_line": words}}

complaint := {"logs": {"messages": [{
	"id": "x-y", "program": "nccl", "role": "category", "text": "x", "source": "t", "line": 1, "order": 0, "count": 1, "ranks": 1,
}]}}

hung := {
	"benchmarks": [{
		"tool": "nccl-tests", "test": "collective", "what": "collective", "ranks": 2, "complete": false, "source": "a", "line": 9,
	}],
	"logs": {"messages": [], "transports": [{"kind": "p2p-direct", "channels": 2, "source": "a", "line": 4}]},
}

nic_fault := object.union(
	logged({"kind": "dmar-fault", "address": "0000:31:00.0"}),
	{"pci": {"devices": [{"address": "0000:31:00.0", "kind": "nic", "vendor": "0x15b3"}]}},
)

test_findings if {
	every row in [
		[[machine("DMA-FQ"), transfers("slow")], {["high", "confirmed"]}],
		[[machine("DMA-FQ"), transfers("ok")], set()],
		[[machine("DMA-FQ"), {"iommu": {"vendor": "arm"}}], set()],
		[[intel_fault], {["critical", "likely"]}],
		[[logged({"kind": "amd-vi-fault", "address": "0000:00:14.0"})], set()],
		[[refused, guest], set()],
		# A NIC's access to the memory of a GPU.
		[[logged({"kind": "amd-vi-fault", "address": "0000:21:00.0", "fields": {"driver": "bnxt_en"}})], {["medium", "possible"]}],
		[[nic_fault, complaint], {["high", "likely"]}],
		[[nic_fault, guest], set()],
		[[boot], {["high", "likely"]}],
		[[boot, guest], set()],
		[[boot, {"host": {"command_line": ["ro", "iommu=pt"]}}], set()],
		[[boot, {"iommu": {"groups": [{"id": 1, "type": "identity", "devices": [a, b]}]}}], set()],
		[[boot, {"links": {"pairs": [object.remove(pair.links.pairs[0], ["nvlinks"])]}}, gpus_of_texts], {["medium", "possible"]}],
		# The command line asks for it, and a job fails.
		[[asked_for(["intel_iommu=on"]), wrong_copy], {["high", "likely"]}],
		[[asked_for(["intel_iommu=on"]), broken_off], {["high", "possible"]}],
		[[asked_for([]), complaint, {"host": {"cpu": {"vendor": "AuthenticAMD"}}, "origins": []}], {["high", "possible"]}],
		[[asked_for(["intel_iommu=on", "iommu=pt"]), wrong_copy], set()],
		[[asked_for([]), wrong_copy], set()],
		[[asked_for(["intel_iommu=on"])], set()],
		[[asked_for(["intel_iommu=on"]), wrong_copy, gpus("amd")], set()],
		[[asked_for(["intel_iommu=on"]), wrong_copy, {"iommu": {"groups": [{"id": 1, "type": "identity", "devices": []}]}}], set()],
		# A collective stands still.
		[[hung, command_line(["ro", "intel_iommu=on"])], {["high", "likely"]}],
		[[hung], set()],
		[[hung, command_line(["intel_iommu=on", "iommu=pt"])], set()],
		[[hung, command_line(["ro", "intel_iommu=on"]), guest], set()],
	] {
		found := iommu_translation.findings with input as object.union_n(row[0])
		{[f.severity, f.confidence] | some f in found} == row[1]
	}
}

test_advice if {
	some f in iommu_translation.findings with input as object.union(machine("DMA"), {
		"host": {"virtualization": {"guest": false, "passthrough_host": true}},
		"pci": {"devices": [{"address": x, "vendor": "0x10de", "driver": "nvidia"} | some x in [a, b]]},
	})
	f.remedies == ["iommu-pt"]
	some g in iommu_translation.findings with input as boot
	g.remedies == ["iommu-pt", "iommu-off", "nccl-p2p-disable"]
	[e.source | some e in g.evidence] == ["dmesg.txt:1", "dmesg.txt:3"]
	some i in iommu_translation.findings with input as intel_fault
	i.params.vendor == "intel"
}

test_unresolvable if {
	count(iommu_translation.findings) == 0 with input as object.union(machine("DMA"), guest)
	count(iommu_translation.missing) == 1 with input as object.union(machine("DMA"), guest)
	iommu_translation.asks == {"iommu.groups[].type"} with input as machine("")
}
