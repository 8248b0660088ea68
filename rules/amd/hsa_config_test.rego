package gpudoctor.rules.hsa_config_test

import data.gpudoctor.rules.hsa_config

message(id, order, fields) := {
	"id": id, "program": "rccl", "role": "cause", "text": sprintf("line of %s", [id]), "fields": fields,
	"source": "app.log", "line": order + 1, "order": order,
}

log(messages) := {"logs": {"messages": messages}}
set_to(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "environment", "effective": true}]}}

scratch := {"variable": "HSA_NO_SCRATCH_RECLAIM", "value": "1"}
demand := log([message("hsa-variable-required", 0, scratch), message("hsa-variable-please-set", 2, scratch)])

found(document) := {[f.subject, f.severity, f.confidence, f.remedies] | some f in hsa_config.findings with input as document}

# joined is several documents in one, with the messages of their logs.
joined(documents) := object.union(object.union_n(documents), log([m | some d in documents; some m in d.logs.messages]))

advice := log([object.remove(message("rccl-fine-grain-pcie-missing", 0, {}), ["fields"])])
nameless := {"variable": "", "value": "1"}
lacking := object.union(message("rccl-fine-grain-pcie-missing", 0, {}), {"role": "setting"})

machine(gpus) := {"gpus": {"devices": [object.union({"vendor": "amd", "address": sprintf("0000:0%d:00.0", [i])}, g) | some i, g in gpus]}}
cards(architectures) := machine([{"architecture": name} | some name in architectures])

override := set_to("HSA_OVERRIDE_GFX_VERSION", "10.3.0")

legacy(value) := set_to("HSA_ENABLE_IPC_MODE_LEGACY", value)

unshared := log([message("hip-ipc-failed", 4, {})])

unmapped(runtime, file) := log([message("nccl-cuda-invalid-argument", 4, {"runtime": runtime, "file": file})])
unbuilt(architecture) := log([message("rocblas-no-kernels", 0, {"architecture": architecture})])

unmatched := log([message("hip-no-code-object", 0, {})])

rocm(version) := {"software": [{"name": "rocm", "version": version, "manager": "log", "source": "a.log", "line": 2}]}

test_findings if {
	every row in [
		[[log([message("hsa-variable-advised", 0, scratch)])], ["HSA_NO_SCRATCH_RECLAIM", "low", "possible", ["hsa-env"]]],
		# The first suspect of a failure that nothing explains.
		[[log([lacking, object.union(message("nccl-unhandled-cuda-error", 1, {}), {"role": "category"})])], ["HSA_FORCE_FINE_GRAIN_PCIE", "medium", "possible", ["hsa-env"]]],
		[[log([lacking, message("nccl-duplicate-gpu", 1, {})])], ["HSA_FORCE_FINE_GRAIN_PCIE", "low", "possible", ["hsa-env"]]],
		# An override that does not fit.
		[[override, cards(["gfx1032", "gfx1200"]), log([message("rocr-memory-fault", 0, {})])], ["HSA_OVERRIDE_GFX_VERSION", "critical", "likely", ["unset-env"]]],
		[[override, machine([{"architecture": "gfx1030", "name": "AMD Instinct MI210"}])], ["HSA_OVERRIDE_GFX_VERSION", "medium", "likely", ["unset-env"]]],
		[[override, unmatched, cards(["gfx1032"])], ["HSA_OVERRIDE_GFX_VERSION", "high", "possible", ["unset-env"]]],
		# Memory that could not be shared.
		[[legacy("1"), unshared], ["HSA_ENABLE_IPC_MODE_LEGACY", "critical", "likely", ["unset-env"]]],
		[[unmapped("HIP", "transport/p2p.cc")], ["HSA_ENABLE_IPC_MODE_LEGACY", "high", "possible", ["hsa-env", "nccl-p2p-disable", "upgrade-rocm"]]],
		[[unbuilt("gfx1032")], ["gfx1032", "medium", "possible", ["hsa-env"]]],
		[[unmatched, cards(["gfx1032"])], ["gfx1032", "high", "likely", ["hsa-env"]]],
		[[rocm("7.13.0.0"), cards(["gfx90a"])], ["HSA_NO_SCRATCH_RECLAIM", "low", "likely", ["hsa-env"]]],
		[[rocm("7.13.0.0"), machine([{"name": "AMD Instinct MI250X"}])], ["HSA_NO_SCRATCH_RECLAIM", "low", "likely", ["hsa-env"]]],
	] {
		found(joined(row[0])) == {row[1]}
	}
	every row in [
		[[demand, set_to("HSA_NO_SCRATCH_RECLAIM", "1")], "set to 1", "1"],
		[[demand, set_to("HSA_NO_SCRATCH_RECLAIM", "0")], "set to 0", "1"],
		[[unbuilt("gfx1032")], "for gfx1032", "10.3.0"],
		[[unmatched, cards(["gfx1032"])], "for gfx1032", "10.3.0"],
	] {
		some f in hsa_config.findings with input as joined(row[0])
		contains(f.message, row[1])
		f.params.value == row[2]
	}
}

test_silent if {
	every documents in [
		[advice, set_to("HSA_FORCE_FINE_GRAIN_PCIE", "1")],
		[log([message("hsa-variable-required", 0, nameless), message("hsa-variable-advised", 1, nameless)])],
		[set_to("HSA_OVERRIDE_GFX_VERSION", "9.0.10"), machine([{"architecture": "gfx90a", "name": "AMD Instinct MI210"}])],
		[legacy("1")],
		[legacy("0"), unshared],
		# Elsewhere in RCCL, and of CUDA, the same word is another matter.
		[unmapped("HIP", "enqueue.cc")],
		[unmapped("Cuda", "transport/p2p.cc")],
		[unbuilt("gfx1036")],
		# Cards of two generations need other answers.
		[unmatched, cards(["gfx1032", "gfx1101"])],
		[rocm("7.2.0"), cards(["gfx90a"])],
		[rocm("7.13.0.0"), cards(["gfx942"])],
		[rocm("7.13.0.0"), cards(["gfx90a"]), set_to("HSA_NO_SCRATCH_RECLAIM", "1")],
	] {
		found(joined(documents)) == set()
	}
}

test_unresolvable if count(hsa_config.missing) == 1 with input as {}
