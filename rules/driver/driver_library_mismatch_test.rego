package gpudoctor.rules.driver_library_mismatch_test

import data.gpudoctor.rules.driver_library_mismatch

# library is a file of the driver that the loader takes.
library(kind, version) := {
	"kind": kind,
	"path": sprintf("/usr/lib/x86_64-linux-gnu/%s.so.1", [kind]),
	"real_path": sprintf("/usr/lib/x86_64-linux-gnu/%s.so.%s", [kind, version]),
	"version": version,
	"found_by": "ld_cache",
	"loads": true,
}

compat := object.union(library("libcuda", "570.86.10"), {"path": "/usr/local/cuda/compat/libcuda.so.1", "compat": true})

stub := {
	"kind": "libcuda",
	"path": "/usr/local/cuda/lib64/stubs/libcuda.so.1",
	"found_by": "ld_library_path",
	"stub": true,
	"loads": true,
}

# machine has a kernel driver 580.159.04 and these libraries.
machine(libraries) := {
	"gpus": {
		"nvml": "not-asked",
		"driver": {"kernel_version": "580.159.04"},
		"devices": [{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true}],
	},
	"container": {"inside": false, "device_nodes": [{"path": "/dev/nvidia0", "access": "rw"}]},
	"libraries": {"files": libraries},
}

# image is a container without GPUs that has these libraries.
image(libraries) := {
	"container": {"inside": true, "device_nodes": []},
	"gpus": {"nvml": "not-found", "devices": [], "driver": {}},
	"libraries": {"files": libraries},
}

found(document) := {[f.subject, object.get(f, "severity", "critical"), object.get(f, "confidence", "likely")] |
	some f in driver_library_mismatch.findings with input as document
}

only(document) := f if {
	fs := driver_library_mismatch.findings with input as document
	count(fs) == 1
	some f in fs
}

test_fires_for_the_compiler if {
	f := only(machine([library("libnvidia-ptxjitcompiler", "575.10.01")]))
	f.severity == "medium"
}

test_told_by_the_libraries_alone if {
	silent := [library("libcuda", "580.159.04")]
	cuda := object.union(machine(silent), {"transfers": {"outcome": "error", "error_code": 803}})
	found(cuda) == {["driver", "critical", "confirmed"]}
	stubbed := object.union(machine([]), {"transfers": {"outcome": "error", "error_code": 34, "error_name": "CUDA_ERROR_STUB_LIBRARY"}})
	only(stubbed).remedies == ["remove-from-library-path"]
}

# What answered is not what the loader would take: another path was meant.
test_silent_when_it_works if {
	document := object.union(machine([library("libcuda", "575.10.01"), library("libnvidia-ml", "575.10.01")]), {
		"gpus": {"nvml": "ok"},
		"transfers": {"outcome": "ok", "devices": [{"address": "0000:01:00.0"}]},
	})
	found(document) == set()
}

test_mismatch_of_an_image if {
	document := object.union(machine([library("libcuda", "575.10.01")]), {"container": {"inside": true}})
	f := only(document)
	f.remedies[0] == "remove-driver-libraries"
	contains(f.message, "part of the image")
}

test_fires_on_stubs if {
	only(machine([object.union(stub, {"found_by": "ld_preload"})])).params.variable == "LD_PRELOAD"
	confirmed := object.union(machine([stub]), {"transfers": {"outcome": "error", "error_code": 34}})
	only(confirmed).confidence == "confirmed"
}

test_fires_on_older_compat if {
	f := only(machine([compat]))
	f.severity == "medium"
}

test_fires_where_compat_is_refused if {
	document := object.union(machine([object.union(compat, {"version": "590.10.01"})]), {"transfers": {"outcome": "error", "error_code": 804}})
	f := only(document)
	f.subject == "libcuda"
	f.confidence == "confirmed"
}

test_silent_in_a_clean_image if {
	# A mount point that a container runtime left, a compatibility library, and what platforms mount as a folder.
	found(image([
		object.union(library("libcuda", "535.104.05"), {"empty": true, "loads": false}),
		object.union(compat, {"loads": false}),
		object.union(library("libcuda", "535.104.05"), {"path": "/usr/local/nvidia/lib64/libcuda.so.1"}),
	])) == set()
}

