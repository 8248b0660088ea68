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

test_says_how_it_is_set if {
	some f in hsa_config.findings with input as object.union(demand, set_to("HSA_NO_SCRATCH_RECLAIM", "1"))
	contains(f.message, "did not reach the process")
	some g in hsa_config.findings with input as object.union(demand, set_to("HSA_NO_SCRATCH_RECLAIM", "0"))
	contains(g.message, "set to 0")
}

advice := log([object.remove(message("rccl-fine-grain-pcie-missing", 0, {}), ["fields"])])

test_low_on_advice if {
	found(advice) == {["HSA_FORCE_FINE_GRAIN_PCIE", "low", "possible", ["hsa-env"]]}
	found(object.union(advice, set_to("HSA_FORCE_FINE_GRAIN_PCIE", "1"))) == set()
	found(log([message("hsa-variable-advised", 0, scratch)])) == {["HSA_NO_SCRATCH_RECLAIM", "low", "possible", ["hsa-env"]]}
}

test_silent_without_a_name if {
	nameless := {"variable": "", "value": "1"}
	found(log([message("hsa-variable-required", 0, nameless), message("hsa-variable-advised", 1, nameless)])) == set()
}

test_first_suspect_of_an_unexplained_failure if {
	lacking := object.union(message("rccl-fine-grain-pcie-missing", 0, {}), {"role": "setting"})
	failure := object.union(message("nccl-unhandled-cuda-error", 1, {}), {"role": "category"})
	found(log([lacking, failure])) == {["HSA_FORCE_FINE_GRAIN_PCIE", "medium", "possible", ["hsa-env"]]}
	cause := message("nccl-duplicate-gpu", 1, {})
	found(log([lacking, cause])) == {["HSA_FORCE_FINE_GRAIN_PCIE", "low", "possible", ["hsa-env"]]}
}

machine(gpus) := {"gpus": {"devices": [object.union({"vendor": "amd", "address": sprintf("0000:0%d:00.0", [i])}, g) | some i, g in gpus]}}

override := set_to("HSA_OVERRIDE_GFX_VERSION", "10.3.0")

test_fires_on_an_override_that_does_not_fit if {
	mixed := object.union(override, machine([{"architecture": "gfx1032"}, {"architecture": "gfx1200"}]))
	found(mixed) == {["HSA_OVERRIDE_GFX_VERSION", "medium", "likely", ["unset-env"]]}
	crashed := object.union(mixed, log([message("rocr-memory-fault", 0, {})]))
	found(crashed) == {["HSA_OVERRIDE_GFX_VERSION", "critical", "likely", ["unset-env"]]}
	passing := object.union(override, machine([{"architecture": "gfx1030", "name": "AMD Instinct MI210"}]))
	found(passing) == {["HSA_OVERRIDE_GFX_VERSION", "medium", "likely", ["unset-env"]]}
}

test_silent_on_an_override_that_fits if {
	found(object.union(override, machine([{"architecture": "gfx1032"}]))) == set()
	found(object.union(set_to("HSA_OVERRIDE_GFX_VERSION", "9.0.10"), machine([{"architecture": "gfx90a", "name": "AMD Instinct MI210"}]))) == set()
	found(override) == set()
}

test_fires_on_legacy_ipc if {
	document := object.union(set_to("HSA_ENABLE_IPC_MODE_LEGACY", "1"), log([message("hip-ipc-failed", 4, {})]))
	found(document) == {["HSA_ENABLE_IPC_MODE_LEGACY", "critical", "likely", ["unset-env"]]}
	found(set_to("HSA_ENABLE_IPC_MODE_LEGACY", "1")) == set()
	found(object.union(set_to("HSA_ENABLE_IPC_MODE_LEGACY", "0"), log([message("hip-ipc-failed", 4, {})]))) == set()
}

test_fires_on_an_architecture_without_kernels if {
	document := log([message("rocblas-no-kernels", 0, {"architecture": "gfx1032"})])
	found(document) == {["gfx1032", "medium", "possible", ["hsa-env"]]}
	some f in hsa_config.findings with input as document
	f.params.value == "10.3.0"
	found(log([message("rocblas-no-kernels", 0, {"architecture": "gfx1036"})])) == set()
}

test_unresolvable if {
	count(hsa_config.missing) == 1 with input as {}
	count(hsa_config.missing) == 0 with input as demand
	count(hsa_config.not_applicable) == 1 with input as {"gpus": {"devices": [{"address": "x", "vendor": "nvidia"}]}}
}

test_fires_on_code_that_hip_does_not_find if {
	unmatched := log([message("hip-no-code-object", 0, {})])
	some f in hsa_config.findings with input as object.union(unmatched, machine([{"architecture": "gfx1032"}]))
	[f.subject, f.confidence, f.params.value] == ["gfx1032", "likely", "10.3.0"]
	found(unmatched) == set() # The row's verdict tells it.

	# An accelerator has code, cards of two generations need other answers, and where an override is set it is what fails.
	found(object.union(unmatched, machine([{"architecture": "gfx942"}]))) == set()
	found(object.union(unmatched, machine([{"architecture": "gfx1032"}, {"architecture": "gfx1101"}]))) == set()
	found(object.union(object.union(unmatched, override), machine([{"architecture": "gfx1032"}]))) == {["HSA_OVERRIDE_GFX_VERSION", "high", "possible", ["unset-env"]]}
}

rocm(version) := {"software": [{"name": "rocm", "version": version, "manager": "log", "source": "a.log", "line": 2}]}

test_scratch_memory_on_mi200 if {
	told := {["HSA_NO_SCRATCH_RECLAIM", "low", "likely", ["hsa-env"]]}
	found(object.union(rocm("7.13.0.0"), machine([{"architecture": "gfx90a"}]))) == told
	found(object.union(rocm("7.13.0.0"), machine([{"name": "AMD Instinct MI250X"}]))) == told
	found(object.union(rocm("7.2.0"), machine([{"architecture": "gfx90a"}]))) == set()
	found(object.union(rocm("7.13.0.0"), machine([{"architecture": "gfx942"}]))) == set()
	found(object.union(object.union(rocm("7.13.0.0"), set_to("HSA_NO_SCRATCH_RECLAIM", "1")), machine([{"architecture": "gfx90a"}]))) == set()
}

# RCCL's own word that a peer's memory could not be mapped.
test_fires_on_ipc_whose_way_is_not_known if {
	told := {["HSA_ENABLE_IPC_MODE_LEGACY", "high", "possible", ["hsa-env", "nccl-p2p-disable", "upgrade-rocm"]]}
	found(log([message("hip-ipc-failed", 4, {})])) == told
	found(log([message("nccl-cuda-invalid-argument", 4, {"runtime": "HIP", "file": "transport/p2p.cc"})])) == told

	# Elsewhere in RCCL, and of CUDA, the same word is another matter.
	found(log([message("nccl-cuda-invalid-argument", 4, {"runtime": "HIP", "file": "enqueue.cc"})])) == set()
	found(log([message("nccl-cuda-invalid-argument", 4, {"runtime": "Cuda", "file": "transport/p2p.cc"})])) == set()
	found(object.union(set_to("HSA_ENABLE_IPC_MODE_LEGACY", "0"), log([message("hip-ipc-failed", 4, {})]))) == set()
}
