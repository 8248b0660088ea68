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

import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.known_faults
import data.gpudoctor.lib.library_versions
import data.tables.known_faults as table

kinds := {"nccl": "libnccl", "rccl": "librccl"}

models contains gpu_models.of(name) if some name in input.target.gpus

architectures := {m.architecture | some m in models}

holds(circumstance) if circumstance in (architectures & {"ampere", "hopper", "blackwell", "gfx950"})
holds("blackwell-12") if models[_].compute_capability == "12.0"
holds("spark") if models[_].name == "GB10"
holds("gfx11") if strings.any_prefix_match(architectures, "gfx110")
holds("gfx12") if strings.any_prefix_match(architectures, "gfx120")

# A fault that the GPUs themselves bring about: the version fails on them. Where it only
# may fail, a message decides, and an image has none.
findings contains known_faults.finding({
	"row": row,
	"version": sprintf("%s in %s%s", [version, l.path, image_files.layer(l)]),
	"messages": set(),
	"evidence": [image_files.evidence(l), image_files.of_target("gpus", input.target.gpus)],
}) if {
	some row in table.rows
	row.symptom == "fail"
	row.confidence == "likely"
	every circumstance in row.when {
		holds(circumstance)
	}
	some [version, l] in held(row.library)
	library_versions.in_range(row, version)
}

held(library) := {[l.version, l] | some [_, l] in image_files.copies(kinds[library])} if kinds[library]
held("rocm") := image_files.rocm

missing contains {"fact": "libraries.files[].version", "words": sprintf("the version of %s is not known", [l.path])} if {
	some l in image_files.files
	l.kind in {"libnccl", "librccl"}
	not l.version
}

missing contains {"fact": "libraries.files[].version", "words": "the release of ROCm is not known"} if {
	some architecture in architectures
	startswith(architecture, "gfx")
	some l in image_files.files
	l.kind == "librccl"
	count(image_files.rocm) == 0
}

missing contains {"fact": "libraries", "words": "gpudoctor did not look for libraries"} if not input.libraries

not_applicable contains "no target with known GPUs is given (--target)" if not input.target.gpus

not_applicable contains "the image holds no NCCL or RCCL" if {
	input.libraries
	count({l.kind | some l in image_files.files} & {"libnccl", "librccl"}) == 0
}
