# METADATA
# title: The driver is too old for the CUDA runtime
# description: >-
#   A CUDA runtime works with every driver of its own major release or newer (minor version compatibility, since CUDA
#   11). With older drivers it works only with a compatibility library on a data center GPU. With a driver of an older
#   major release, programs fail with "CUDA driver version is insufficient for CUDA runtime version".
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
#   first_of: [told, built]
#   explains: ["told > cuda-driver-too-old/nvml-older"]
#   remedies: [upgrade-driver, use-older-cuda, reboot-or-reload-driver, remove-from-library-path]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     built: >-
#       {what} needs a driver for CUDA {release} ({branch} or newer); the driver here {served}[. A
#       compatibility library is installed ({compat}), but the loader does not use it: on a data center GPU, put its
#       directory first in LD_LIBRARY_PATH]
#     minor:
#       severity: info
#       text: >-
#         {what} is newer than the driver (CUDA {served}), with the same major release: it works, except for run-time
#         compilation from newer PTX and features of the newer release
#     told:
#       severity: critical
#       confidence: confirmed
#       text: >-
#         The driver is too old for the program's CUDA version, or cannot be found where the program runs.[ The driver
#         supports CUDA {served}.]
#     compat:
#       severity: critical
#       text: >-
#         The image or library path provides a libcuda that is newer than the kernel driver, and this GPU cannot use it
#         (error 804): only data center GPUs can. Upgrade the driver on the host or, if that was done already, reload its
#         module.[ The driver supports CUDA {served}.]
package gpudoctor.rules.cuda_driver_too_old

import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.thresholds

# served is the newest CUDA that the driver serves here: what libcuda said to the probe, which takes a compatibility
# library into account, else what NVML says, else what follows from the driver's branch.
served := {"version": surroundings.version(text), "text": text, "fact": "transfers.driver_version", "source": "cuDriverGetVersion"} if {
	text := input.transfers.driver_version
	surroundings.version(text)
} else := {"version": surroundings.version(text), "text": text, "fact": "gpus.driver.cuda_version", "source": "nvmlSystemGetCudaDriverVersion_v2"} if {
	text := input.gpus.driver.cuda_version
	surroundings.version(text)
} else := {"version": [major], "text": sprintf("%d", [major]), "fact": "gpus.driver.kernel_version", "source": "/proc/driver/nvidia/version"} if {
	major := image_files.cuda_of(input.gpus.driver.kernel_version)
}

served_evidence := {"fact": served.fact, "value": served.text, "source": served.source}

# runtimes are the CUDA runtimes that programs here take: the one that the loader takes, and those of Python packages.
runtimes := {r.library | some r in image_files.runtimes; in_use(r.library)}

in_use(l) if l.loads
in_use(l) if l.found_by == "python"

# needs are what is built for a major release of CUDA: the runtimes and NCCL that programs here load, with their file as
# subject, and packages. An environment with packages of two releases does not show which is used.
needs contains {"subject": l.path, "what": sprintf("The CUDA runtime %s", [l.version]), "major": surroundings.version(l.version)[0], "evidence": [image_files.evidence(l)]} if {
	some l in runtimes
}

needs contains {"subject": l.path, "what": sprintf("NCCL %s", [l.version]), "major": major, "evidence": [image_files.evidence(l)]} if {
	some l in surroundings.nccl
	major := to_number(regex.find_all_string_submatch_n(`\+cuda([0-9]{1,3})`, l.version, 1)[0][1])
	not major in {surroundings.version(r.version)[0] | some r in runtimes}
}

needs contains {"id": "built", "subject": "driver", "what": "What the packages contain", "major": major, "evidence": [library_versions.package_evidence(p) | some p in packages]} if {
	count(runtime_packages) == 1
	some major, packages in runtime_packages
}

findings contains object.union(
	{
		"grade": "built",
		"subject": n.subject,
		"about": {"what": n.what, "release": n.major, "branch": image_files.least_branch[n.major], "served": sprintf("supports CUDA %s", [served.text]), "compat": {l.path | some l in compat; not l.loads}},
		"evidence": array.concat(n.evidence, [served_evidence]),
		"params": needing(n.major),
	},
	object.filter(n, ["id"]),
) if {
	some n in needs
	n.major > served.version[0]
	image_files.least_branch[n.major]
	not served_by_compat(n.major)
}

needing(major) := {"driver": image_files.least_branch[major], "cuda": major}

# served_by_compat is true if the loader uses a compatibility library of that release; a
# probe that ran has already taken it into account.
served_by_compat(major) if {
	max({surroundings.version(l.version)[0] | some l in compat; l.loads}) >= image_files.least_branch[major]
}

