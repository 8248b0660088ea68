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

said(id, fields) := {"logs": {"messages": [{
	"id": id, "program": "x", "role": "cause", "text": "x", "fields": fields, "source": "app.log", "line": 1, "order": 2,
}]}}

graphs := said("nccl-cuda-graphs-unsupported", {})
driver(version) := {"gpus": {"driver": {"version": version}}}
serving(version) := {"gpus": {"driver": {"cuda_version": version}}}
packages(list) := {"software": [{"name": name, "version": version, "manager": "pip", "source": "a.txt", "line": 1} |
	some name, version in list
]}

failed := said("nccl-unhandled-cuda-error", {})

test_findings if {
	every row in [
		# A toolkit that lies beside is used by nobody, and what the probe found decides.
		[[machine([runtime({"found_by": "toolkit"})])], set()],
		[[machine([runtime({}), compat({"loads": true})])], set()],
		[[machine([runtime({})]), {"transfers": {"driver_version": "13.0"}}], set()],
		[[machine([{"kind": "libnccl", "path": "/x/libnccl.so.2", "version": "2.28.9+cuda13.0", "found_by": "python"}])], {["built", 13]}],
		[[said("cuda-compat-unsupported", {})], {["compat", 0]}],
		[[said("nccl-cuda-driver-too-old", {"error": "35"})], {["told", 0]}],
		[[said("container-cuda-requirement", {"wanted": "12.4"})], {["told", 12]}],
		[[serving("12.8"), packages({"torch": "2.9.0+cu130"})], {["built", 13]}],
		[[serving("12.8"), packages({"nvidia-cuda-runtime": "13.0.96", "nvidia-nccl-cu13": "2.28.9"})], {["built", 13]}],
		[[serving("12.8"), packages({"torch": "2.6.0+cu124"})], set()],
		[[serving("12.8"), packages({"nvidia-nccl-cu12": "2.21.5", "nvidia-nccl-cu13": "2.28.9"})], set()],
		[[graphs, driver("450.80.02")], {["told", 0]}],
		[[graphs, driver("510.47.03")], set()],
		# A package of NCCL for a newer CUDA than the driver serves.
		[[packages({"libnccl2": "2.1.2-1+cuda9.0"}), driver("375.66"), failed], {["built", 9]}],
		[[packages({"libnccl2": "2.21.5-1+cuda12.4"}), driver("470.82.01")], {["built", 12]}],
		[[packages({"libnccl2": "2.9.8-1+cuda10.2"}), driver("440.33.01"), failed], set()],
	] {
		found := cuda_driver_too_old.findings with input as object.union_n(row[0])
		{[f.grade, object.get(f.params, "cuda", 0)] | some f in found} == row[1]
	}
}

test_what_is_said if {
	some f in cuda_driver_too_old.findings with input as object.union_n([
		said("cuda-insufficient-driver", {}), serving("11.4"),
		packages({"torch": "2.7.0+cu128", "cuda-runtime": "12.8.57"}),
	])
	[f.confidence, f.params, f.about.served] == ["confirmed", {"cuda": 12, "driver": 525}, ["11.4"]]
	some g in cuda_driver_too_old.findings with input as machine([runtime({}), compat({})])
	count(g.about.compat) == 1
	some h in cuda_driver_too_old.findings with input as object.union(said("cuda-insufficient-driver", {}), {"launches": [{"kind": "docker-run", "source": "a.txt", "line": 1}]})
	h.confidence == "possible"
}

test_unresolvable if count(cuda_driver_too_old.missing) == 1 with input as {"libraries": {"files": [runtime({})]}}
