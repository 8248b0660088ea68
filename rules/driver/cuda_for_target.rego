# METADATA
# title: The image needs a newer driver than its target has
# description: >-
#   An image brings its own CUDA runtime, and runs with the driver of the machine that it is started on. A driver of an
#   older major release serves it only through a compatibility library, and only on data center GPUs.
#   NVIDIA_REQUIRE_CUDA makes the container toolkit refuse to start the image on such a machine. The target is given by
#   --driver or --target.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
#     description: The minimum driver of each CUDA major release
#   - ref: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
#     description: NVIDIA_REQUIRE_CUDA and NVIDIA_DISABLE_REQUIRE
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

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.surroundings

# served is the newest major release of CUDA that the target's driver supports.
served := surroundings.version(input.target.cuda)[0] if {
	count(surroundings.version(input.target.cuda)) > 0
} else := image_files.cuda_of(input.target.driver)

target_evidence := image_files.of_target("driver", input.target.driver)

needed[major] contains image_files.evidence(r.library) if {
	some r in image_files.runtimes
	major := r.release[0]
}

needed[major] contains image_files.evidence(l) if {
	some [_, l] in image_files.copies("libnccl")
	major := image_files.cuda_major(l.version)
}

needed[major] contains image_files.package_evidence(p) if {
	some p in input.libraries.packages
	major := image_files.cuda_major(sprintf("%s %s", [p.name, p.version]))
}

findings contains {
	"grade": "newer",
	"subject": "driver",
	"about": {"release": major, "branch": branch, "driver": input.target.driver, "served": served, "compat": compat},
	"severity": {true: "medium", false: "high"}[count(compat) > 0],
	"evidence": array.concat(sort(needed[major]), [target_evidence]),
	"params": {"driver": branch, "cuda": major},
} if {
	some major, _ in needed
	major > served
	branch := image_files.least_branch[major]
	compat := {l.path |
		some l in image_files.files
		l.kind == "libcuda"
		l.compat
		surroundings.version(l.version)[0] >= branch
	}
}

# required are the alternatives of NVIDIA_REQUIRE_CUDA: a blank means or, a comma and.
required := split(trim_space(facts.env.NVIDIA_REQUIRE_CUDA), " ") if facts.env.NVIDIA_REQUIRE_CUDA != ""

refused contains alternative if {
	some alternative in required
	some found in regex.find_all_string_submatch_n(`cuda>=([0-9]+)\.[0-9]+`, alternative, 1)
	to_number(found[1]) > served
	not driver_allowed(alternative)
}

# driver_allowed is true of an alternative for a range of drivers that holds the target's.
driver_allowed(alternative) if {
	branch := surroundings.version(input.target.driver)
	some low in regex.find_all_string_submatch_n(`driver>=([0-9.]+)`, alternative, 1)
	some high in regex.find_all_string_submatch_n(`driver<([0-9.]+)`, alternative, 1)
	branch >= surroundings.version(low[1])
	branch < surroundings.version(high[1])
}

findings contains {
	"subject": "NVIDIA_REQUIRE_CUDA",
	"message": sprintf("NVIDIA_REQUIRE_CUDA=%s does not allow the target's driver %s (CUDA %d): the container toolkit refuses to start the image there", [
		substring(facts.env.NVIDIA_REQUIRE_CUDA, 0, 80), input.target.driver, served,
	]),
	"evidence": [surroundings.variable_evidence(facts.variable.NVIDIA_REQUIRE_CUDA), target_evidence],
	"params": {"driver": min({least | some major, least in image_files.least_branch; major > served}), "cuda": served},
} if {
	count(required) > 0
	count(refused) == count(required)
	not disabled
}

disabled if facts.env.NVIDIA_DISABLE_REQUIRE in {"1", "true"}

not_applicable contains "no target is given (--driver, --target)" if {
	input.libraries
	not input.target
}

not_applicable contains "the image holds nothing that is built for CUDA" if {
	input.libraries
	count(needed) == 0
	not required
}
