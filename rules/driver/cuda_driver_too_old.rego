# METADATA
# title: The driver is too old for the CUDA runtime
# description: >-
#   A CUDA runtime runs on every driver of its own major release or newer
#   (minor version compatibility, since CUDA 11), and on older ones only with a
#   compatibility library on a data centre GPU. With a driver of an older major
#   release programs fail with «CUDA driver version is insufficient for CUDA
#   runtime version».
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
#     description: The least driver of each major release of CUDA
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
#     description: Compatibility libraries for older drivers
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - libraries.files
#   remedies: [upgrade-driver, use-older-cuda, reboot-or-reload-driver, remove-from-library-path]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.cuda_driver_too_old

import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.limits

# served is the newest CUDA that the driver serves here: what libcuda said to
# the probe, which takes a compatibility library into account, else what NVML
# says, else what follows from the driver's branch.
served := {
	"version": surroundings.version(input.transfers.driver_version),
	"text": input.transfers.driver_version,
	"fact": "transfers.driver_version",
	"source": "cuDriverGetVersion",
} if {
	surroundings.version(input.transfers.driver_version)
} else := {
	"version": surroundings.version(input.gpus.driver.cuda_version),
	"text": input.gpus.driver.cuda_version,
	"fact": "gpus.driver.cuda_version",
	"source": "nvmlSystemGetCudaDriverVersion_v2",
} if {
	surroundings.version(input.gpus.driver.cuda_version)
} else := {
	"version": [major],
	"text": sprintf("%d", [major]),
	"fact": "gpus.driver.kernel_version",
	"source": "/proc/driver/nvidia/version",
} if {
	branch := surroundings.version(input.gpus.driver.kernel_version)[0]
	major := max([m | some m, least in least_branch; branch >= least])
}

# least_branch is the least driver branch of each major release of CUDA.
least_branch[to_number(major)] := branch if some major, branch in limits.cuda_drivers

# runtimes are the CUDA runtimes that programs here take: the one that the
# loader takes, and those of Python packages.
runtimes contains l if {
	some l in input.libraries.files
	l.kind == "libcudart"
	l.path != ""
	in_use(l)
	count(surroundings.version(l.version)) > 1
}

in_use(l) if l.loads

in_use(l) if l.found_by == "python"

findings contains {
	"subject": l.path,
	"message": sprintf("The CUDA runtime %s needs a driver of CUDA %d (%d or newer); the driver here serves CUDA %s%s", [
		l.version,
		wanted, least_branch[wanted],
		served.text, compat_remark,
	]),
	"evidence": [
		{"fact": sprintf("libraries.files[%s].version", [l.path]), "value": l.version, "source": l.path},
		{"fact": served.fact, "value": served.text, "source": served.source},
	],
	"params": {"driver": least_branch[wanted], "cuda": wanted},
} if {
	some l in runtimes
	wanted := surroundings.version(l.version)[0]
	wanted > served.version[0]
	least_branch[wanted]
	not served_by_compat(wanted)
}

# served_by_compat is true where a compatibility library of that release is
# what the loader takes; a probe that ran has already counted it in.
served_by_compat(major) if max(compat_branches) >= least_branch[major]

compat_branches := {surroundings.version(l.version)[0] | some l in compat; l.loads}

compat contains l if {
	some l in input.libraries.files
	l.kind == "libcuda"
	l.compat
}

compat_remark := sprintf(". A compatibility library is here (%s), but the loader does not take it: on a data centre GPU, putting its folder first in LD_LIBRARY_PATH helps", [path]) if {
	path := sort([l.path | some l in compat; not l.loads])[0]
} else := ""

# NCCL that was built for a newer major release brings the same failure.
findings contains {
	"subject": l.path,
	"message": sprintf("NCCL %s is built for CUDA %d; the driver here serves CUDA %s", [l.version, wanted, served.text]),
	"evidence": [
		{"fact": sprintf("libraries.files[%s].version", [l.path]), "value": l.version, "source": l.path},
		{"fact": served.fact, "value": served.text, "source": served.source},
	],
	"params": {"driver": least_branch[wanted], "cuda": wanted},
} if {
	some l in surroundings.nccl
	some found in regex.find_all_string_submatch_n(`\+cuda([0-9]{1,3})`, l.version, 1)
	wanted := to_number(found[1])
	wanted > served.version[0]
	least_branch[wanted]
	not served_by_compat(wanted)
	not wanted in runtime_majors
}

runtime_majors := {surroundings.version(l.version)[0] | some l in runtimes}

