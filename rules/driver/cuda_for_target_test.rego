package gpudoctor.rules.cuda_for_target_test

import data.gpudoctor.rules.cuda_for_target as r

runtime := {"kind": "libcudart", "path": "/c/libcudart.so.12", "version": "12.4.127", "found_by": "ld_cache"}

image(driver, more) := object.union({"profile": "image", "libraries": {"files": [runtime]}, "target": {"source": "--driver", "driver": driver}}, more)
requires(value) := {"env": {"variables": [{"name": "NVIDIA_REQUIRE_CUDA", "value": value, "source": "environment", "effective": true}]}}
subjects(document) := {f.subject | some f in r.findings with input as document}

test_fires_torch if subjects(image("550.54", {"libraries": {"files": [], "packages": [{"name": "torch", "version": "2.9.0+cu130", "path": "/t"}]}})) == {"driver"}

test_fires_compat if {
	some f in r.findings with input as image("470.57.02", {"libraries": {"files": [runtime, {"kind": "libcuda", "path": "/usr/local/cuda/compat/libcuda.so.1", "compat": true, "version": "550.54.15", "found_by": "toolkit"}]}})
	[f.severity, f.about.compat] == ["medium", {"/usr/local/cuda/compat/libcuda.so.1"}]
}

test_fires_required if "NVIDIA_REQUIRE_CUDA" in subjects(image("470.57.02", requires("cuda>=12.4 brand=tesla,cuda>=12.4,driver>=525,driver<526")))

test_silent if {
	subjects(image("550.54", requires("cuda>=12.4"))) == set()
	subjects(image("470.57.02", object.union({"libraries": {"files": []}}, requires("cuda>=12.4 brand=tesla,cuda>=12.0,driver>=470,driver<471")))) == set()
}

test_silent_disabled if not "NVIDIA_REQUIRE_CUDA" in subjects(image("470.57.02", {"env": {"variables": [
	{"name": "NVIDIA_REQUIRE_CUDA", "value": "cuda>=12.4", "source": "environment", "effective": true},
	{"name": "NVIDIA_DISABLE_REQUIRE", "value": "1", "source": "environment", "effective": true},
]}}))
