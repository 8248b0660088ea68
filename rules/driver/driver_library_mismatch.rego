# METADATA
# title: The driver's libraries do not match the kernel driver
# description: >-
#   libcuda, libnvidia-ml and the kernel module are parts of one driver and must
#   have the same version. After an update without a reboot, or in an image that
#   contains driver libraries, they differ, and CUDA or NVML fail to start. A
#   link-time stub of the CUDA toolkit on the library path has the same effect,
#   and so does a compatibility library that is older than the driver.
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
#     - ["libraries.files[].version", transfers.driver_version]
#   first_of:
#     - measured > told > packaged
#     - measured > told > nvml-missing
#   explains: ["told > driver-not-loaded", "stub > driver-library-mismatch/stub-told"]
#   remedies: [reboot-or-reload-driver, remove-driver-libraries, remove-from-library-path, remove-from-image-path, unset-env, upgrade-driver, set-driver-capabilities, configure-container-runtime]
#   since: "0.1"
package gpudoctor.rules.driver_library_mismatch

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.driver_libraries
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

kernel_evidence := {"fact": "gpus.driver.kernel_version", "value": driver_libraries.kernel_driver, "source": "/proc/driver/nvidia/version"}

# A library of another version than the kernel's module.
findings contains driver_libraries.finding(l, [kind.severity, confidence_of(l.kind)], message, {
	"id": "measured",
	"evidence": array.concat([driver_libraries.evidence(l), kernel_evidence], [answer | answer := said[l.kind]]),
	"remedies": cure(l),
}) if {
	not surroundings.image
	some l in driver_libraries.mismatched
	not answered(l.kind)
	kind := driver_libraries.kinds[l.kind]
	message := sprintf("The loader uses %s version %s here, but the loaded kernel driver has %s: %s%s", [
		l.kind, l.version,
		driver_libraries.kernel_driver, kind.refusal, origin(l),
	])
}

# A library that is of the image, not of this machine.
origin(l) := ". It is part of the image: the driver's libraries must come from the host" if {
	facts.in_container
	not l.mounted
} else := ". The driver was updated without a reboot" if {
	surroundings.version(l.version) > surroundings.version(driver_libraries.kernel_driver)
} else := ""

cure(l) := ["remove-driver-libraries"] if {
	facts.in_container
	not l.mounted
} else := ["reboot-or-reload-driver"]

confidence_of(kind) := "confirmed" if {
	said[kind]
} else := "likely"

# answered is true of a library that worked when it was called: the program then did not
# use the loader's choice.
answered("libcuda") if {
	input.transfers.outcome == "ok"
	count(surroundings.offered) > 0
}

answered("libnvidia-ml") if input.gpus.nvml == "ok"

# The libraries say it themselves, and which file is at fault is not known.
findings contains {
	"id": "measured",
	"subject": "driver",
	"message": sprintf("%s that the library and the kernel driver have different versions. %s", [unplaced_words, kernel_words]),
	"confidence": "confirmed",
	"evidence": [answer | some answer in unplaced],
	"remedies": ["reboot-or-reload-driver"],
} if {
	count(unplaced) > 0
}

unplaced[kind] := answer if {
	some kind, answer in said
	not kind in ({l.kind | some l in driver_libraries.mismatched} | {l.kind | some l in driver_libraries.older_compat})
}

unplaced_words := "CUDA and NVML report" if {
	count(unplaced) > 1
} else := "CUDA reports" if {
	unplaced.libcuda
} else := "NVML reports"

default kernel_words := "The kernel driver version is not known"

kernel_words := sprintf("The kernel driver is version %s", [driver_libraries.kernel_driver]) if driver_libraries.kernel_driver != ""

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
	"message": sprintf("The installed driver libraries are version %s, but the loaded kernel driver is %s: the driver was updated and its kernel module was not reloaded", [facts.list(object.keys(packaged)), driver_libraries.kernel_driver]),
	"severity": package_severity,
	"confidence": "likely",
	"evidence": array.concat(
		[{"fact": sprintf("software[%s]", [p.name]), "value": p.version, "source": logs.at(p)} | some _, list in packaged; some p in list],
		[kernel_evidence],
	),
	"remedies": ["reboot-or-reload-driver"],
} if {
	count(driver_libraries.real) == 0
	driver_libraries.kernel_driver != ""
	count(packaged) > 0
	not driver_libraries.kernel_driver in object.keys(packaged)
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
	count(driver_libraries.stubs) == 0
}