test_info_when_an_image_fits if {
	document := object.union(machine([library("libcuda", "580.159.04")]), {"container": {"inside": true, "runtime": "docker"}})
	only(document).severity == "info"
}

# Windows brings the driver of WSL, with numbers of its own.
test_silent_in_wsl if {
	found(machine([object.union(library("libcuda", "110.1.1"), {"path": "/usr/lib/wsl/lib/libcuda.so.1"})])) == set()
}

test_unresolvable_without_libraries if count(driver_library_mismatch.missing) == 1 with input as {}

test_unresolvable_without_kernel_driver if {
	document := json.remove(machine([library("libcuda", "580.159.04")]), ["gpus/driver/kernel_version", "container"])
	count(driver_library_mismatch.missing) == 2 with input as document
}

# Who judges a whole machine for the profile image looks at its own driver.
test_silent_at_home if {
	document := object.union(machine([library("libcuda", "580.159.04")]), {"profile": "image"})
	found(document) == set()
	foreign := object.union(machine([library("libcuda", "535.104.05")]), {"profile": "image"})
	count(found(foreign)) == 1
}

# The driver of the target decides, and what only the loader's cache knows does not come first.
test_fires_on_compat_for_a_target if {
	path := object.union(compat, {"found_by": "ld_library_path"})
	f := only(object.union(image([path]), {"target": {"source": "--driver", "driver": "580.65.06"}}))
	[f.severity, f.remedies] == ["high", ["remove-from-image-path"]]
	found(object.union(image([path]), {"target": {"source": "--driver", "driver": "550.54.15"}})) == set()
}

packaged(version) := {
	"gpus": {"driver": {"kernel_version": "460.56"}},
	"software": [{"name": "libnvidia-compute-460", "version": version, "manager": "apt-history", "source": "a.txt", "line": 1}],
}

test_packages_of_another_version if {
	some f in driver_library_mismatch.findings with input as packaged("460.73.01-0ubuntu0.20.04.1")
	[f.severity, f.remedies[0]] == ["medium", "reboot-or-reload-driver"]
	m := {"id": "cuda-unknown-error", "program": "cuda", "role": "category", "text": "x", "source": "a.log", "line": 1, "order": 1, "count": 1}
	some g in driver_library_mismatch.findings with input as object.union(packaged("3:460.73.01-1.el8"), {"logs": {"messages": [m]}})
	g.severity == "critical"
	count(driver_library_mismatch.findings) == 0 with input as packaged("460.56-0ubuntu0.20.04.1")
}

driver_libraries_machine(files) := {"gpus": {"driver": {"kernel_version": "580.159.04"}}, "libraries": {"files": files}}
libcuda(path, version) := {"kind": "libcuda", "path": path, "version": version, "loads": true, "found_by": "ld_cache"}

driver_libraries_stub := object.union(libcuda("/opt/stubs/libcuda.so.1", ""), {"stub": true, "found_by": "ld_library_path"})

driver_libraries_image(value) := object.union(driver_libraries_machine([driver_libraries_stub]), {"profile": "image", "image": {"form": "oci-layout"}, "env": {"variables": [{"name": "LD_LIBRARY_PATH", "value": value}]}})

test_the_way_out_of_an_image if {
	driver_library_mismatch.way_out(object.union(driver_libraries_stub, {"found_by": "default_path"})) == ["remove-driver-libraries"] with input as driver_libraries_image("")
	driver_library_mismatch.led_by(driver_libraries_stub) == {"folder": "/opt/stubs", "kept": ["/usr/lib", "/opt/x"]} with input as driver_libraries_image("/usr/lib:/opt/stubs/:/opt/x:")
	driver_library_mismatch.kept == [] with input as driver_libraries_image("/usr/lib:/opt/stubs:$HOME/lib")
	driver_library_mismatch.kept == [] with input as driver_libraries_image("/usr/lib:/opt/stubs:/opt/../etc")
}
