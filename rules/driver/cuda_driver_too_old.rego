# METADATA
# title: The driver is too old for the CUDA runtime
# description: >-
#   A CUDA runtime works with every driver of its own major release or newer (minor version compatibility, since CUDA
#   11). With a driver of an older major release, programs fail with "CUDA driver version is insufficient for CUDA runtime
#   version", unless a compatibility library serves a data center GPU.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
#     description: The minimum driver of each CUDA major release
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
#     description: Compatibility libraries for older drivers
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - libraries.files
#     - [transfers.driver_version, gpus.driver.cuda_version]
#   first_of: [told, built]
#   explains: ["told > cuda-driver-too-old/nvml-older"]
#   remedies: [upgrade-driver, use-older-cuda, reboot-or-reload-driver, remove-from-library-path]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     built: "{what} needs a driver for CUDA {release} ({branch} or newer); the driver here supports CUDA {served}"
package gpudoctor.rules.cuda_driver_too_old

import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.surroundings

# served is the newest CUDA that the driver serves here: what libcuda said to the probe, which takes a compatibility
# library into account, else what NVML says.
served := {"fact": "transfers.driver_version", "value": input.transfers.driver_version, "source": "cuDriverGetVersion"} if {
	surroundings.version(input.transfers.driver_version)
} else := {"fact": "gpus.driver.cuda_version", "value": input.gpus.driver.cuda_version, "source": "nvmlSystemGetCudaDriverVersion_v2"}

# built is what is built for a major release of CUDA: the runtimes that programs here take, which are the one that the
# loader takes and those of Python packages, and packages.
built contains {"subject": l.path, "what": sprintf("The CUDA runtime %s", [l.version]), "major": r.release[0], "evidence": evidence} if {
	some r in image_files.runtimes
	l := r.library
	evidence := [image_files.evidence(l)]
	true in {object.get(l, "loads", false), object.get(l, "found_by", "") == "python"}
}

# An environment with packages of two releases does not show which is used.
built contains {"id": "built", "subject": "driver", "what": "What the packages contain", "major": major, "evidence": evidence} if {
	count(packages) == 1
	some major, ps in packages
	evidence := [library_versions.package_evidence(p) | some p in ps]
}

packages[to_number(found[1])] contains p if {
	some p in input.software
	some found in regex.find_all_string_submatch_n(
		`^(?:nvidia-(?:nccl|cuda-runtime|cublas)-cu|torch \S*\+cu|(?:nvidia-)?cuda-runtime )(\d{2})`,
		sprintf("%s %s", [p.name, p.version]), 1,
	)
}

findings contains object.union(
	{
		"grade": "built",
		"subject": b.subject,
		"about": {"what": b.what, "release": b.major, "branch": image_files.least_branch[b.major], "served": served.value},
		"evidence": array.concat(b.evidence, [served]),
	},
	object.filter(b, ["id"]),
) if {
	some b in built
	b.major > surroundings.version(served.value)[0]
	not served_by_compat(b.major)
}

# served_by_compat is true if the loader uses a compatibility library of that release; a probe that ran has already taken
# it into account.
served_by_compat(major) if max(compat) >= image_files.least_branch[major]

compat := {surroundings.version(l.version)[0] | some l in input.libraries.files; l.kind == "libcuda"; l.compat; l.loads}

not_applicable contains "no CUDA runtime here" if {
	input.libraries
	count(built) == 0
}

not_applicable contains "no NVIDIA GPU here" if surroundings.no_nvidia
