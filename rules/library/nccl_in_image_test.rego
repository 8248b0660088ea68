package gpudoctor.rules.nccl_in_image_test

import data.gpudoctor.rules.nccl_in_image as r

lib(path, version, found_by) := {"kind": "libnccl", "path": path, "version": version, "found_by": found_by}
taken(path, version, found_by) := object.union(lib(path, version, found_by), {"loads": true})
image(files) := {"profile": "image", "libraries": {"files": files}}

first := taken("/usr/lib/libnccl.so.2", "2.18.3", "ld_cache")
wheel := lib("/site/nvidia/nccl/lib/libnccl.so.2", "2.26.2", "python")

takes(document) := f.about.taken if some f in r.findings with input as document

says(document, words) if {
	some f in r.findings with input as document
	words in f.about.packages
}

test_which_one_programs_get if {
	takes(image([taken("/opt/libnccl.so.2", "2.18.3", "ld_library_path"), wheel])) == {"/opt/libnccl.so.2 (found by ld_library_path)"}
}

test_fires_packages if says(
	{"libraries": {"files": [wheel], "packages": [
		{"name": "torch", "version": "2.3.0+cu118", "path": "/site/torch-2.3.0+cu118.dist-info"},
		{"name": "nvidia-nccl-cu12", "version": "2.26.2", "path": "/site/nvidia_nccl_cu12-2.26.2.dist-info"},
	]}},
	"CUDA 11: torch 2.3.0+cu118",
)

test_unresolvable if {
	count(r.missing) == 1 with input as image([first, {"kind": "libnccl", "path": "/o/libnccl.so.2", "found_by": "toolkit"}])
	count(r.missing) == 1 with input as object.union(image([first]), {"image": {"unread": ["/root"]}})
}
