package gpudoctor.rules.nccl_in_image_test

import data.gpudoctor.rules.nccl_in_image as r

lib(path, version, found_by) := {"kind": "libnccl", "path": path, "version": version, "found_by": found_by}
taken(path, version, found_by) := object.union(lib(path, version, found_by), {"loads": true})
image(files) := {"profile": "image", "libraries": {"files": files}}

first := taken("/usr/lib/libnccl.so.2", "2.18.3", "ld_cache")
wheel := lib("/site/nvidia/nccl/lib/libnccl.so.2", "2.26.2", "python")

takes(document) := [f.about.taken, f.about.named] if some f in r.findings with input as document

says(document, words) if {
	some f in r.findings with input as document
	contains(f.message, words)
}

torch(more) := object.union({"kind": "libtorch_cuda", "path": "/site/torch/lib/libtorch_cuda.so", "found_by": "python"}, more)

own := ["/site/nvidia/cublas/lib", "/site/nvidia/nccl/lib"]

test_which_one_programs_get if {
	files := [taken("/opt/libnccl.so.2", "2.18.3", "ld_library_path"), wheel]
	takes(image(files)) == [["/opt/libnccl.so.2 (found by ld_library_path)"], []]
	every field in ["rpath", "runpath"] {
		takes(image(array.concat(files, [torch({field: own})])))[1] == ["/site/nvidia/nccl/lib/libnccl.so.2"]
	}
}

test_fires_packages if says(
	{"libraries": {"files": [wheel], "packages": [
		{"name": "torch", "version": "2.3.0+cu118", "path": "/site/torch-2.3.0+cu118.dist-info"},
		{"name": "nvidia-nccl-cu12", "version": "2.26.2", "path": "/site/nvidia_nccl_cu12-2.26.2.dist-info"},
	]}},
	"CUDA 11: torch 2.3.0+cu118; CUDA 12: nvidia-nccl-cu12 2.26.2",
)

test_fires_runtime if says(
	image([
		taken("/usr/lib/libnccl.so.2", "2.26.2+cuda12.2", "ld_cache"),
		{"kind": "libcudart", "path": "/c/libcudart.so.11.0", "version": "11.8.89", "found_by": "ld_cache"},
	]),
	"is built for CUDA 12, but the CUDA runtime of the image is 11.8.89",
)

test_unresolvable if {
	count(r.missing) == 1 with input as image([first, {"kind": "libnccl", "path": "/o/libnccl.so.2", "found_by": "toolkit"}])
	count(r.missing) == 1 with input as object.union(image([first]), {"image": {"unread": ["/root"]}})
}
