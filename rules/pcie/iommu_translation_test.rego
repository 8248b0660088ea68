package gpudoctor.rules.iommu_translation_test

import data.gpudoctor.rules.iommu_translation

a := "0000:41:00.0"
b := "0000:61:00.0"

gpu(address) := {"address": address, "vendor": "nvidia", "nvlinks": []}

pair := {"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0, "bridges": []}

machine(kind) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [gpu(a), gpu(b)]},
	"links": {"pairs": [pair]},
	"iommu": {
		"vendor": "amd", "units": ["ivhd0"], "command_line": ["amd_iommu=on"],
		"groups": [{"id": 12, "type": kind, "devices": [a]}, {"id": 15, "type": kind, "devices": [b]}],
	},
}

with_transfers(outcome) := object.union(machine("DMA-FQ"), {"transfers": {"outcome": "ok", "transfers": [
	{"test": "copy", "source": a, "destination": b, "outcome": outcome},
	{"test": "copy", "source": b, "destination": a, "outcome": "ok"},
]}})

grades(found) := {[f.severity, f.confidence] | some f in found}

test_measurement_decides if {
	grades(iommu_translation.findings) == {["high", "confirmed"]} with input as with_transfers("slow")
	grades(iommu_translation.findings) == {["info", "likely"]} with input as with_transfers("ok")
}

test_passthrough_host_keeps_its_iommu if {
	host := object.union(machine("DMA"), {
		"host": {"virtualization": {"guest": false, "passthrough_host": true}},
		"pci": {"devices": [{"address": x, "vendor": "0x10de", "driver": "nvidia"} | some x in [a, b]]},
	})
	some f in iommu_translation.findings with input as host
	f.remedies == ["iommu-pt"]
}

test_silent_for_arm if {
	grace := object.union(machine("DMA-FQ"), {"iommu": {"vendor": "arm"}})
	count(iommu_translation.findings) == 0 with input as grace
}

test_unresolvable_in_a_virtual_machine if {
	guest := object.union(machine("DMA"), {"host": {"virtualization": {"guest": true}}})
	count(iommu_translation.findings) == 0 with input as guest
	count(iommu_translation.missing) == 1 with input as guest
}

test_unresolvable_on_an_old_kernel if count(iommu_translation.missing) == 1 with input as machine("")

# The texts that people send: what the kernel log tells of the IOMMU.

fault(kind, address, message) := {"kernel_log": {"source": "dmesg.txt", "events": [{
	"kind": kind, "address": address, "message": message, "seconds": 1, "count": 4, "source": "dmesg.txt", "line": 8,
}]}}

refused := {"kernel_log": {"source": "dmesg.txt", "events": [{
	"kind": "amd-vi-fault", "address": a, "message": "AMD-Vi: Event logged", "count": 4, "source": "dmesg.txt", "line": 8,
	"fields": {"driver": "nvidia"},
}]}}

test_refused_accesses_on_a_machine_of_several_gpus_are_sure if {
	log := object.union(fault("dmar-fault", a, "DMAR: [DMA Write] Request device [41:00.0] fault addr f1000000"), {"gpus": {"devices": [gpu(a), gpu(b)]}})
	found := iommu_translation.findings with input as log
	grades(found) == {["critical", "confirmed"]}
	some f in found
	f.params.vendor == "intel"
}

test_silent_on_refused_accesses_of_others if {
	count(iommu_translation.findings) == 0 with input as fault("amd-vi-fault", "0000:00:14.0", "AMD-Vi: Event logged [IO_PAGE_FAULT device=00:14.0]")
	guest := object.union(refused, {"host": {"virtualization": {"guest": true}}})
	count(iommu_translation.findings) == 0 with input as guest
}

log_of_boot(vendor, kind) := {
	"texts": [{"name": "dmesg.txt", "lines": 1, "bytes": 1, "kinds": []}],
	"gpus": {"devices": [gpu(a), gpu(b)]},
	"links": {"pairs": [pair]},
	"iommu": {"vendor": vendor, "default_domain": kind, "units": [], "groups": []},
	"kernel_log": {"source": "dmesg.txt", "events": [{
		"kind": "iommu-mode", "message": "iommu: Default domain type: Translated", "seconds": 1, "count": 1, "source": "dmesg.txt", "line": 1,
	}]},
	"origins": [{"fact": "iommu.vendor", "source": "dmesg.txt", "line": 3}],
}

test_fires_on_the_default_that_the_kernel_logs if {
	found := iommu_translation.findings with input as log_of_boot("amd", "translated")
	grades(found) == {["high", "likely"]}
	some f in found
	f.remedies == ["iommu-pt", "iommu-off", "nccl-p2p-disable"]
	[e.source | some e in f.evidence] == ["dmesg.txt:1", "dmesg.txt:3"]
}