# Stubs in the way of the driver's library.
findings contains driver_libraries.finding(l, ["high", stub_confidence], message, {
	"id": "stub",
	"evidence": array.concat([driver_libraries.evidence(l)], [cuda_answer | stub_confidence == "confirmed"]),
	"remedies": driver_libraries.way_out(l),
	"params": driver_libraries.led_by(l),
}) if {
	some l in driver_libraries.stubs
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
findings contains driver_libraries.finding(l, compat_grade, message, {
	"evidence": array.concat([driver_libraries.evidence(l), kernel_evidence], [cuda_answer | compat_refused]),
	"remedies": driver_libraries.way_out(l),
	"params": driver_libraries.led_by(l),
}) if {
	not surroundings.image
	some l in driver_libraries.older_compat
	not answered(l.kind)
	message := sprintf("The loader uses the compatibility library %s (%s) instead of the driver's own libcuda, but the kernel driver (%s) is newer: compatibility libraries only work with older drivers", [l.path, l.version, driver_libraries.kernel_driver])
}

findings contains driver_libraries.finding(l, ["high", "likely"], message, {
	"evidence": [driver_libraries.evidence(l), image_files.of_target("driver", input.target.driver)],
	"remedies": driver_libraries.way_out(l),
	"params": driver_libraries.led_by(l),
}) if {
	surroundings.image
	some l in driver_libraries.older_compat
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
	"evidence": array.concat([cuda_answer], [driver_libraries.evidence(l) | some l in driver_libraries.loaded_compat]),
	"remedies": ["remove-from-library-path", "upgrade-driver"],
	"params": {"folders": sort({driver_libraries.folder(l.path) | some l in driver_libraries.loaded_compat})},
} if {
	input.transfers.error_code == driver_errors.code.COMPAT_NOT_SUPPORTED_ON_DEVICE
	count(driver_libraries.older_compat) == 0
}

# Driver libraries in an image shadow those that the host mounts, or are next to them, and
# match only one driver version.
findings contains driver_libraries.finding(l, ["high", "likely"], message, {}) if {
	surroundings.image
	some l in driver_libraries.real
	driver_libraries.baked(l)
	not driver_libraries.at_home(l)
	message := sprintf("%s %s is part of this image%s. It matches only hosts with driver %s; on others, CUDA or NVML fail to start. The container toolkit mounts the host's own", [
		l.kind, l.version, image_files.layer(l),
		l.version,
	])
}

# Of the same files, those of which nothing states a version: only an image that is judged
# itself may take them for its own.
findings contains driver_libraries.finding(l, ["high", "likely"], message, {}) if {
	input.profile == "image"
	some l in driver_libraries.nameless
	driver_libraries.baked(l)
	not input.container.inside == false
	message := sprintf("A %s is part of this image%s. It matches only hosts with the driver that it comes from; on others, CUDA or NVML fail to start. The container toolkit mounts the host's own", [l.kind, image_files.layer(l)])
}

# Where it happens to fit this machine's driver it is worth knowing only.
findings contains driver_libraries.finding(l, ["info", "likely"], message, {}) if {
	not surroundings.image
	facts.in_container
	input.container.runtime in {"docker", "podman", "kubernetes", "containerd"}
	some l in driver_libraries.real
	driver_libraries.baked(l)
	l.version == driver_libraries.kernel_driver
	message := sprintf("%s %s is part of this image and matches this machine's driver, but no other: after the next driver update, or on another machine, CUDA or NVML fail to start", [l.kind, l.version])
}

missing contains {"fact": "libraries", "words": "gpudoctor did not look for libraries"} if not input.libraries

missing contains {"fact": "gpus.driver.kernel_version", "words": "the loaded kernel driver is not known"} if {
	count(driver_libraries.real) > 0
	not driver_libraries.kernel_driver
	not surroundings.image
	not surroundings.no_nvidia
}

missing contains {"fact": "container.inside", "words": "it is not known whether these files belong to an image"} if {
	count(driver_libraries.real) > 0
	not driver_libraries.kernel_driver
	not surroundings.no_nvidia
	not inside_known
	not input.image
}

inside_known if is_boolean(input.container.inside)

not_applicable contains "no NVIDIA driver library here" if {
	input.libraries
	count(driver_libraries.libraries) == 0
}

not_applicable contains "no NVIDIA GPU here" if {
	surroundings.no_nvidia
	not surroundings.image
}
