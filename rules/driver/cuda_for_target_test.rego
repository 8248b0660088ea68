package gpudoctor.rules.cuda_for_target_test

import data.gpudoctor.rules.cuda_for_target as r

runtime := {"kind": "libcudart", "path": "/c/libcudart.so.12", "version": "12.4.127", "found_by": "ld_cache"}

image(driver, more) := object.union({"profile": "image", "libraries": {"files": [runtime]}, "target": {"source": "--driver", "driver": driver}}, more)
subjects(document) := {f.subject | some f in r.findings with input as document}

test_fires_torch if subjects(image("550.54", {"libraries": {"files": [], "packages": [{"name": "torch", "version": "2.9.0+cu130", "path": "/t"}]}})) == {"driver"}

test_fires_compat if {
	some f in r.findings with input as image("470.57.02", {"libraries": {"files": [runtime, {"kind": "libcuda", "path": "/usr/local/cuda/compat/libcuda.so.1", "compat": true, "version": "550.54.15", "found_by": "toolkit"}]}})
	[f.severity, f.about.compat] == ["medium", {"/usr/local/cuda/compat/libcuda.so.1"}]
}

test_silent if subjects(image("550.54", {})) == set()
