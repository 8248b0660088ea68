# METADATA
# title: The driver's libraries do not fit the kernel driver
# description: >-
#   libcuda, libnvidia-ml and the kernel module are parts of one driver and must
#   have one version. After an update without a reboot, or in an image that
#   brings driver libraries of its own, they differ, and CUDA or NVML refuse to
#   start. A link-time stub of the CUDA toolkit on the loader's path does the
#   same, and so does a compatibility library that is older than the driver.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
#     description: What the compatibility libraries are for, and the errors 803 and 804
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: The container toolkit brings the driver's libraries into the container
#   - ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
#     description: The result codes of the driver (34, 803, 804)
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: likely
#   needs:
#     - ["libraries.files[].version", transfers.driver_version]
#   remedies: [reboot-or-reload-driver, remove-driver-libraries, remove-from-library-path, unset-env, upgrade-driver]
#   since: "0.1"
package gpudoctor.rules.driver_library_mismatch

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

kernel_driver := input.gpus.driver.kernel_version

# driver_kinds are the libraries that belong to the driver, not to a toolkit.
driver_kinds := {"libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler"}

# libraries are those files of the driver that could be loaded: real ones, and
# not those of WSL, which stand for the Windows driver and have its numbers.
libraries contains l if {
	some l in input.libraries.files
	l.kind in driver_kinds
	l.path != ""
	not l.empty
	not startswith(l.path, "/usr/lib/wsl/")
}

# real are neither stubs nor compatibility libraries and tell their version as
# drivers do: 580.159.04.
real contains l if {
	some l in libraries
	not l.stub
	not l.compat
	regex.match(`^[0-9]{3}\.[0-9]+(\.[0-9]+)?$`, l.version)
}

# A library of another version than the kernel's module.
findings contains {
	"subject": l.path,
	"message": sprintf("%s that the loader takes here has version %s, the loaded kernel driver has %s: %s%s", [
		l.kind, l.version,
		kernel_driver, refusal(l.kind), origin(l),
	]),
	"confidence": confidence_of(l.kind),
	"severity": severity_of(l.kind),
	"evidence": array.concat(
		[library_evidence(l), {
			"fact": "gpus.driver.kernel_version",
			"value": kernel_driver,
			"source": "/proc/driver/nvidia/version",
		}],
		answers(l.kind),
	),
	"remedies": cure(l),
	"params": {"library": l.path},
} if {
	not surroundings.image
	some l in real
	l.loads
	l.version != kernel_driver
	not answered(l.kind)
}

refusal(kind) := "CUDA refuses to start (error 803)" if kind == "libcuda"

refusal(kind) := "NVML refuses to start (driver/library version mismatch)" if kind == "libnvidia-ml"

refusal(kind) := "kernels that are compiled at run time may fail (errors 221 and 222)" if kind == "libnvidia-ptxjitcompiler"

# A library that is of the image, not of this machine.
origin(l) := ". It is part of the image: the driver's libraries must come from the host" if {
	facts.in_container
	not l.mounted
} else := ". The driver was updated without a reboot" if {
	surroundings.version(l.version) > surroundings.version(kernel_driver)
} else := ""

cure(l) := ["remove-driver-libraries"] if {
	facts.in_container
	not l.mounted
} else := ["reboot-or-reload-driver"]

severity_of(kind) := "critical" if kind == "libcuda"

# Without NVML NCCL does not start; without the compiler only some programs.
severity_of(kind) := "critical" if kind == "libnvidia-ml"

severity_of(kind) := "medium" if kind == "libnvidia-ptxjitcompiler"

# answered is true of a library that did work when it was asked: what the
# loader would take is then something else.
answered("libcuda") if {
	input.transfers.outcome == "ok"
	count(surroundings.offered) > 0
}

answered("libnvidia-ml") if input.gpus.nvml == "ok"

confidence_of(kind) := "confirmed" if {
	count(answers(kind)) > 0
} else := "likely"

