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
#   first_of: [told, compat-told, built]
#   explains: ["told > cuda-driver-too-old/nvml-older"]
#   remedies: [upgrade-driver, use-older-cuda, reboot-or-reload-driver, remove-from-library-path]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.cuda_driver_too_old

import data.gpudoctor.lib.launches
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
	branch := surroundings.version(input.gpus.driver.kernel_version)[0]
	major := max([m | some m, least in least_branch; branch >= least])
}

served_evidence := {"fact": served.fact, "value": served.text, "source": served.source}

# least_branch is the least driver branch of each major release of CUDA.
least_branch[to_number(major)] := branch if some major, branch in thresholds.cuda_drivers

# needing are the params for a release of CUDA.
needing(major) := {"driver": least_branch[major], "cuda": major}

# runtimes are the CUDA runtimes that programs here take: the one that the loader takes, and those of Python packages.
runtimes contains l if {
	some l in input.libraries.files
	l.kind == "libcudart"
	l.path != ""
	in_use(l)
	count(surroundings.version(l.version)) > 1
}

in_use(l) if l.loads

in_use(l) if l.found_by == "python"

# wanting are the libraries that need a newer major release than the driver serves.
wanting contains {"library": l, "major": major, "words": words} if {
	some l in runtimes
	major := surroundings.version(l.version)[0]
	words := sprintf("The CUDA runtime %s needs a driver for CUDA %d (%d or newer); the driver here supports CUDA %s%s", [
		l.version,
		major, least_branch[major],
		served.text, compat_remark,
	])
}

# NCCL that was built for a newer major release fails in the same way.
wanting contains {"library": l, "major": major, "words": words} if {
	some l in surroundings.nccl
	some found in regex.find_all_string_submatch_n(`\+cuda([0-9]{1,3})`, l.version, 1)
	major := to_number(found[1])
	not major in {surroundings.version(r.version)[0] | some r in runtimes}
	words := sprintf("NCCL %s is built for CUDA %d; the driver here supports CUDA %s", [l.version, major, served.text])
}

findings contains {
	"subject": w.library.path,
	"message": w.words,
	"evidence": [library_evidence(w.library), served_evidence],
	"params": needing(w.major),
} if {
	some w in wanting
	w.major > served.version[0]
	least_branch[w.major]
	not served_by_compat(w.major)
}

library_evidence(l) := {"fact": sprintf("libraries.files[%s].version", [l.path]), "value": l.version, "source": l.path}

# served_by_compat is true if the loader uses a compatibility library of that release; a
# probe that ran has already taken it into account.
served_by_compat(major) if {
	max({surroundings.version(l.version)[0] | some l in compat; l.loads}) >= least_branch[major]
}

compat contains l if {
	some l in input.libraries.files
	l.kind == "libcuda"
	l.compat
}

default compat_remark := ""

compat_remark := sprintf(". A compatibility library is installed (%s), but the loader does not use it: on a data center GPU, put its directory first in LD_LIBRARY_PATH", [path]) if {
	path := sort([l.path | some l in compat; not l.loads])[0]
}

# A newer minor release works, with thresholds.
findings contains {
	"subject": l.path,
	"message": sprintf("The CUDA runtime %s is newer than the driver (CUDA %s), with the same major release: it works, except for run-time compilation from newer PTX and features of the newer release", [l.version, served.text]),
	"severity": "info",
	"remedies": [],
	"evidence": [library_evidence(l), served_evidence],
	"params": needing(runtime[0]),
} if {
	some l in runtimes
	runtime := surroundings.version(l.version)
	runtime[0] == served.version[0]
	runtime[1] > served.version[1]
	least_branch[runtime[0]]
}

# NCCL says that its calls cannot be captured in a graph with an older driver.
findings contains {
	"subject": "driver",
	"message": sprintf("NCCL's calls cannot be captured in a CUDA graph with driver %s: this needs %d or newer (%s)", [input.gpus.driver.version, thresholds.cuda_graphs_driver, m.text]),
	"severity": "critical",
	"confidence": "confirmed",
	"messages": [m],
	"params": {"driver": thresholds.cuda_graphs_driver, "cuda": 11},
} if {
	m := logs.first(logs.by_id["nccl-cuda-graphs-unsupported"])
	surroundings.version(input.gpus.driver.version)[0] < thresholds.cuda_graphs_driver
}