compat := {l | some l in input.libraries.files; l.kind == "libcuda"; l.compat}

findings contains {
	"grade": "minor",
	"subject": l.path,
	"about": {"what": sprintf("The CUDA runtime %s", [l.version]), "served": served.text},
	"remedies": [],
	"evidence": [image_files.evidence(l), served_evidence],
	"params": needing(runtime[0]),
} if {
	some l in runtimes
	runtime := surroundings.version(l.version)
	runtime[0] == served.version[0]
	runtime[1] > served.version[1]
	image_files.least_branch[runtime[0]]
}

# What programs say in a log: CUDA's errors 35, 36 and 222, what PyTorch and the container runtime find before CUDA
# starts, and NCCL's word that its calls cannot be captured in a graph, which has other causes with a newer driver.
claims := logs.messages({
	"torch-driver-too-old", "container-cuda-requirement", "cuda-insufficient-driver", "nccl-cuda-driver-too-old", "cuda-unsupported-ptx",
	"nccl-cuda-unsupported-ptx", "cuda-needs-newer-driver", "ngc-driver-too-old", "libcuda-older-than-program",
}) | {m |
	some m in logs.messages({"nccl-cuda-graphs-unsupported"})
	surroundings.version(input.gpus.driver.version)[0] < thresholds.cuda_graphs_driver
}

findings contains object.union(claimed, {
	"id": "told", "subject": "driver",
	"about": {"served": [served.text | served]},
	"params": object.union_n([needing(max(wanted)) | count(wanted) > 0]),
}) if {
	some claimed in [
		{"grade": "told", "messages": claims, "confidence": claims_confidence},
		# 804: libcuda is newer than the kernel's driver, and the GPU cannot use a compatibility library.
		{"grade": "compat", "messages": logs.messages({"cuda-compat-unsupported", "nccl-cuda-compat-unsupported"})},
	]
	count(claimed.messages) > 0
}

# CUDA says the same where it finds no libcuda at all, as in a container that was started without GPUs.
claims_confidence := "possible" if {
	count(launches.without_gpus) > 0
	{m.id | some m in claims} == {"cuda-insufficient-driver"}
} else := "confirmed"

# wanted are the releases of CUDA that a message names, or that the packages are built for.
wanted := {surroundings.version(m.fields.wanted)[0] | some m in claims} | object.keys(runtime_packages)

# runtime_packages are the packages of CUDA's runtime, and those that are built for one, by its major release.
runtime_packages[major] contains p if {
	some p in input.software
	p.name in {"cuda-runtime", "nvidia-cuda-runtime"}
	major := surroundings.version(p.version)[0]
}

runtime_packages[to_number(found[1])] contains p if {
	some p in input.software
	some [form, text] in [[`^nvidia-(?:nccl|cuda-runtime|cublas)-cu(\d{2})$`, p.name], [`^torch \S*\+cu(\d{2})\d`, sprintf("%s %s", [p.name, p.version])]]
	some found in regex.find_all_string_submatch_n(form, text, 1)
}

# A package of NCCL that is built for a CUDA which needs a newer driver: NCCL includes the runtime that it was built with,
# and none of it runs on an older driver. Without a failure a compatibility library may serve it.
findings contains {
	"id": "built",
	"grade": "built",
	"subject": "driver",
	"about": {"what": sprintf("NCCL %s", [p.version]), "release": release, "branch": branch, "served": sprintf("is %s", [input.gpus.driver.version])},
	"severity": {true: "critical", false: "low"}[count(logs.complaints) > 0],
	"evidence": [
		library_versions.package_evidence(p),
		{"fact": "gpus.driver.version", "value": input.gpus.driver.version, "source": "nvidia-smi"},
	],
	"params": {"driver": branch, "cuda": to_number(split(release, ".")[0])},
} if {
	some p in input.software
	p.name in {"libnccl2", "libnccl-dev", "libnccl", "nccl"}
	release := regex.find_all_string_submatch_n(`\+cuda([0-9]{1,2}\.[0-9])$`, p.version, 1)[0][1]
	branch := object.get(thresholds.old_cuda_drivers, release, object.get(image_files.least_branch, to_number(split(release, ".")[0]), null))
	branch > surroundings.version(input.gpus.driver.version)[0]
}

missing contains {"fact": "gpus.driver", "words": "the CUDA version that the driver supports is not known"} if {
	count(runtimes) > 0
	not served
	not surroundings.no_nvidia
}

not_applicable contains "no CUDA runtime and no NCCL here" if {
	input.libraries
	count(runtimes) == 0
	count(surroundings.nccl) == 0
}

not_applicable contains "no NVIDIA GPU here" if surroundings.no_nvidia
