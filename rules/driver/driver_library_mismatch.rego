# METADATA
# title: The driver's libraries do not match the kernel driver
# description: >-
#   libcuda, libnvidia-ml and the kernel module are parts of one driver and must have the same version. After an update
#   without a reboot, or in an image that contains driver libraries, they differ, and CUDA or NVML fail to start. A
#   link-time stub of the CUDA toolkit, or a compatibility library older than the driver, has the same effect.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
#     description: The purpose of the compatibility libraries, and errors 803 and 804
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: The container toolkit mounts the driver's libraries into the container
# custom:
#   severity: critical
#   confidence: likely
#   needs: [libraries, ["libraries.files[].version", transfers.driver_version]]
#   first_of: ["empty > measured > told", "measured > told > nvml-missing"]
#   explains: ["told > driver-not-loaded", "wsl > gpu-visibility/no-gpu", "stub > driver-library-mismatch/stub-told"]
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
package gpudoctor.rules.driver_library_mismatch

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.surroundings

# libraries are those files of the driver that could be loaded: real ones, and not those of WSL, which stand for the
# Windows driver and have its numbers.
libraries contains l if {
	some l in input.libraries.files
	l.kind in {"libcuda", "libnvidia-ml"}
	l.path != ""
	not l.empty
	not startswith(l.path, "/usr/lib/wsl/")
}

# wrong are the files that a program here must not load, each with what its finding says beyond the file.
wrong[l] := {"id": "stub", "grade": "stub", "evidence": answers_of(l), "remedies": way_out(l)} if {
	some l in libraries
	l.stub
	l.loads
}

# A compatibility library serves drivers that are older than itself. Before a newer driver's own library it fails, or
# takes features away. In an image, LD_LIBRARY_PATH comes before the library that the target's driver brings along, and
# the loader's cache does not.
wrong[l] := object.union(grade, {
	"grade": "older-compat",
	"evidence": array.concat([driver.evidence], answers_of(l)),
	"remedies": way_out(l),
}) if {
	some l in libraries
	l.compat
	l.loads
	surroundings.version(l.version) < surroundings.version(driver.version)
	not l.stub
	not answered(l.kind)
	before_the_driver(l)
	grade := {0: {"severity": "high"}, 1: {"severity": "critical", "confidence": "confirmed"}}[count(answers_of(l))]
}

before_the_driver(_) if not surroundings.image
before_the_driver(l) if l.found_by == "ld_library_path"

wrong[l] := {
	"id": "measured", "grade": "mismatched",
	"confidence": {0: "likely", 1: "confirmed"}[count(answers_of(l))],
	"evidence": array.concat([driver.evidence], answers_of(l)),
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
# container of the GPU operator) does not belong to the image, and a whole machine has its own driver's.
wrong[l] := {"grade": "in-image"} if {
	surroundings.image
	some l in real
	not l.mounted
	not at_home(l)
	not strings.any_prefix_match(l.path, [
		"/usr/local/nvidia/", "/.singularity.d/", "/run/nvidia/", "/run/opengl-driver/", "/host/",
	])
}

at_home(l) if {
	input.container.inside == false
	object.get(l, "version", kernel_driver) == kernel_driver
}

findings contains object.union(w, {
	"subject": l.path,
	"about": object.union(l, {"driver": [driver.version | driver.version], "layer": image_files.layer(l)}),
	"evidence": array.concat([image_files.evidence(l)], object.get(w, "evidence", [])),
	"params": {"library": l.path, "folder": regex.replace(l.path, `/[^/]*$`, "")},
}) if some l, w in wrong

# way_out takes the folder that leads to a library off the loader's path. The author of an image edits its ENV, and
# cannot take a folder of the system off the path.
way_out(l) := ["remove-from-library-path"] if {
	not surroundings.image
} else := {true: ["remove-driver-libraries"], false: ["remove-from-image-path"]}[l.found_by == "default_path"]

# said is what the libraries themselves answer, with what helps where no file is known to be at fault.
said["libcuda"] := object.union(answer, {"evidence": {"fact": "transfers.error_code", "value": code, "source": "cuInit"}}) if {
	code := input.transfers.error_code
	some name, answer in cuda
	driver_errors.code[name] == code
}

cuda := {
	"SYSTEM_DRIVER_MISMATCH": {
		"words": "CUDA says that its version is not that of the kernel driver",
		"remedies": ["reboot-or-reload-driver"],
	},
	"STUB_LIBRARY": {"words": "The loaded CUDA library is a link-time stub of the toolkit", "remedies": ["remove-from-library-path"]},
	"COMPAT_NOT_SUPPORTED_ON_DEVICE": {
		"words": "CUDA does not support its compatibility library on this GPU (error 804): only data center GPUs can use it",
		"remedies": ["remove-from-library-path", "upgrade-driver"],
	},
}

said["libnvidia-ml"] := {
	"evidence": {"fact": "gpus.nvml_error", "value": input.gpus.nvml_error, "source": "nvmlInit"},
	"words": "NVML says that its version is not that of the kernel driver",
	"remedies": ["reboot-or-reload-driver"],
} if endswith(input.gpus.nvml_error, "LIB_RM_VERSION_MISMATCH")

answers_of(l) := [answer | answer := said[l.kind].evidence]

findings contains {
	"id": "measured",
	"grade": "said",
	"subject": "driver",
	"about": {"words": [s.words | some s in unplaced]},
	"evidence": [s.evidence | some s in unplaced],
	"remedies": unplaced[0].remedies,
} if unplaced := [s | some kind, s in said; not kind in {l.kind | some l, _ in wrong}]

# answered is true of a library that worked when it was called: the program then did not use the loader's choice.
answered("libcuda") if {
	input.transfers.outcome == "ok"
	count(surroundings.offered) > 0
}

answered("libnvidia-ml") if input.gpus.nvml == "ok"

kernel_driver := input.gpus.driver.kernel_version

# driver is the one that the libraries have to serve: the target's, where an image is judged for one, else the kernel's.
driver := {"version": input.target.driver, "evidence": image_files.of_target("driver", input.target.driver)} if {
	surroundings.image
} else := {
	"version": kernel_driver,
	"evidence": {"fact": "gpus.driver.kernel_version", "value": kernel_driver, "source": "/proc/driver/nvidia/version"},
}

# real are neither stubs nor compatibility libraries and have version numbers like drivers: 580.159.04. An image may hold
# a copy that was renamed, of which nothing states a version.
real contains l if {
	some l in libraries
	not l.stub
	not l.compat
	like_driver(l)
}

like_driver(l) if regex.match(`^[0-9]{3}\.[0-9]+(\.[0-9]+)?$`, l.version)

like_driver(l) if {
	input.profile == "image"
	not l.version
}

asks contains "gpus.driver.kernel_version" if {
	count(real) > 0
	not surroundings.image
}

not_applicable contains "no NVIDIA driver library here" if {
	input.libraries
	count(libraries) == 0
}

not_applicable contains "no NVIDIA GPU here" if {
	surroundings.no_nvidia
	not surroundings.image
}