# answers are the libraries' own words for a mismatch.
answers(kind) := [cuda_answer] if {
	kind == "libcuda"
	input.transfers.error_code == driver_errors.code.SYSTEM_DRIVER_MISMATCH
} else := [nvml_answer] if {
	kind == "libnvidia-ml"
	endswith(input.gpus.nvml_error, "LIB_RM_VERSION_MISMATCH")
} else := []

cuda_answer := {
	"fact": "transfers.error_name",
	"value": object.get(input.transfers, "error_name", input.transfers.error_code),
	"source": "cuInit",
}

nvml_answer := {"fact": "gpus.nvml_error", "value": input.gpus.nvml_error, "source": "nvmlInit"}

# The libraries say it themselves, and which file is at fault is not known.
findings contains {
	"subject": "driver",
	"message": sprintf("%s that library and kernel driver have different versions. %s", [mismatch_words, kernel_words]),
	"confidence": "confirmed",
	"evidence": [answer | some answer in mismatched],
	"remedies": ["reboot-or-reload-driver"],
	"params": {},
} if {
	count(mismatched) > 0
}

mismatched.CUDA := cuda_answer if {
	input.transfers.error_code == driver_errors.code.SYSTEM_DRIVER_MISMATCH
	not told("libcuda")
	count(older_compat) == 0
}

mismatched.NVML := nvml_answer if {
	endswith(input.gpus.nvml_error, "LIB_RM_VERSION_MISMATCH")
	not told("libnvidia-ml")
}

mismatch_words := "CUDA and NVML say" if {
	count(mismatched) > 1
} else := sprintf("%s says", [name]) if {
	some name, _ in mismatched
}

default kernel_words := "Which version the kernel driver has is not known"

kernel_words := sprintf("The kernel driver has %s", [kernel_driver]) if kernel_driver != ""

# Programs say it in a log.
claims contains m if {
	some m in logs.complaints
	m.id in {"nvml-version-mismatch", "nvml-function-missing", "nvrm-api-mismatch", "xla-dso-mismatch", "cuda-driver-mismatch"}
}

# The same error in another program's line, such as NCCL's.
claims contains m if {
	some m in logs.complaints
	m.role != "consequence"
	contains(m.text, "system has unsupported display driver / cuda driver combination")
}

findings contains {
	"subject": "driver",
	"message": sprintf("The driver's libraries and the loaded kernel driver have different versions.%s The driver was updated and its kernel module not loaded anew, or an image brings libraries of another driver", [told_versions]),
	"confidence": "confirmed",
	"evidence": array.concat(logs.all_evidence(claims | version_lines), path_evidence),
	"order": logs.first(claims).order,
	"remedies": told_cure,
	"params": {"variable": "LD_LIBRARY_PATH"},
} if {
	count(claims) > 0
	count(mismatched) == 0
	count({l | some l in real; l.loads; l.version != kernel_driver}) == 0
}

# path_evidence is a search path that leads to libraries of another driver.
default path_evidence := []

path_evidence := [surroundings.variable_evidence(facts.variable.LD_LIBRARY_PATH)] if {
	regex.match(`/(?:compat|stubs)\b`, facts.env.LD_LIBRARY_PATH)
}

version_lines := logs.messages({"nvml-library-version", "nvrm-api-mismatch-kernel"})

# told_version are the versions that the messages name, by whose they are.
told_version[owner] contains version if {
	some m in (claims | version_lines)
	some owner in ["library", "kernel"]
	version := m.fields[owner]
}

told_versions := sprintf(" They are %s.", [facts.list(parts)]) if {
	parts := {sprintf("%s (%s)", [concat(", ", sort(versions)), owner]) | some owner, versions in told_version}
	count(parts) > 0
} else := ""

