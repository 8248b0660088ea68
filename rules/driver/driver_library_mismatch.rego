# METADATA
# title: The driver's libraries do not match the kernel driver
# description: >-
#   libcuda, libnvidia-ml and the kernel module are parts of one driver and must have the same version. After an update
#   without a reboot, or in an image that contains driver libraries, they differ, and CUDA or NVML fail to start. A
#   link-time stub of the CUDA toolkit on the library path has the same effect, and so does a compatibility library that
#   is older than the driver.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
#     description: The purpose of the compatibility libraries, and errors 803 and 804
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: The container toolkit mounts the driver's libraries into the container
#   - ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
#     description: The driver's result codes (34, 803, 804)
# custom:
#   severity: critical
#   confidence: likely
#   needs:
#     - libraries
#     - ["libraries.files[].version", transfers.driver_version]
#   first_of:
#     - empty > measured > told > packaged
#     - measured > told > nvml-missing
#   explains: ["told > driver-not-loaded", "stub > driver-library-mismatch/stub-told"]
#   remedies: [reboot-or-reload-driver, remove-driver-libraries, remove-from-library-path, remove-from-image-path, unset-env, upgrade-driver, set-driver-capabilities, configure-container-runtime]
#   since: "0.1"
#   grades:
#     mismatched: >-
#       The loader uses {kind} version {version} here, but the loaded kernel driver has {driver}, so what needs this
#       library fails
#     stub:
#       severity: high
#       text: >-
#         The loader uses a link-time stub of the CUDA toolkit as {kind} ({path}, found by {found_by|default}): programs
#         fail with error 34 (stub library). Stubs are only for linking (-L, LIBRARY_PATH), not for running
#     older-compat: >-
#       The loader uses the compatibility library {path} ({version}) instead of the driver's own libcuda, but the driver
#       ({driver}) is newer: compatibility libraries only work with older drivers
#     in-image:
#       severity: high
#       remedies: [remove-driver-libraries]
#       text: >-
#         {kind}[ {version}] is part of this image[{layer}]. It matches only hosts with the driver that it comes from; on
#         others, CUDA or NVML fail to start. The container toolkit mounts the host's own
#     said:
#       confidence: confirmed
#       text: "{words}"
#     packaged:
#       remedies: [reboot-or-reload-driver]
#       text: >-
#         The installed driver libraries are version {packaged}, but the loaded kernel driver is {driver}: the driver was
#         updated and its kernel module was not reloaded
package gpudoctor.rules.driver_library_mismatch

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# libraries are those files of the driver that could be loaded: real ones, and
# not those of WSL, which stand for the Windows driver and have its numbers.
libraries contains l if {
	some l in input.libraries.files
	kinds[l.kind]
	l.path != ""
	not l.empty
	not startswith(l.path, "/usr/lib/wsl/")
}

# kinds are the libraries that belong to the driver, not to a toolkit, and how severe another version than the kernel
# driver's is. Without NVML NCCL does not start; without the compiler only some programs fail.
kinds := {"libcuda": "critical", "libnvidia-ml": "critical", "libnvidia-ptxjitcompiler": "medium"}

# wrong are the files that a program here must not load, each with what its finding says beyond the file.
wrong[l] := {
	"id": "stub", "grade": "stub",
	"confidence": {true: "confirmed", false: "likely"}[count(cuda_answers(["STUB_LIBRARY"])) > 0],
	"evidence": cuda_answers(["STUB_LIBRARY"]),
	"remedies": way_out(l),
} if {
	some l in libraries
	l.stub
	l.loads
}

# A compatibility library serves drivers that are older than itself. Before a newer driver's own library it fails, or
# takes features away. In an image, LD_LIBRARY_PATH comes before the library that the target's driver brings along, and
# the loader's cache does not.
wrong[l] := object.union(compat_grade, {
	"grade": "older-compat",
	"about": {"driver": driver.version},
	"evidence": array.concat([driver.evidence], cuda_answers(refusals)),
	"remedies": way_out(l),
}) if {
	some l in libraries
	l.compat
	l.loads
	surroundings.version(l.version) < surroundings.version(driver.version)
	not l.stub
	not answered(l.kind)
	before_the_driver(l)
}