asked_for(words, job) := object.union(
	{
		"texts": [{"name": "cmdline.txt", "lines": 1, "bytes": 1, "kinds": []}],
		"gpus": {"devices": [gpu("GPU0"), gpu("GPU1")]},
		"iommu": {"command_line": words},
		"origins": [{"fact": "iommu.command_line", "source": "cmdline.txt", "line": 1}],
	},
	job,
)

wrong_copy := {"benchmarks": [{"tool": "pytorch", "test": "x", "what": "copy", "wrong": 2, "complete": true, "source": "app.log", "line": 7}]}
broken_off := {"benchmarks": [{"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "complete": false, "source": "t", "line": 1}]}
complaint := {"logs": {"messages": [{"id": "x-y", "program": "nccl", "role": "category", "text": "x", "source": "t", "line": 1, "order": 0, "count": 1, "ranks": 1}]}}

test_fires_where_the_command_line_asks_and_a_job_fails if {
	found := iommu_translation.findings with input as asked_for(["intel_iommu=on"], wrong_copy)
	grades(found) == {["high", "likely"]}
	grades(iommu_translation.findings) == {["high", "possible"]} with input as asked_for(["intel_iommu=on"], broken_off)
	amd := object.union(asked_for([], complaint), {"host": {"cpu": {"vendor": "AuthenticAMD"}}, "origins": []})
	grades(iommu_translation.findings) == {["high", "possible"]} with input as amd
}

test_silent_where_the_command_line_asks_for_nothing_of_the_kind if {
	count(iommu_translation.findings) == 0 with input as asked_for(["intel_iommu=on", "iommu=pt"], wrong_copy)
	count(iommu_translation.findings) == 0 with input as asked_for([], wrong_copy)
	count(iommu_translation.findings) == 0 with input as asked_for(["intel_iommu=on"], {})
	radeon := object.union(asked_for(["intel_iommu=on"], wrong_copy), {"gpus": {"devices": [{"address": "GPU0", "vendor": "amd", "nvlinks": []}, {"address": "GPU1", "vendor": "amd", "nvlinks": []}]}})
	count(iommu_translation.findings) == 0 with input as radeon
	count(iommu_translation.findings) == 0 with input as object.union(asked_for(["intel_iommu=on"], wrong_copy), {"iommu": {"groups": [{"id": 1, "type": "identity", "devices": []}]}})
}

test_a_collective_that_stands_still if {
	hung := {
		"benchmarks": [{"tool": "nccl-tests", "test": "collective", "what": "collective", "ranks": 2, "complete": false, "source": "a", "line": 9}],
		"logs": {"messages": [], "transports": [{"kind": "p2p-direct", "channels": 2, "source": "a", "line": 4}]},
	}
	on := object.union(hung, {"host": {"command_line": ["ro", "intel_iommu=on"]}})
	some f in iommu_translation.findings with input as on
	[f.severity, f.confidence] == ["high", "likely"]
	default_on := object.union(hung, {"iommu": {"default_domain": "translated", "vendor": "amd"}})
	count(iommu_translation.findings) == 1 with input as default_on
	count(iommu_translation.findings) == 0 with input as hung
	count(iommu_translation.findings) == 0 with input as object.union(hung, {"host": {"command_line": ["intel_iommu=on", "iommu=pt"]}})
	count(iommu_translation.findings) == 0 with input as object.union(on, {"host": {"virtualization": {"guest": true}}})
}

test_names_the_stopgap_where_communicators_are_known if {
	some f in iommu_translation.findings with input as object.union(refused, {"logs": {"communicators": [{"ranks": 2}]}})
	"nccl-p2p-disable" in f.remedies
}

# Who lists the units shows that the IOMMU is on.
listing_units(units, words) := object.union(log_of_boot("amd", ""), {
	"iommu": {"vendor": "amd", "units": units, "groups": [], "command_line": words},
	"host": {"command_line": array.concat(["BOOT_IMAGE=/vmlinuz", "ro"], words)},
	"kernel_log": {"source": "", "events": []},
})

test_fires_on_units_without_pass_through if {
	some f in iommu_translation.findings with input as listing_units(["ivhd0"], [])
	[f.severity, f.confidence] == ["medium", "possible"]
	count(iommu_translation.findings) == 0 with input as listing_units([], [])
	count(iommu_translation.findings) == 0 with input as listing_units(["ivhd0"], ["iommu=pt"])
}