# What programs say in a log: CUDA's errors 35, 36 and 222, and what PyTorch and the
# container runtime find before CUDA starts.
claims := logs.messages({
	"torch-driver-too-old", "container-cuda-requirement", "cuda-insufficient-driver", "nccl-cuda-driver-too-old", "cuda-unsupported-ptx",
	"nccl-cuda-unsupported-ptx", "cuda-needs-newer-driver", "ngc-driver-too-old", "libcuda-older-than-program",
})

findings contains {
	"id": "told",
	"subject": "driver",
	"message": sprintf("The driver is too old for the program's CUDA version, or cannot be found where the program runs.%s", [serves]),
	"severity": "critical",
	"confidence": claims_confidence,
	"messages": claims,
	"params": wanted_params,
} if {
	count(claims) > 0
}

# CUDA says the same where it finds no libcuda at all, as in a container that was started without GPUs.
claims_confidence := "possible" if {
	count(launches.without_gpus) > 0
	every m in claims {
		m.id == "cuda-insufficient-driver"
	}
} else := "confirmed"

# 804: libcuda is newer than the kernel's driver, and the GPU cannot use a compatibility
# library. An image with a newer CUDA than the host's driver supports causes this.
compat_claims := logs.messages({"cuda-compat-unsupported", "nccl-cuda-compat-unsupported"})

findings contains {
	"id": "compat-told",
	"subject": "driver",
	"message": sprintf("The image or library path provides a libcuda that is newer than the kernel driver, and this GPU cannot use it (error 804): only data center GPUs can. Upgrade the driver on the host or, if that was done already, reload its module.%s", [serves]),
	"severity": "critical",
	"messages": compat_claims,
	"remedies": ["upgrade-driver", "use-older-cuda", "reboot-or-reload-driver", "remove-from-library-path"],
	"params": wanted_params,
} if {
	count(compat_claims) > 0
}

default serves := ""

serves := sprintf(" The driver supports CUDA %s.", [served.text])

# wanted_params are for the release of CUDA that a message names, or the newest that the packages are built for.
default wanted_params := {}

wanted_params := needing(max(named)) if {
	named := {surroundings.version(m.fields.wanted)[0] | some m in claims} | object.keys(runtime_packages)
	count(named) > 0
}

# The packages show that the program is built for a newer CUDA major release than the driver supports; only a newer
# driver helps. If an environment has packages of two releases, the texts do not show which is used.
findings contains {
	"id": "built",
	"subject": "driver",
	"message": sprintf("The packages are built for CUDA %d, but the driver supports CUDA %s", [major, served.text]),
	"severity": "critical",
	"evidence": array.concat([package_evidence(p) | some p in packages], [served_evidence]),
	"params": needing(major),
} if {
	count(runtime_packages) == 1
	some major, packages in runtime_packages
	major > served.version[0]
	least_branch[major]
}

package_evidence(p) := {"fact": sprintf("software[%s]", [p.name]), "value": p.version, "source": logs.at(p)}

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

# nccl_needs are the packages of NCCL that are built for a CUDA which needs a newer driver than the one that is named.
# NCCL includes the runtime that it was built with, and none of it runs on an older driver.
nccl_needs contains {"package": p, "release": release, "branch": branch} if {
	some p in input.software
	p.name in {"libnccl2", "libnccl-dev", "libnccl", "nccl"}
	some found in regex.find_all_string_submatch_n(`\+cuda([0-9]{1,2})\.([0-9])$`, p.version, 1)
	release := sprintf("%s.%s", [found[1], found[2]])
	branch := object.get(thresholds.old_cuda_drivers, release, object.get(least_branch, to_number(found[1]), null))
	branch > surroundings.version(input.gpus.driver.version)[0]
}

findings contains {
	"id": "built",
	"subject": "driver",
	"message": sprintf("NCCL %s is built for CUDA %s, which needs driver %d or newer; the driver here is %s", [need.package.version, need.release, need.branch, input.gpus.driver.version]),
	"severity": nccl_grade[0],
	"confidence": nccl_grade[1],
	"evidence": [
		package_evidence(need.package),
		{"fact": "gpus.driver.version", "value": input.gpus.driver.version, "source": "nvidia-smi"},
	],
	"params": {"driver": need.branch, "cuda": to_number(split(need.release, ".")[0])},
	"remedies": ["upgrade-driver", "use-older-cuda"],
} if {
	need := sort(nccl_needs)[0]
}

# Without a failure a compatibility library may serve it.
default nccl_grade := ["low", "possible"]

nccl_grade := ["critical", "likely"] if logs.failed

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
