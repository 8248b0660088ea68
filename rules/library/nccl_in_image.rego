# METADATA
# title: The image holds several versions of NCCL or RCCL
# description: >-
#   Programs of one image that load different versions of NCCL cannot communicate with each other, and a newer program
#   fails with an older library. This happens where a package of the distribution and PyTorch's own package bring one
#   each, or where packages for two releases of CUDA overwrite each other.
# related_resources:
#   - ref: https://github.com/pytorch/pytorch/issues/119932
#     description: Another package's libnccl comes before PyTorch's
#   - ref: https://man7.org/linux/man-pages/man8/ld.so.8.html
#     description: The order in which the loader searches
# custom:
#   severity: high
#   confidence: likely
#   cause: nccl-version-mismatch
#   needs: [libraries.files]
#   remedies: [same-nccl-everywhere, unset-env]
#   profiles: [image]
#   since: "0.2"
package gpudoctor.rules.nccl_in_image

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.library_versions

names := {"libnccl": "NCCL", "librccl": "RCCL"}

# versions are the copies of a library by their version, without what a packager adds.
versions[kind][core] contains l if {
	some kind, _ in names
	some [_, l] in image_files.copies(kind)
	not l.stub
	core := library_versions.core(l.version)
}

# Several versions, and which one programs get.
findings contains {
	"subject": lower(names[kind]),
	"message": sprintf("The image holds %d versions of %s: %s", [
		count(all), names[kind],
		concat("; ", sort({sprintf("%s in %s%s", [core, facts.list({l.path | some l in copies}), layers(copies)]) | some core, copies in all})),
	]),
	"severity": "medium",
	"confidence": "likely",
	"evidence": sort({image_files.evidence(l) | some _, copies in all; some l in copies}),
	"remedies": ["same-nccl-everywhere"],
} if {
	some kind, all in versions
	count(all) > 1
}

layers(copies) := min({image_files.layer(l) | some l in copies})

# built are the releases of CUDA that the Python packages around PyTorch are built for.
built[major] contains p if {
	some p in input.libraries.packages
	regex.match(`^(torch|nvidia-nccl|nvidia-cuda-runtime|nvidia-cublas|nvidia-cudnn)(-|$)`, p.name)
	major := image_files.cuda_major(sprintf("%s %s", [p.name, p.version]))
}

findings contains {
	"subject": "packages",
	"message": sprintf("The Python packages are built for different releases of CUDA: %s. Packages of one library for two releases overwrite each other's files, and PyTorch fails or loads the wrong one", [
		concat("; ", sort({sprintf("CUDA %d: %s", [major, facts.list({sprintf("%s %s", [p.name, p.version]) | some p in packages})]) | some major, packages in built})),
	]),
	"severity": "medium",
	"confidence": "likely",
	"evidence": sort({image_files.package_evidence(p) | some _, packages in built; some p in packages}),
	"remedies": ["same-nccl-everywhere"],
} if count(built) > 1

# relevant are the libraries without which an image has nothing to judge.
relevant := {"libnccl", "librccl", "libcuda", "libnvidia-ml", "libcudart", "libamdhip64", "libhsa-runtime64", "libcudnn"}

missing contains {"fact": "libraries.files", "words": "the image holds no library of CUDA, ROCm, NCCL or RCCL in the places where programs look"} if {
	input.libraries
	count(image_files.kinds & relevant) == 0
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
