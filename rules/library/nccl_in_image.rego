# METADATA
# title: The image holds several versions of NCCL or RCCL
# description: >-
#   Programs of one image that load different versions of NCCL cannot communicate with each other, and a newer program
#   fails with an older library. This happens where a package of the distribution and PyTorch's own package bring one
#   each, or where packages for two releases of CUDA overwrite each other.
# related_resources:
#   - ref: https://github.com/pytorch/pytorch/issues/119932
#     description: Another package's libnccl comes before PyTorch's
# custom:
#   severity: high
#   confidence: likely
#   cause: nccl-version-mismatch
#   needs: [libraries.files]
#   remedies: [same-nccl-everywhere]
#   profiles: [image]
#   since: "0.2"
#   grades:
#     several: "The image holds {versions:version} of {library}: {copies}[. The loader takes {taken}]"
#     packages: >-
#       The Python packages are built for different releases of CUDA: {packages}. Packages of one library for two releases
#       overwrite each other's files, and PyTorch fails or loads the wrong one
package gpudoctor.rules.nccl_in_image

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.library_versions

names := {"libnccl": "NCCL", "librccl": "RCCL"}

versions[kind][core] contains l if {
	some kind, _ in names
	some [_, l] in image_files.copies(kind)
	not l.stub
	core := library_versions.core(l.version)
}

findings contains {
	"grade": "several",
	"severity": "medium",
	"subject": lower(names[kind]),
	"about": {
		"library": names[kind], "versions": count(all),
		"copies": {sprintf("%s in %s", [core, facts.list({l.path | some l in copies})]) | some core, copies in all},
		"taken": {sprintf("%s (found by %s)", [l.path, l.found_by]) | some l in image_files.files; l.kind == kind; l.loads},
	},
	"evidence": sort({image_files.evidence(l) | some copies in all; some l in copies}),
} if {
	some kind, all in versions
	count(all) > 1
}

# built are the releases of CUDA that the Python packages around PyTorch are built for.
built[major] contains p if {
	some p in input.libraries.packages
	regex.match(`^(torch|nvidia-nccl|nvidia-cuda-runtime|nvidia-cublas|nvidia-cudnn)(-|$)`, p.name)
	major := image_files.cuda_major(sprintf("%s %s", [p.name, p.version]))
}

findings contains {
	"grade": "packages",
	"severity": "medium",
	"subject": "packages",
	"about": {"packages": {sprintf("CUDA %d: %s", [major, facts.list({sprintf("%s %s", [p.name, p.version]) | some p in packages})]) |
		some major, packages in built
	}},
	"evidence": sort({image_files.package_evidence(p) | some packages in built; some p in packages}),
} if count(built) > 1

missing contains {"fact": "libraries.files", "words": "the image holds no library of CUDA, ROCm, NCCL or RCCL in the places where programs look"} if {
	input.libraries
	count(image_files.kinds & {"libnccl", "librccl", "libcuda", "libnvidia-ml", "libcudart", "libamdhip64", "libhsa-runtime64"}) == 0
	count([p | some p in input.libraries.packages]) == 0
}

missing contains {"fact": "libraries.files", "words": sprintf("the version of %s is not known", [l.path])} if {
	some kind, _ in names
	count(image_files.copies(kind)) > 1
	some [_, l] in image_files.copies(kind)
	not library_versions.core(object.get(l, "version", ""))
}

missing contains {"fact": "image.unread", "words": sprintf("%s could not be read", [facts.few({f | some f in input.image.unread})])} if {
	count(input.image.unread) > 0
}
