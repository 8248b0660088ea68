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
#     - measured > told > packaged
#     - measured > told > nvml-missing
#   explains: ["told > driver-not-loaded", "stub > driver-library-mismatch/stub-told"]
#   remedies: [reboot-or-reload-driver, remove-driver-libraries, remove-from-library-path, remove-from-image-path, unset-env, upgrade-driver, set-driver-capabilities, configure-container-runtime]
#   since: "0.1"
package gpudoctor.rules.driver_library_mismatch

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# said are the libraries' own words for a mismatch.
said.libcuda := cuda_answer if input.transfers.error_code == driver_errors.code.SYSTEM_DRIVER_MISMATCH

said["libnvidia-ml"] := {"fact": "gpus.nvml_error", "value": input.gpus.nvml_error, "source": "nvmlInit"} if {
	endswith(input.gpus.nvml_error, "LIB_RM_VERSION_MISMATCH")
}

cuda_answer := {
	"fact": "transfers.error_name",
	"value": object.get(input.transfers, "error_name", input.transfers.error_code),
	"source": "cuInit",
}

kernel_evidence := {"fact": "gpus.driver.kernel_version", "value": kernel_driver, "source": "/proc/driver/nvidia/version"}

# A library of another version than the kernel's module.
findings contains finding(l, [kind.severity, confidence_of(l.kind)], message, {
	"id": "measured",
	"evidence": array.concat([evidence(l), kernel_evidence], [answer | answer := said[l.kind]]),
	"remedies": [origin(l)[1]],
}) if {
	not surroundings.image
	some l in mismatched
	not answered(l.kind)
	kind := kinds[l.kind]
	message := sprintf("The loader uses %s version %s here, but the loaded kernel driver has %s: %s%s", [
		l.kind, l.version,
		kernel_driver, kind.refusal, origin(l)[0],
	])
}

# origin says where a library of another version is from, and what helps.
origin(l) := [". It is part of the image: the driver's libraries must come from the host", "remove-driver-libraries"] if {
	facts.in_container
	not l.mounted
} else := [". The driver was updated without a reboot", "reboot-or-reload-driver"] if {
	surroundings.version(l.version) > surroundings.version(kernel_driver)
} else := ["", "reboot-or-reload-driver"]

confidence_of(kind) := "confirmed" if {
	said[kind]
} else := "likely"

# answered is true of a library that worked when it was called: the program then did not use the loader's choice.
answered("libcuda") if {
	input.transfers.outcome == "ok"
	count(surroundings.offered) > 0
}

answered("libnvidia-ml") if input.gpus.nvml == "ok"

# The libraries say it themselves, and which file is at fault is not known.
findings contains {
	"id": "measured",
	"subject": "driver",
	"message": sprintf("%s says that its version is not that of the kernel driver. %s", [facts.list(object.keys(unplaced)), kernel_words]),
	"confidence": "confirmed",
	"evidence": [answer | some answer in unplaced],
	"remedies": ["reboot-or-reload-driver"],
} if {
	count(unplaced) > 0
}

unplaced[kind] := answer if {
	some kind, answer in said
	not kind in ({l.kind | some l in mismatched} | {l.kind | some l in older_compat})
}

default kernel_words := "The kernel driver version is not known"

kernel_words := sprintf("The kernel driver is version %s", [kernel_driver]) if kernel_driver != ""

# packaged are the packages that contain libcuda and NVML, by driver version, without an
# epoch; apt's history also lists them.
packaged[version] contains p if {
	some p in input.software
	regex.match(`^(?:libnvidia-compute|libnvidia-ml|libcuda|nvidia-driver-cuda-libs|nvidia-driver-libs|libcuda1|nvidia-utils|nvidia-smi)(?:-|\d|$)`, p.name)
	version := regex.find_n(`^\d{3}\.\d+(?:\.\d+)?`, regex.replace(p.version, `^\d+:`, ""), 1)[0]
}

findings contains {
	"id": "packaged",
	"subject": "driver",
	"message": sprintf("The installed driver libraries are version %s, but the loaded kernel driver is %s: the driver was updated and its kernel module was not reloaded", [facts.list(object.keys(packaged)), kernel_driver]),
	"severity": package_severity,
	"confidence": "likely",
	"evidence": array.concat(
		[{"fact": sprintf("software[%s]", [p.name]), "value": p.version, "source": logs.at(p)} | some _, list in packaged; some p in list],
		[kernel_evidence],
	),
	"remedies": ["reboot-or-reload-driver"],
} if {
	count(real) == 0
	kernel_driver != ""
	count(packaged) > 0
	not kernel_driver in object.keys(packaged)
}

default package_severity := "medium"

package_severity := "critical" if logs.failed

