package gpudoctor.rules.cuda_driver_too_old_test

import data.gpudoctor.rules.cuda_driver_too_old

runtime(more) := object.union({"kind": "libcudart", "path": "/venv/nvidia/cuda_runtime/lib/libcudart.so", "version": "13.0.88", "found_by": "python"}, more)
compat(more) := object.union({"kind": "libcuda", "path": "/usr/local/cuda/compat/libcuda.so.1", "version": "580.65.06", "compat": true}, more)

# machine has a driver that serves CUDA 12.4, and these libraries.
machine(libraries) := {
	"gpus": {
		"nvml": "ok", "driver": {"cuda_version": "12.4"},
		"devices": [{"address": "0000:01:00.0", "vendor": "nvidia", "in_pci": true, "in_nvml": true}],
	},
	"libraries": {"files": libraries},
}

serving(version) := {"gpus": {"driver": {"cuda_version": version}}}
packages(list) := {"software": [{"name": name, "version": version, "manager": "pip", "source": "a.txt", "line": 1} |
	some name, version in list
]}

test_findings if {
	every row in [
		# A toolkit that lies beside is used by nobody, and what the probe found decides.
		[[machine([runtime({"found_by": "toolkit"})])], set()],
		[[machine([runtime({}), compat({"loads": true})])], set()],
		[[machine([runtime({})]), {"transfers": {"driver_version": "13.0"}}], set()],
		[[serving("12.8"), packages({"torch": "2.9.0+cu130"})], {13}],
		[[serving("12.8"), packages({"nvidia-cuda-runtime": "13.0.96", "nvidia-nccl-cu13": "2.28.9"})], {13}],
		[[serving("12.8"), packages({"torch": "2.6.0+cu124"})], set()],
		[[serving("12.8"), packages({"nvidia-nccl-cu12": "2.21.5", "nvidia-nccl-cu13": "2.28.9"})], set()],
	] {
		found := cuda_driver_too_old.findings with input as object.union_n(row[0])
		{f.about.release | some f in found} == row[1]
	}
}

test_unresolvable if count(cuda_driver_too_old.findings) == 0 with input as {"libraries": {"files": [runtime({})]}}
