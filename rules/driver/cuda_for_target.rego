# METADATA
# title: The image needs a newer driver than its target has
# description: >-
#   An image brings its own CUDA runtime, and runs with the driver of the machine that it is started on. A driver of an
#   older major release serves it only through a compatibility library, and only on data center GPUs. The target is given
#   by --driver or --target.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
#     description: The minimum driver of each CUDA major release
# custom:
#   severity: high
#   confidence: likely
#   cause: cuda-driver-too-old
#   needs:
#     - libraries.files
#     - target.driver
#   remedies: [upgrade-driver, use-older-cuda]
#   profiles: [image]
#   since: "0.2"
#   grades:
#     newer: >-
#       The image holds CUDA {release}, which needs driver {branch} or newer, and the target has {driver} (CUDA {served})[.
#       The compatibility library {compat} serves data center GPUs, if its folder is first in LD_LIBRARY_PATH]
package gpudoctor.rules.cuda_for_target

import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.surroundings

# served is the newest major release of CUDA that the target's driver supports.
served := surroundings.version(input.target.cuda)[0] if {
	count(surroundings.version(input.target.cuda)) > 0
} else := image_files.cuda_of(input.target.driver)

needed[r.release[0]] contains image_files.evidence(r.library) if some r in image_files.runtimes
needed[image_files.cuda_major(l.version)] contains image_files.evidence(l) if some [_, l] in image_files.copies("libnccl")

needed[image_files.cuda_major(sprintf("%s %s", [p.name, p.version]))] contains image_files.package_evidence(p) if {
	some p in input.libraries.packages
}

findings contains {
	"grade": "newer",
	"subject": "driver",
	"about": {"release": major, "branch": branch, "driver": input.target.driver, "served": served, "compat": compat},
	"severity": {true: "medium", false: "high"}[count(compat) > 0],
	"evidence": array.concat(sort(evidence), [image_files.of_target("driver", input.target.driver)]),
} if {
	some major, evidence in needed
	major > served
	branch := image_files.least_branch[major]
	compat := {l.path |
		some l in image_files.files
		l.kind == "libcuda"
		l.compat
		surroundings.version(l.version)[0] >= branch
	}
}

not_applicable contains "no target is given (--driver, --target)" if {
	input.libraries
	not input.target
}

not_applicable contains "the image holds nothing that is built for CUDA" if {
	input.libraries
	count(needed) == 0
}
