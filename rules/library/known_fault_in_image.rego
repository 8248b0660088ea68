# METADATA
# title: The image's NCCL or RCCL has a known fault on its target
# description: >-
#   Some versions of NCCL and RCCL do not support a newer GPU, or fail on it. The GPUs of the target are given by
#   --target. Without it, only the version is known.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/release-notes/index.html
#     description: What each version of NCCL fixes
# custom:
#   severity: high
#   confidence: likely
#   cause: nccl-bug
#   needs: [libraries.files, target.gpus]
#   remedies: [upgrade-nccl, downgrade-nccl, nccl-proto, nccl-algo, nccl-cumem-disable, nccl-nvls-disable, upgrade-rocm, nccl-p2p-disable, unset-env]
#   profiles: [image]
#   since: "0.2"
package gpudoctor.rules.known_fault_in_image

import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.known_faults
import data.gpudoctor.lib.library_versions

# Where a version only may fail on a GPU, a message decides, and an image has none.
findings contains known_faults.finding({
	"row": row,
	"version": sprintf("%s in %s%s", [version, l.path, image_files.layer(l)]),
	"messages": set(),
	"evidence": [image_files.evidence(l), image_files.of_target("gpus", input.target.gpus)],
}) if {
	some row in known_faults.unsupported
	some [version, l] in held[row.library]
	library_versions.in_range(row, version)
}

held["nccl"] := {[l.version, l] | some [_, l] in image_files.copies("libnccl")}
held["rccl"] := {[l.version, l] | some [_, l] in image_files.copies("librccl")}
held["rocm"] := image_files.rocm

missing contains {"fact": "libraries.files[].version", "words": sprintf("the version of %s is not known", [l.path])} if {
	some l in image_files.files
	l.kind in {"libnccl", "librccl"}
	not l.version
}

missing contains {"fact": "libraries.files[].version", "words": "the release of ROCm is not known"} if {
	"librccl" in image_files.kinds
	count(image_files.rocm) == 0
}

missing contains {"fact": "libraries"} if not input.libraries

not_applicable contains "no target with known GPUs is given (--target)" if not input.target.gpus

not_applicable contains "the image holds no NCCL or RCCL" if {
	input.libraries
	count({l.kind | some l in image_files.files} & {"libnccl", "librccl"}) == 0
}
