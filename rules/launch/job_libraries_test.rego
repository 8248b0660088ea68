package gpudoctor.rules.job_libraries_test

import data.gpudoctor.rules.job_libraries

found(l) := all if all := {[f.subject, object.get(f, "severity", "high")] | some f in job_libraries.findings} with input as {"profile": "launch", "launches": [l]}

open(l) := n if n := count(job_libraries.missing) with input as {"profile": "launch", "launches": [l]}

image := {"kind": "dockerfile", "image": "nvidia/cuda:12.4.1-devel-ubuntu22.04", "source": "Dockerfile", "line": 1}

path(value) := object.union(image, {"variables": {"LD_LIBRARY_PATH": value}})

test_fires if {
	found(object.union(image, {"packages": ["libnvidia-compute-550"]})) == {["libnvidia-compute-550", "high"]}
	found(path("/a:/usr/local/cuda/lib64/stubs")) == {["/usr/local/cuda/lib64/stubs", "high"]}
	found(path("/usr/local/cuda-12.4/compat:/usr/local/nvidia/lib64")) == {["/usr/local/cuda-12.4/compat", "medium"]}
	found(object.union(path("/usr/local/cuda/compat"), {"kind": "kubernetes"})) == {["/usr/local/cuda/compat", "medium"]}
	found(object.union(image, {"packages": ["libnccl2"], "python_packages": ["nvidia-nccl-cu12==2.20.5"]})) == {["NCCL", "medium"]}
}

test_silent if {
	found(image) == set()
	found(path("/usr/local/nvidia/lib64:/usr/local/cuda/compat")) == set()
	found(path("/usr/local/cuda/lib64:/opt/compat")) == set()
	found(object.union(image, {"packages": ["libnccl2", "libcudnn9-cuda-12"], "python_packages": ["torch"]})) == set()
}

test_unresolvable if {
	unknown := object.union(image, {"unknown": {"variables[LD_LIBRARY_PATH]": "$X"}})
	found(unknown) == set()
	open(unknown) == 1
}