# NCCL says that its calls cannot be captured in a graph with an older driver.
findings contains {
	"subject": "driver",
	"message": sprintf("NCCL's calls cannot be captured in a CUDA graph with driver %s: that needs %d or newer (%s)", [input.gpus.driver.version, limits.cuda_graphs_driver, m.text]),
	"severity": "critical",
	"confidence": "confirmed",
	"evidence": [logs.evidence(m)],
	"params": {"driver": limits.cuda_graphs_driver, "cuda": 11},
	"order": m.order,
} if {
	m := logs.first(logs.by_id["nccl-cuda-graphs-unsupported"])
	surroundings.version(input.gpus.driver.version)[0] < limits.cuda_graphs_driver
}

# A newer minor release works, with limits.
findings contains {
	"subject": l.path,
	"message": sprintf("The CUDA runtime %s is newer than the driver (CUDA %s) and of the same major release: it works, but code that is compiled at run time from newer PTX, and features of the newer release, do not", [l.version, served.text]),
	"severity": "info",
	"remedies": [],
	"evidence": [
		{"fact": sprintf("libraries.files[%s].version", [l.path]), "value": l.version, "source": l.path},
		{"fact": served.fact, "value": served.text, "source": served.source},
	],
	"params": {"driver": least_branch[runtime[0]], "cuda": runtime[0]},
} if {
	some l in runtimes
	runtime := surroundings.version(l.version)
	runtime[0] == served.version[0]
	runtime[1] > served.version[1]
	least_branch[runtime[0]]
}

# What programs say in a log, CUDA's texts and names in whoever's line: 35, 36 and
# 222, and what PyTorch and the container runtime find before CUDA starts.
claims contains m if {
	some m in logs.messages({"torch-driver-too-old", "container-cuda-requirement", "cuda-insufficient-driver", "cuda-unsupported-ptx", "cuda-needs-newer-driver", "ngc-driver-too-old", "libcuda-older-than-program"})
}

claims contains m if {
	some m in logs.complaints
	m.role != "consequence"
	regex.match(`CUDA driver version is insufficient for CUDA runtime version|ErrorInsufficientDriver|PTX was compiled with an unsupported toolchain`, m.text)
}

# NVML comes with the driver and grows with it: a program that calls a function which
# the library lacks was built for a newer driver. nvidia-smi and its kin come with the
# driver as well, so that their complaint is of another kind (driver-library-mismatch).
findings contains {
	"subject": "driver",
	"message": sprintf("The driver's NVML library lacks a function that a program calls%s: the driver%s is older than the program needs", [lacking, here]),
	"severity": "high",
	"confidence": "likely",
	"evidence": logs.all_evidence(older_nvml),
	"order": logs.first(older_nvml).order,
	"remedies": ["upgrade-driver", "remove-from-library-path"],
	"params": {"variable": "LD_LIBRARY_PATH"},
} if {
	count(older_nvml) > 0
	count(claims) == 0
}

older_nvml := logs.messages({"nvml-older-than-program"})

default lacking := ""

lacking := sprintf(" (%s)", [concat(", ", sort(symbols))]) if {
	symbols := {m.fields.symbol | some m in older_nvml; m.fields.symbol != ""}
	count(symbols) > 0
}

default here := ""

here := sprintf(" here (%s)", [input.gpus.driver.version]) if input.gpus.driver.version != ""

# 804: libcuda is newer than the kernel's driver, and the GPU is none that may use
# a compatibility library. An image with a newer CUDA than the host's driver
# serves brings one.
compat_claims contains m if {
	some m in logs.complaints
	m.role != "consequence"
	regex.match(`orward compatibility was attempted on non supported HW|ErrorCompatNotSupportedOnDevice|COMPAT_NOT_SUPPORTED_ON_DEVICE`, m.text)
}

findings contains {
	"subject": "driver",
	"message": sprintf("The driver is too old for the CUDA that the program was built with, or is not to be found where it runs.%s", [serves]),
	"severity": "critical",
	"confidence": claims_confidence,
	"evidence": logs.all_evidence(claims),
	"order": logs.first(claims).order,
	"params": wanted_params,
} if {
	count(claims) > 0
}

# CUDA says the same where it finds no libcuda at all, as in a container that was
# started without GPUs.
claims_confidence := "possible" if {
	count(launches.without_gpus) > 0
	every m in claims {
		m.id == "cuda-insufficient-driver"
	}
} else := "confirmed"

# The packages tell that the program is built for a newer major release of CUDA
# than the driver serves, which nothing but a newer driver helps.
findings contains {
	"subject": "driver",
	"message": sprintf("The packages are built for CUDA %d, and the driver serves CUDA %s", [built_for, served.text]),
	"severity": "critical",
	"confidence": "likely",
	"evidence": array.concat(
		[{"fact": sprintf("software[%s]", [p.name]), "value": p.version, "source": logs.at(p)} | some p in built_packages],
		[{"fact": served.fact, "value": served.text, "source": served.source}],
	),
	"params": {"driver": least_branch[built_for], "cuda": built_for},
} if {
	count(claims | compat_claims) == 0
	built_for > served.version[0]
	least_branch[built_for]
}

