# METADATA
# title: An image's libraries stand in the way of the host's
# description: The host mounts the NVIDIA driver's libraries into a container. The driver's packages, CUDA's stubs and its
#   compatibility libraries take their place, and of two copies of NCCL, programs get one or the other.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
#     description: Compatibility libraries serve older drivers, on data center GPUs; errors 803 and 804
# custom:
#   severity: high
#   areas: [libraries]
#   remedies: [remove-driver-libraries, remove-from-image-path, remove-from-library-path, same-nccl-everywhere]
#   cause: driver-library-mismatch
#   since: "0.4"
package gpudoctor.rules.job_libraries

import data.gpudoctor.lib.job
import data.tables.launch_files as words

findings contains {
	"subject": name, "remedies": ["remove-driver-libraries"], "params": {"library": name}, "evidence": [job.fact(l, job.entry("packages", name), name)],
	"message": sprintf("%s installs %s, a part of the NVIDIA driver. The driver's libraries must come from the host: those of an image match only one version of the kernel driver, and elsewhere CUDA or NVML fail to start", [job.opening(l), name]),
} if {
	some l in job.parts
	some name in l.packages
	job.matches(words.driver_packages, name)
}

# Folders on the path that the loader searches. The host's own libraries, mounted there by the device plugins of some
# providers, come first where their folder does.
findings contains {
	"subject": folder, "severity": severity, "params": {"folder": folder},
	"message": sprintf("%s puts %s on LD_LIBRARY_PATH (%s): %s", [job.opening(l), kind.what, folder, kind.why]),
	"remedies": [object.get({"dockerfile": "remove-from-image-path"}, l.kind, "remove-from-library-path")],
	"evidence": [job.setting_fact(l, "LD_LIBRARY_PATH")],
} if {
	some l, all in job.judged
	folders := split(all.LD_LIBRARY_PATH.value, ":")
	some i, folder in folders
	some kind in words.misplaced_folders
	job.matches(kind.folders, folder)
	count({f | some f in array.slice(folders, 0, i); job.matches(words.host_folders, f)}) == 0

	# Some images have the folder and nothing in it.
	severity := {true: "low", false: kind.severity}[job.matches(kind.empty_in, object.get(l, "image", ""))]
}

# PyTorch's own NCCL beside that of a base image does no harm. Who installs it twice by name means one of the two.
findings contains {
	"subject": "NCCL", "severity": "medium", "confidence": "possible", "remedies": ["same-nccl-everywhere"],
	"message": sprintf("%s installs NCCL twice, as %s with the system's packages and as %s with Python's: which of them a program loads depends on how it was built, and on LD_LIBRARY_PATH", [job.opening(l), system, python]),
	"evidence": [job.fact(l, job.entry("packages", system), system), job.fact(l, job.entry("python_packages", python), python)],
} if {
	some l in job.parts
	system := min({p | some p in l.packages; regex.match(`^libnccl(2|-dev)$`, p)})
	python := min({p | some p in l.python_packages; regex.match(`^nvidia[-_]nccl`, p)})
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"variables[LD_LIBRARY_PATH]"})