before_the_driver(_) if not surroundings.image
before_the_driver(l) if l.found_by == "ld_library_path"

wrong[l] := {
	"id": "measured", "grade": "mismatched", "about": {"driver": kernel_driver}, "severity": kinds[l.kind],
	"confidence": {true: "confirmed", false: "likely"}[l.kind in object.keys(said)],
	"evidence": array.concat([driver.evidence], [answer | answer := said[l.kind].evidence]),
	"remedies": {true: ["remove-driver-libraries"], false: ["reboot-or-reload-driver"]}[l in of_image],
} if {
	some l in real
	l.loads
	l.version != kernel_driver
	not surroundings.image
	not answered(l.kind)
}

of_image := {l | some l in libraries; facts.in_container; not l.mounted}

# Driver libraries in an image shadow those that the host mounts, or are next to them, and match only one driver
# version. What is in a folder that container platforms mount as a whole (Google's device plugin, Apptainer, the driver
# container of the GPU operator) does not belong to the image.
wrong[l] := {"grade": "in-image", "about": {"layer": image_files.layer(l)}} if {
	some l in in_image
	not l.mounted
	not strings.any_prefix_match(l.path, [
		"/usr/local/nvidia/", "/.singularity.d/", "/run/nvidia/", "/run/opengl-driver/", "/host/",
	])
}

findings contains object.union(w, {
	"subject": l.path,
	"about": object.union(l, object.get(w, "about", {})),
	"evidence": array.concat([image_files.evidence(l)], object.get(w, "evidence", [])),
	"params": object.union(
		{"library": l.path, "folder": folder(l.path), "kept": kept},
		{"variable": "LD_PRELOAD" | l.found_by == "ld_preload"},
	),
}) if some l, w in wrong

# way_out takes the folder that leads to a library off the loader's path, or the variable that names the library. The
# author of an image edits its ENV, and cannot take a folder of the system off the path.
way_out(l) := ["unset-env"] if {
	l.found_by == "ld_preload"
} else := ["remove-from-library-path"] if {
	not surroundings.image
} else := {true: ["remove-driver-libraries"], false: ["remove-from-image-path"]}[l.found_by == "default_path"]

# kept are the folders of LD_LIBRARY_PATH that remain: none where one of them could not be typed as it is.
kept := [f |
	some v in input.env.variables
	v.name == "LD_LIBRARY_PATH"
	regex.match(`^(:|/[A-Za-z0-9._+/-]*(:|$))*$`, v.value)
	not contains(v.value, "..")
	in_the_way := {folder(l.path) | some l, w in wrong; w.grade in {"stub", "older-compat"}}
	some f in split(v.value, ":")
	f != ""
	not trim_right(f, "/") in in_the_way
]

folder(path) := regex.replace(path, `/[^/]*$`, "")

# said is what the libraries themselves answer, with what helps where no file is known to be at fault.
said.libcuda := {"evidence": cuda_answers([name])[0], "words": words, "remedies": remedies} if {
	some [name, words, remedies] in [
		["SYSTEM_DRIVER_MISMATCH", "CUDA says that its version is not that of the kernel driver", ["reboot-or-reload-driver"]],
		["STUB_LIBRARY", "The loaded CUDA library is a link-time stub of the toolkit", ["remove-from-library-path"]],
		[
			"COMPAT_NOT_SUPPORTED_ON_DEVICE",
			"CUDA does not support its compatibility library on this GPU (error 804): only data center GPUs can use it",
			["remove-from-library-path", "upgrade-driver"],
		],
	]
}

said["libnvidia-ml"] := {
	"evidence": {"fact": "gpus.nvml_error", "value": input.gpus.nvml_error, "source": "nvmlInit"},
	"words": "NVML says that its version is not that of the kernel driver",
	"remedies": ["reboot-or-reload-driver"],
} if endswith(input.gpus.nvml_error, "LIB_RM_VERSION_MISMATCH")