# NVML is of the host, or brought from there, as a rule. CUDA's own error comes as
# often from a compatibility library of the image.
told_cure := ["unset-env", "reboot-or-reload-driver", "remove-driver-libraries"] if {
	regex.match(`/(?:compat|stubs)\b`, object.get(facts.env, "LD_LIBRARY_PATH", ""))
} else := ["reboot-or-reload-driver", "remove-from-library-path", "remove-driver-libraries"] if {
	every m in claims {
		not startswith(m.id, "nv")
	}
	count(logs.launches) > 0
} else := ["reboot-or-reload-driver", "remove-driver-libraries"]

# packaged are the packages that bring libcuda and NVML, by the version of the
# driver that they are of; apt's history tells of them, too.
packaged[version] contains p if {
	some p in input.software
	regex.match(`^(?:libnvidia-compute|libnvidia-ml|libcuda|nvidia-driver-cuda-libs|nvidia-driver-libs|libcuda1|nvidia-utils|nvidia-smi)(?:-|\d|$)`, p.name)
	version := regex.find_n(`^(?:\d+:)?(\d{3}\.\d+(?:\.\d+)?)`, p.version, 1)[0]
}

findings contains {
	"subject": "driver",
	"message": sprintf("The driver's libraries that are installed have version %s, the loaded kernel driver has %s: the driver was updated and its kernel module not loaded anew", [facts.list(updated), kernel_driver]),
	"severity": package_severity,
	"confidence": "likely",
	"evidence": array.concat(
		[{"fact": sprintf("software[%s]", [p.name]), "value": p.version, "source": logs.at(p)} | some _, list in packaged; some p in list],
		[{"fact": "gpus.driver.kernel_version", "value": kernel_driver, "source": "/proc/driver/nvidia/version"}],
	),
	"remedies": ["reboot-or-reload-driver"],
	"params": {},
} if {
	count(claims) == 0
	count(real) == 0
	kernel_driver != ""
	updated := {regex.replace(version, `^\d+:`, "") | some version, _ in packaged}
	count(updated) > 0
	not kernel_driver in updated
}

# imaged are libraries of the driver that an image holds, at the places where the
# container runtime wants to put those of the host.
imaged := logs.messages({"image-driver-library"})

findings contains {
	"subject": "image",
	"message": sprintf("The image holds libraries of the driver (%s), where the container runtime has to put those of the host, and so the container does not start. They came in when the image was made or saved on a machine with a driver: remove libcuda and libnvidia-* from it", [facts.list({m.fields.path | some m in imaged})]),
	"severity": "critical",
	"confidence": "confirmed",
	"evidence": logs.all_evidence(imaged),
	"order": logs.first(imaged).order,
	"remedies": ["remove-driver-libraries"],
	"params": {},
} if {
	count(imaged) > 0
}

# wrong_modules are the driver's own words that it serves this GPU with its open
# kernel modules only (Blackwell and later), and the other kind is loaded.
wrong_modules contains e if {
	some e in input.kernel_log.events
	e.kind == "nvrm"
	contains(e.message, "requires use of the NVIDIA open kernel modules")
}

findings contains {
	"subject": "driver",
	"message": "The driver serves this GPU with its open kernel modules only, and the proprietary ones are loaded: install the open kind of the same version (packages named nvidia-open or -open)",
	"severity": "critical",
	"confidence": "confirmed",
	"evidence": [{"fact": "kernel_log.events[nvrm]", "value": e.message, "source": "the kernel log"} | some e in sort(wrong_modules)],
	"remedies": ["upgrade-driver", "reboot-or-reload-driver"],
	"params": {},
} if {
	count(wrong_modules) > 0
}

default package_severity := "medium"

package_severity := "critical" if logs.failed

stub_claims contains m if {
	some m in logs.complaints
	m.role != "consequence"
	regex.match(`CUDA driver is a stub library|ErrorStubLibrary|ERROR_STUB_LIBRARY`, m.text)
}

