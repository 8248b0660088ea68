package gpudoctor.rules.job_libraries_test

import data.gpudoctor.rules.job_libraries

found(l) := all if all := {f.subject | some f in job_libraries.findings} with input as {"launches": [l]}
image(more) := object.union({"kind": "dockerfile", "source": "Dockerfile", "line": 1}, more)
path(value) := image({"variables": {"LD_LIBRARY_PATH": value}})

test_fires if {
	found(image({"packages": ["libnvidia-compute-550"]})) == {"libnvidia-compute-550"}
	found(path("/a:/usr/local/cuda/lib64/stubs")) == {"/usr/local/cuda/lib64/stubs"}
	found(image({"packages": ["libnccl2"], "python_packages": ["nvidia-nccl-cu12==2.20.5"]})) == {"NCCL"}
}

test_silent if found(image({"packages": ["libnccl2", "libcudnn9-cuda-12"], "python_packages": ["torch"]})) == set()
test_unresolvable if count(job_libraries.missing) == 1 with input as {"launches": [image({"unknown": {"variables[LD_LIBRARY_PATH]": "$X"}})]}
