package gpudoctor.rules.driver_library_mismatch_test

import data.gpudoctor.rules.driver_library_mismatch

# library is a file of the driver that the loader takes.
library(kind, version, more) := object.union(
	{
		"kind": kind,
		"path": sprintf("/usr/lib/x86_64-linux-gnu/%s.so.1", [kind]),
		"real_path": sprintf("/usr/lib/x86_64-linux-gnu/%s.so.%s", [kind, version]),
		"version": version, "found_by": "ld_cache", "loads": true,
	},
	more,
)

cuda(version) := library("libcuda", version, {})
compat(more) := library("libcuda", "570.86.10", object.union({"path": "/usr/local/cuda/compat/libcuda.so.1", "compat": true}, more))
stub(more) := object.union({"kind": "libcuda", "path": "/opt/stubs/libcuda.so.1", "found_by": "ld_library_path", "stub": true, "loads": true}, more)

# machine has a kernel driver 580.159.04 and these libraries.
machine(libraries) := {
	"gpus": {
		"nvml": "not-asked", "driver": {"kernel_version": "580.159.04"},
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

failed(code) := {"transfers": {"outcome": "error", "error_code": code}}
inside := {"container": {"inside": true, "runtime": "docker"}}
target(driver) := {"target": {"source": "--driver", "driver": driver}}
on_path := compat({"found_by": "ld_library_path"})

test_findings if {
	every row in [
		[[machine([cuda("575.10.01")])], "mismatched", ["reboot-or-reload-driver"]],
		[[machine([cuda("575.10.01")]), inside], "mismatched", ["remove-driver-libraries"]],
		[[machine([cuda("580.159.04")]), failed(803)], "said", ["reboot-or-reload-driver"]],
		[[machine([]), failed(34)], "said", ["remove-from-library-path"]],
		[[machine([compat({"version": "590.10.01"})]), failed(804)], "said", ["remove-from-library-path", "upgrade-driver"]],
		[[machine([compat({})])], "older-compat", ["remove-from-library-path"]],
		[[machine([stub({})]), failed(34)], "stub", ["remove-from-library-path"]],
		[[machine([cuda("535.104.05")]), {"profile": "image"}], "in-image", []],
		# The driver of the target decides.
		[[image([on_path]), target("580.65.06")], "older-compat", ["remove-from-image-path"]],
	] {
		found := driver_library_mismatch.findings with input as object.union_n(row[0])
		[[f.grade, object.get(f, "remedies", [])] | some f in found] == [[row[1], row[2]]]
	}
}

test_silent if {
	every document in [
		# What answered is not what the loader would take: another path was meant.
		[
			machine([cuda("575.10.01"), library("libnvidia-ml", "575.10.01", {})]),
			{"gpus": {"nvml": "ok"}, "transfers": {"outcome": "ok", "devices": [{"address": "0000:01:00.0"}]}},
		],
		# A mount point that a container runtime left, a compatibility library, and what platforms mount as a folder.
		[image([
			library("libcuda", "535.104.05", {"empty": true, "loads": false}), compat({"loads": false}),
			library("libcuda", "535.104.05", {"path": "/usr/local/nvidia/lib64/libcuda.so.1"}),
		])],
		# Windows brings the driver of WSL, with numbers of its own.
		[machine([library("libcuda", "110.1.1", {"path": "/usr/lib/wsl/lib/libcuda.so.1"})])],
		# Who judges a whole machine for the profile image looks at its own driver.
		[machine([cuda("580.159.04")]), {"profile": "image"}],
		[machine([cuda("580.159.04")]), inside],
		[image([on_path]), target("550.54.15")],
	] {
		count(driver_library_mismatch.findings) == 0 with input as object.union_n(document)
	}
}

with_path(value) := {
	"profile": "image", "image": {"form": "oci-layout"}, "gpus": {"driver": {"kernel_version": "580.159.04"}},
	"libraries": {"files": [stub({})]}, "env": {"variables": [{"name": "LD_LIBRARY_PATH", "value": value}]},
}

test_the_way_out_of_an_image if {
	driver_library_mismatch.way_out(stub({"found_by": "default_path"})) == ["remove-driver-libraries"] with input as with_path("")
}