findings contains {
	"subject": "driver",
	"message": "The CUDA library that was loaded is a link-time stub of the toolkit",
	"confidence": "confirmed",
	"evidence": logs.all_evidence(stub_claims),
	"order": logs.first(stub_claims).order,
	"remedies": ["remove-from-library-path"],
	"params": {},
} if {
	count(stub_claims) > 0
	count(stubs) == 0
}

findings contains {
	"subject": "driver",
	"message": "The CUDA library that was loaded is a link-time stub of the toolkit",
	"confidence": "confirmed",
	"evidence": [cuda_answer],
	"remedies": ["remove-from-library-path"],
	"params": {},
} if {
	input.transfers.error_code == driver_errors.code.STUB_LIBRARY
	count(stubs) == 0
}

told(kind) if {
	some l in real
	l.kind == kind
	l.loads
	l.version != kernel_driver
}

# Stubs in the way of the driver's library.
findings contains {
	"subject": l.path,
	"message": sprintf("The loader takes a link-time stub of the CUDA toolkit for %s%s: programs fail with error 34 (stub library). Stubs are for linking (-L, LIBRARY_PATH), never for running", [
		l.kind,
		found_remark(l),
	]),
	"severity": "high",
	"confidence": stub_confidence,
	"evidence": array.concat([library_evidence(l)], stub_answers),
	"remedies": way_out(l),
	"params": object.union({"library": l.path}, led_by(l)),
} if {
	some l in stubs
}

stubs contains l if {
	some l in libraries
	l.stub
	l.loads
}

# way_out takes the folder that leads to a library off the loader's path, or
# the variable that names the library.
way_out(l) := ["unset-env"] if {
	l.found_by == "ld_preload"
} else := ["remove-from-library-path"]

led_by(l) := {"variable": "LD_PRELOAD"} if {
	l.found_by == "ld_preload"
} else := {"folder": folder(l.path)}

folder(path) := concat("/", array.slice(parts, 0, count(parts) - 1)) if parts := split(path, "/")

found_remark(l) := " (by LD_LIBRARY_PATH)" if {
	l.found_by == "ld_library_path"
} else := " (by the loader's cache, ldconfig)" if {
	l.found_by == "ld_cache"
} else := " (by LD_PRELOAD)" if {
	l.found_by == "ld_preload"
} else := ""

default stub_confidence := "likely"

stub_confidence := "confirmed" if input.transfers.error_code == driver_errors.code.STUB_LIBRARY

default stub_answers := []

stub_answers := [cuda_answer] if input.transfers.error_code == driver_errors.code.STUB_LIBRARY

# A compatibility library serves drivers that are older than itself. Before a
# newer driver's own library it fails, or takes features away.
findings contains {
	"subject": l.path,
	"message": sprintf("The loader takes the compatibility library %s (%s) before the driver's own libcuda, and the kernel driver (%s) is newer: compatibility libraries serve older drivers only", [l.path, l.version, kernel_driver]),
	"severity": compat_severity,
	"confidence": compat_confidence,
	"evidence": array.concat(
		[library_evidence(l), {"fact": "gpus.driver.kernel_version", "value": kernel_driver, "source": "/proc/driver/nvidia/version"}],
		compat_answers,
	),
	"remedies": way_out(l),
	"params": object.union({"library": l.path}, led_by(l)),
} if {
	not surroundings.image
	some l in older_compat
	not answered(l.kind)
}

older_compat contains l if {
	some l in libraries
	l.compat
	l.loads
	surroundings.version(l.version) < surroundings.version(kernel_driver)
}

# The GPU is of a kind that compatibility libraries do not serve (GeForce).
findings contains {
	"subject": "libcuda",
	"message": "CUDA refuses its compatibility library on this GPU (error 804): only data centre GPUs, and some RTX workstation GPUs, may use it",
	"confidence": "confirmed",
	"evidence": array.concat([cuda_answer], [library_evidence(l) | some l in loaded_compat]),
	"remedies": ["remove-from-library-path", "upgrade-driver"],
	"params": {"folders": sort({folder(l.path) | some l in loaded_compat})},
} if {
	input.transfers.error_code == driver_errors.code.COMPAT_NOT_SUPPORTED_ON_DEVICE
	count(older_compat) == 0
}