# CUDA says that it is a stub, and which file that is, is not known.
findings contains {
	"id": "stub-told",
	"subject": "driver",
	"message": "The loaded CUDA library is a link-time stub of the toolkit",
	"confidence": "confirmed",
	"evidence": [cuda_answer],
	"remedies": ["remove-from-library-path"],
} if {
	input.transfers.error_code == driver_errors.code.STUB_LIBRARY
	count(stubs) == 0
}

# Stubs in the way of the driver's library.
findings contains finding(l, ["high", stub_confidence], message, {
	"id": "stub",
	"evidence": array.concat([evidence(l)], [cuda_answer | stub_confidence == "confirmed"]),
	"remedies": way_out(l),
	"params": led_by(l),
}) if {
	some l in stubs
	message := sprintf("The loader uses a link-time stub of the CUDA toolkit as %s%s: programs fail with error 34 (stub library). Stubs are only for linking (-L, LIBRARY_PATH), not for running", [
		l.kind,
		object.get(found_remarks, object.get(l, "found_by", ""), ""),
	])
}

default stub_confidence := "likely"

stub_confidence := "confirmed" if input.transfers.error_code == driver_errors.code.STUB_LIBRARY

found_remarks := {
	"ld_library_path": " (from LD_LIBRARY_PATH)",
	"ld_cache": " (from the loader's cache, ldconfig)",
	"ld_preload": " (from LD_PRELOAD)",
}

# A compatibility library serves drivers that are older than itself. Before a
# newer driver's own library it fails, or takes features away.
findings contains finding(l, compat_grade, message, {
	"evidence": array.concat([evidence(l), kernel_evidence], [cuda_answer | compat_refused]),
	"remedies": way_out(l),
	"params": led_by(l),
}) if {
	not surroundings.image
	some l in older_compat
	not answered(l.kind)
	message := sprintf("The loader uses the compatibility library %s (%s) instead of the driver's own libcuda, but the kernel driver (%s) is newer: compatibility libraries only work with older drivers", [l.path, l.version, kernel_driver])
}

findings contains finding(l, ["high", "likely"], message, {
	"evidence": [evidence(l), image_files.of_target("driver", input.target.driver)],
	"remedies": way_out(l),
	"params": led_by(l),
}) if {
	surroundings.image
	some l in older_compat
	l.found_by == "ld_library_path"
	message := sprintf("LD_LIBRARY_PATH leads to the compatibility library %s (%s) before the driver's own libcuda, but the target's driver (%s) is newer: compatibility libraries only work with older drivers, and CUDA fails with error 803", [l.path, l.version, input.target.driver])
}

compat_refused if input.transfers.error_code in {driver_errors.code.SYSTEM_DRIVER_MISMATCH, driver_errors.code.COMPAT_NOT_SUPPORTED_ON_DEVICE}

default compat_grade := ["medium", "likely"]

compat_grade := ["critical", "confirmed"] if compat_refused

# The GPU is of a kind that compatibility libraries do not serve (GeForce).
findings contains {
	"subject": "libcuda",
	"message": "CUDA does not support its compatibility library on this GPU (error 804): only data center GPUs, and some RTX workstation GPUs, can use it",
	"confidence": "confirmed",
	"evidence": array.concat([cuda_answer], [evidence(l) | some l in loaded_compat]),
	"remedies": ["remove-from-library-path", "upgrade-driver"],
	"params": {"folders": sort({folder(l.path) | some l in loaded_compat})},
} if {
	input.transfers.error_code == driver_errors.code.COMPAT_NOT_SUPPORTED_ON_DEVICE
	count(older_compat) == 0
}

# Driver libraries in an image shadow those that the host mounts, or are next to them, and
# match only one driver version.
findings contains finding(l, ["high", "likely"], message, {}) if {
	some l in in_image
	baked(l)
	message := sprintf("%s is part of this image%s. It matches only hosts with the driver that it comes from; on others, CUDA or NVML fail to start. The container toolkit mounts the host's own", [
		trim_space(sprintf("%s %s", [l.kind, object.get(l, "version", "")])), image_files.layer(l),
	])
}

in_image contains l if {
	surroundings.image
	some l in real
	not at_home(l)
}

# Only an image that is judged itself may take files of which nothing states a version for its own.
in_image contains l if {
	input.profile == "image"
	some l in nameless
	not input.container.inside == false
}