# cuda_answers is CUDA's answer to the probe, if it is one of these.
cuda_answers(names) := [{"fact": "transfers.error_name", "value": answer, "source": "cuInit"} |
	some name in names
	input.transfers.error_code == driver_errors.code[name]
	answer := object.get(input.transfers, "error_name", input.transfers.error_code)
]

refusals := ["SYSTEM_DRIVER_MISMATCH", "COMPAT_NOT_SUPPORTED_ON_DEVICE"]

compat_grade := {"severity": "critical", "confidence": "confirmed"} if {
	count(cuda_answers(refusals)) > 0
} else := {"severity": "high"} if {
	surroundings.image
} else := {"severity": "medium"}

findings contains {
	"id": "measured",
	"grade": "said",
	"subject": "driver",
	"about": {"words": [s.words | some s in unplaced]},
	"evidence": [s.evidence | some s in unplaced],
	"params": {"folders": sort({folder(l.path) | some l in libraries; l.compat; l.loads})},
	"remedies": unplaced[0].remedies,
} if unplaced := [s | some kind, s in said; not kind in {l.kind | some l, _ in wrong}]

# answered is true of a library that worked when it was called: the program then did not use the loader's choice.
answered("libcuda") if {
	input.transfers.outcome == "ok"
	count(surroundings.offered) > 0
}

answered("libnvidia-ml") if input.gpus.nvml == "ok"

# packaged are the packages that contain libcuda and NVML, by driver version, without an
# epoch; apt's history also lists them.
packaged[version] contains p if {
	some p in input.software
	regex.match(`^(?:libnvidia-compute|libnvidia-ml|libcuda|nvidia-driver-cuda-libs|nvidia-driver-libs|libcuda1|nvidia-utils|nvidia-smi)(?:-|\d|$)`, p.name)
	version := regex.find_n(`^\d{3}\.\d+(?:\.\d+)?`, regex.replace(p.version, `^\d+:`, ""), 1)[0]
}

findings contains {
	"id": "packaged",
	"grade": "packaged",
	"subject": "driver",
	"about": {"packaged": object.keys(packaged), "driver": kernel_driver},
	"severity": {true: "critical", false: "medium"}[count(logs.complaints) > 0],
	"evidence": array.concat([library_versions.package_evidence(p) | some list in packaged; some p in list], [driver.evidence]),
} if {
	count(real) == 0
	kernel_driver != ""
	count(packaged) > 0
	not kernel_driver in object.keys(packaged)
}

kernel_driver := input.gpus.driver.kernel_version

# driver is the one that the libraries have to serve: the target's, where an image is judged for one, else the kernel's.
driver := {"version": input.target.driver, "evidence": image_files.of_target("driver", input.target.driver)} if {
	surroundings.image
} else := {
	"version": kernel_driver,
	"evidence": {"fact": "gpus.driver.kernel_version", "value": kernel_driver, "source": "/proc/driver/nvidia/version"},
}

# real are neither stubs nor compatibility libraries and have version numbers like
# drivers: 580.159.04.
real contains l if {
	some l in libraries
	not l.stub
	not l.compat
	regex.match(`^[0-9]{3}\.[0-9]+(\.[0-9]+)?$`, l.version)
}

# at_home is true of a library of the driver that is loaded here, outside of a
# container: who judges a whole machine for the profile image looks at its own.
at_home(l) if {
	input.container.inside == false
	l.version == kernel_driver
}

in_image contains l if {
	surroundings.image
	some l in real
	not at_home(l)
}

# An image that is judged itself may also hold a copy that was renamed, of which nothing states a version.
in_image contains l if {
	input.profile == "image"
	some l in libraries
	not l.stub
	not l.compat
	not l.version
	not input.container.inside == false
}

asks contains "gpus.driver.kernel_version" if {
	count(real) > 0
	not surroundings.image
}

asks contains "container.inside" if {
	count(real) > 0
	not kernel_driver
	not input.image
}

not_applicable contains "no NVIDIA driver library here" if {
	input.libraries
	count(libraries) == 0
}

not_applicable contains "no NVIDIA GPU here" if {
	surroundings.no_nvidia
	not surroundings.image
}
