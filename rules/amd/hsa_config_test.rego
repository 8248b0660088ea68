package gpudoctor.rules.hsa_config_test

import data.gpudoctor.rules.hsa_config

message(id, order, fields) := {
	"id": id, "program": "rccl", "role": "cause", "text": sprintf("line of %s", [id]), "fields": fields,
	"source": "app.log", "line": order + 1, "order": order,
}

log(messages) := {"logs": {"messages": messages}}
set_to(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]}}

found(document) := {[object.get(f, "grade", f.subject), f.params.value] | some f in hsa_config.findings with input as document}

# joined is several documents in one, with the messages of their logs.
joined(documents) := object.union(object.union_n(documents), log([m | some d in documents; some m in d.logs.messages]))

machine(gpus) := {"gpus": {"devices": [object.union({"vendor": "amd", "address": sprintf("0000:0%d:00.0", [i])}, g) | some i, g in gpus]}}
cards(architectures) := machine([{"architecture": name} | some name in architectures])

override := set_to("HSA_OVERRIDE_GFX_VERSION", "10.3.0")

legacy(value) := set_to("HSA_ENABLE_IPC_MODE_LEGACY", value)

unshared := log([message("hip-ipc-failed", 4, {})])

unmapped(runtime, file) := log([message("nccl-cuda-invalid-argument", 4, {"runtime": runtime, "file": file})])

unmatched := log([message("hip-no-code-object", 0, {})])

test_findings if {
	every row in [
		# An override that does not fit.
		[[override, cards(["gfx1032", "gfx1200"]), log([message("rocr-memory-fault", 0, {})])], ["HSA_OVERRIDE_GFX_VERSION", "10.3.0"]],
		[[override, unmatched, cards(["gfx1032"])], ["HSA_OVERRIDE_GFX_VERSION", "10.3.0"]],
		# Memory that could not be shared.
		[[legacy("1"), unshared], ["legacy", "0"]],
		[[unmapped("HIP", "transport/p2p.cc")], ["legacy", "0"]],
	] {
		found(joined(row[0])) == {row[1]}
	}
}

test_disguised if {
	found := hsa_config.findings with input as joined([machine([{"name": "AMD Instinct MI210", "architecture": "gfx1030"}]), unmatched])
	{[f.id, f.about.architecture] | some f in found} == {["disguised", "gfx90a"]}
}

test_silent if {
	every documents in [
		[unmatched, machine([{"name": "AMD Instinct MI210", "architecture": "gfx90a:sramecc+"}])],
		[unmatched, cards(["gfx1100"])],
		[set_to("HSA_OVERRIDE_GFX_VERSION_2", "10.3.0"), cards(["gfx1100", "gfx1031"])],
		[set_to("HSA_OVERRIDE_GFX_VERSION", "9.0.10"), machine([{"architecture": "gfx90a", "name": "AMD Instinct MI210"}])],
		[legacy("1")],
		[legacy("0"), unshared],
		# Elsewhere in RCCL, and of CUDA, the same word is another matter.
		[unmapped("HIP", "enqueue.cc")],
		[unmapped("Cuda", "transport/p2p.cc")],
	] {
		found(joined(documents)) == set()
	}
}
