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
#   grades:
#     several: >-
#       The image holds {versions:version} of {library}: {copies}[. The loader takes {taken}][. PyTorch's own libraries
#       name {named}]
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

# Several versions, and which copy the loader gives to a program, and which one PyTorch's own libraries name (DT_RPATH
# and DT_RUNPATH); without either the loader finds none.
findings contains {
	"grade": "several",
	"subject": lower(names[kind]),
	"about": {
		"library": names[kind], "versions": count(all),
		"copies": {sprintf("%s in %s", [core, facts.list({l.path | some l in copies})]) | some core, copies in all},
		"taken": [sprintf("%s (found by %s)", [l.path, l.found_by]) | l := taken(kind)],
		"named": [l.path | l := named(kind)],
	},
	"severity": "medium",
	"evidence": sort({image_files.evidence(l) | some _, copies in all; some l in copies}),
	"remedies": ["same-nccl-everywhere"],
} if {
	some kind, all in versions
	count(all) > 1
}

# named is the first copy in the folders that PyTorch's library names.
named(kind) := [l |
	some torch in image_files.files
	torch.kind == {"libnccl": "libtorch_cuda", "librccl": "libtorch_hip"}[kind]
	some field in ["rpath", "runpath"]
	some folder in torch[field]
	some l in in_folder[kind][folder]
][0]

in_folder[l.kind][regex.replace(l.path, `/[^/]*$`, "")] contains l if {
	some l in image_files.files
	l.kind in object.keys(names)
}

taken(kind) := min({l | some l in image_files.files; l.kind == kind; l.loads})

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
	"evidence": sort({image_files.package_evidence(p) | some _, packages in built; some p in packages}),
	"remedies": ["same-nccl-everywhere"],
} if count(built) > 1

newer contains [l.path, l, major] if {
	some [_, l] in image_files.copies("libnccl")
	major := image_files.cuda_major(l.version)
	max({r.release[0] | some r in image_files.runtimes}) < major
}

findings contains {
	"subject": "nccl",
	"message": sprintf("NCCL %s in %s%s is built for CUDA %d, but the CUDA runtime of the image is %s: the image needs a driver for the newer of the two", [
		l.version, l.path, image_files.layer(l), major, facts.list({r.library.version | some r in image_files.runtimes}),
	]),
	"severity": "medium",
	"confidence": "possible",
	"evidence": array.concat(sort({image_files.evidence(n[1]) | some n in newer}), sort({image_files.evidence(r.library) | some r in image_files.runtimes})),
	"remedies": ["same-nccl-everywhere"],
} if [_, l, major] := sort(newer)[0]

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