# nccl_needs are the packages of NCCL that are built for a CUDA which needs a newer
# driver than the one that is named. NCCL brings the runtime that it was built with,
# and nothing of it runs below that.
nccl_needs contains {"package": p, "release": release, "branch": branch} if {
	some p in input.software
	regex.match(`^(?:libnccl2|libnccl-dev|libnccl|nccl)$`, p.name)
	some found in regex.find_all_string_submatch_n(`\+cuda([0-9]{1,2})\.([0-9])$`, p.version, 1)
	release := sprintf("%s.%s", [found[1], found[2]])
	branch := object.get(limits.old_cuda_drivers, release, object.get(least_branch, to_number(found[1]), null))
	branch > surroundings.version(input.gpus.driver.version)[0]
}

findings contains {
	"subject": "driver",
	"message": sprintf("NCCL %s is built for CUDA %s, which needs driver %d or newer; the driver here is %s", [need.package.version, need.release, need.branch, input.gpus.driver.version]),
	"severity": nccl_grade[0],
	"confidence": nccl_grade[1],
	"evidence": [
		{"fact": sprintf("software[%s]", [need.package.name]), "value": need.package.version, "source": logs.at(need.package)},
		{"fact": "gpus.driver.version", "value": input.gpus.driver.version, "source": "nvidia-smi"},
	],
	"params": {"driver": need.branch, "cuda": to_number(split(need.release, ".")[0])},
	"remedies": ["upgrade-driver", "use-older-cuda"],
} if {
	count(claims | compat_claims) == 0
	need := sort(nccl_needs)[0]
}

# Without a failure a compatibility library may serve it.
default nccl_grade := ["low", "possible"]

nccl_grade := ["critical", "likely"] if logs.failed

# built_for is what all packages of CUDA's runtime here agree on: of an
# environment with two the texts do not tell which is used.
built_for := max(majors) if {
	majors := {major | some major, _ in runtime_packages}
	count(majors) == 1
}

built_packages contains p if {
	some major, _ in runtime_packages
	some p in runtime_packages[major]
}

runtime_packages[major] contains p if {
	some p in input.software
	p.name in {"cuda-runtime", "nvidia-cuda-runtime"}
	major := surroundings.version(p.version)[0]
}

runtime_packages[major] contains p if {
	some p in input.software
	some found in regex.find_all_string_submatch_n(`^nvidia-(?:nccl|cuda-runtime|cublas)-cu(\d{2})$`, p.name, 1)
	major := to_number(found[1])
}

runtime_packages[major] contains p if {
	some p in input.software
	p.name == "torch"
	some found in regex.find_all_string_submatch_n(`\+cu(\d{2})\d`, p.version, 1)
	major := to_number(found[1])
}

# wanted_major is the release of CUDA that a message names, or the newest that the
# packages are built for.
wanted_major := max(named) if {
	named := {surroundings.version(m.fields.wanted)[0] | some m in claims} | package_majors
	count(named) > 0
}

package_majors contains major if {
	some p in input.software
	p.name == "cuda-runtime"
	major := surroundings.version(p.version)[0]
}

package_majors contains to_number(found[1]) if {
	some p in input.software
	p.name == "torch"
	some found in regex.find_all_string_submatch_n(`\+cu(\d{2})\d`, p.version, 1)
}

default wanted_params := {}

wanted_params := {"driver": least_branch[wanted_major], "cuda": wanted_major}

serves := sprintf(" The driver serves CUDA %s.", [served.text]) if {
	served
} else := ""

findings contains {
	"subject": "driver",
	"message": sprintf("The image or library path brings a libcuda that is newer than the kernel's driver, and this GPU may not use one (error 804): only data centre GPUs may. Either the driver is to be updated on the host or, if that was done already, its module is to be loaded anew.%s", [serves]),
	"severity": "critical",
	"confidence": "likely",
	"evidence": logs.all_evidence(compat_claims),
	"order": logs.first(compat_claims).order,
	"remedies": ["upgrade-driver", "use-older-cuda", "reboot-or-reload-driver", "remove-from-library-path"],
	"params": wanted_params,
} if {
	count(compat_claims) > 0
	count(claims) == 0
}

missing contains {"fact": "libraries", "words": "no CUDA runtime was looked for"} if {
	not input.libraries
	count(claims | compat_claims) == 0
}

missing contains {"fact": "gpus.driver", "words": "the CUDA version that the driver serves is not known"} if {
	count(runtimes) > 0
	not served
	not no_nvidia
}

no_nvidia if {
	is_array(input.gpus.devices)
	count({g | some g in input.gpus.devices; g.vendor == "nvidia"}) == 0
}

not_applicable contains "no CUDA runtime and no NCCL here" if {
	input.libraries
	count(runtimes) == 0
	count(surroundings.nccl) == 0
}

not_applicable contains "no NVIDIA GPU here" if {
	no_nvidia
}