# Where it happens to fit this machine's driver it is worth knowing only.
findings contains finding(l, ["info", "likely"], message, {}) if {
	not surroundings.image
	facts.in_container
	input.container.runtime in {"docker", "podman", "kubernetes", "containerd"}
	some l in real
	baked(l)
	l.version == kernel_driver
	message := sprintf("%s %s is part of this image and matches this machine's driver, but no other: after the next driver update, or on another machine, CUDA or NVML fail to start", [l.kind, l.version])
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

# The files of the NVIDIA driver's libraries that programs here could load: real libraries, link-time stubs of
# the toolkit, and compatibility libraries, and which of them belong to an image.

kernel_driver := input.gpus.driver.kernel_version

# kinds are the libraries that belong to the driver, not to a toolkit, and what another version than the kernel driver's
# does to each. Without NVML NCCL does not start; without the compiler only some programs fail.
kinds := {
	"libcuda": {"severity": "critical", "refusal": "CUDA fails to start (error 803)"},
	"libnvidia-ml": {"severity": "critical", "refusal": "NVML fails to start (driver/library version mismatch)"},
	"libnvidia-ptxjitcompiler": {"severity": "medium", "refusal": "run-time compilation of kernels may fail (errors 221 and 222)"},
}

# libraries are those files of the driver that could be loaded: real ones, and
# not those of WSL, which stand for the Windows driver and have its numbers.
libraries contains l if {
	some l in input.libraries.files
	kinds[l.kind]
	l.path != ""
	not l.empty
	not startswith(l.path, "/usr/lib/wsl/")
}

# real are neither stubs nor compatibility libraries and have version numbers like
# drivers: 580.159.04.
real contains l if {
	some l in libraries
	not l.stub
	not l.compat
	regex.match(`^[0-9]{3}\.[0-9]+(\.[0-9]+)?$`, l.version)
}

# nameless are those of which nothing states a version: a copy that was renamed.
nameless contains l if {
	some l in libraries
	not l.stub
	not l.compat
	not l.version
}

# mismatched are those that the loader takes and that have another version than the kernel's module.
mismatched contains l if {
	some l in real
	l.loads
	l.version != kernel_driver
}

stubs contains l if {
	some l in libraries
	l.stub
	l.loads
}

loaded_compat contains l if {
	some l in libraries
	l.compat
	l.loads
}

older_compat contains l if {
	some l in loaded_compat
	surroundings.version(l.version) < surroundings.version(kernel_driver)
}

# In an image, LD_LIBRARY_PATH comes before the library that the target's driver brings along, and the
# loader's cache does not.
older_compat contains l if {
	surroundings.image
	some l in loaded_compat
	l.found_by == "ld_library_path"
	surroundings.version(l.version) < surroundings.version(input.target.driver)
}

# at_home is true of a library of the driver that is loaded here, outside of a
# container: who judges a whole machine for the profile image looks at its own.
at_home(l) if {
	input.container.inside == false
	l.version == kernel_driver
}

# baked is true of a file that belongs to the image: it is no mount of its own, and not in a folder that container
# platforms mount as a whole (Google's device plugin, Apptainer, the driver container of the GPU operator).
baked(l) if {
	not l.mounted
	not platform_folder(l.path)
}

platform_folder(path) if {
	some folder in ["/usr/local/nvidia/", "/.singularity.d/", "/run/nvidia/", "/run/opengl-driver/", "/host/"]
	startswith(path, folder)
}

evidence(l) := image_files.evidence(l)

# way_out takes the folder that leads to a library off the loader's path, or the variable that names the library. The
# author of an image edits its ENV, and cannot take a folder of the system off the path.
way_out(l) := ["unset-env"] if {
	l.found_by == "ld_preload"
} else := ["remove-driver-libraries"] if {
	l.found_by == "default_path"
	surroundings.image
} else := ["remove-from-image-path"] if {
	surroundings.image
} else := ["remove-from-library-path"]

led_by(l) := {"variable": "LD_PRELOAD"} if {
	l.found_by == "ld_preload"
} else := {"folder": folder(l.path), "kept": kept} if {
	surroundings.image
} else := {"folder": folder(l.path)}

# kept are the folders of LD_LIBRARY_PATH that remain: none where one of them could not be typed as it is.
default kept := []

kept := rest if {
	some v in input.env.variables
	v.name == "LD_LIBRARY_PATH"
	every f in split(v.value, ":") {
		regex.match(`^(/[A-Za-z0-9._+/-]*)?$`, f)
		not contains(f, "..")
	}
	rest := [f |
		some f in split(v.value, ":")
		f != ""
		not trim_right(f, "/") in in_the_way
	]
}

# in_the_way are the folders of the files that must not be loaded.
in_the_way := {folder(l.path) | some l in (stubs | older_compat)}

folder(path) := regex.replace(path, `/[^/]*$`, "")

# finding is a finding on a file.
finding(l, grade, message, rest) := object.union(
	{
		"subject": l.path, "severity": grade[0], "confidence": grade[1], "message": message,
		"evidence": [evidence(l)], "params": {"library": l.path}, "remedies": ["remove-driver-libraries"],
	},
	rest,
)