loaded_compat contains l if {
	some l in libraries
	l.compat
	l.loads
}

default compat_severity := "medium"

compat_severity := "critical" if count(compat_answers) > 0

default compat_confidence := "likely"

compat_confidence := "confirmed" if count(compat_answers) > 0

default compat_answers := []

compat_answers := [cuda_answer] if input.transfers.error_code in {driver_errors.code.SYSTEM_DRIVER_MISMATCH, driver_errors.code.COMPAT_NOT_SUPPORTED_ON_DEVICE}

# Driver libraries in an image shadow those that the host brings, or stand
# beside them, and fit one driver version alone.
findings contains {
	"subject": l.path,
	"message": sprintf("%s %s is part of this image. It fits a host with driver %s alone; on others CUDA or NVML refuse to start. The container toolkit brings the host's own", [
		l.kind, l.version,
		l.version,
	]),
	"severity": "high",
	"evidence": [library_evidence(l)],
	"remedies": ["remove-driver-libraries"],
	"params": {"library": l.path},
} if {
	surroundings.image
	some l in real
	baked(l)
	not at_home(l)
}

# Where it happens to fit this machine's driver it is worth knowing only.
findings contains {
	"subject": l.path,
	"message": sprintf("%s %s is part of this image and fits this machine's driver. It fits no other: with the next driver update, or on another machine, CUDA or NVML refuse to start", [l.kind, l.version]),
	"severity": "info",
	"evidence": [library_evidence(l)],
	"remedies": ["remove-driver-libraries"],
	"params": {"library": l.path},
} if {
	not surroundings.image
	facts.in_container
	input.container.runtime in {"docker", "podman", "kubernetes", "containerd"}
	some l in real
	baked(l)
	l.version == kernel_driver
}

# at_home is true of a library of the driver that is loaded here, outside of a
# container: who judges a whole machine for the profile image looks at its own.
at_home(l) if {
	input.container.inside == false
	l.version == kernel_driver
}

# baked is true of a file that belongs to the image: it is no mount of its own,
# and not in a folder that container platforms mount as a whole (Google's
# device plugin, Apptainer, the driver container of the GPU operator).
baked(l) if {
	not l.mounted
	not platform_folder(l.path)
}

platform_folder(path) if {
	some folder in ["/usr/local/nvidia/", "/.singularity.d/", "/run/nvidia/", "/run/opengl-driver/", "/host/"]
	startswith(path, folder)
}

library_evidence(l) := {
	"fact": sprintf("libraries.files[%s].version", [l.path]),
	"value": object.get(l, "version", ""),
	"source": object.get(l, "real_path", l.path),
}

missing contains {"fact": "libraries", "words": "no library was looked for"} if {
	not input.libraries
	count(claims | stub_claims) == 0
}

missing contains {"fact": "gpus.driver.kernel_version", "words": "the loaded kernel driver is not known"} if {
	count(real) > 0
	not kernel_driver
	not surroundings.image
	not no_nvidia
}

missing contains {"fact": "container.inside", "words": "it is not known whether these files are an image's"} if {
	count(real) > 0
	not kernel_driver
	not no_nvidia
	not inside_known
}

inside_known if is_boolean(input.container.inside)

no_nvidia if {
	is_array(input.gpus.devices)
	count({g | some g in input.gpus.devices; g.vendor == "nvidia"}) == 0
}

not_applicable contains "no library of an NVIDIA driver here" if {
	input.libraries
	count(libraries) == 0
}

not_applicable contains "no NVIDIA GPU here" if {
	no_nvidia
	not surroundings.image
}
