package gpudoctor.lib.known_faults_test

import data.gpudoctor.lib.known_faults

message(id, fields, text) := {"id": id, "program": "nccl", "role": "category", "text": text, "fields": fields, "source": "a.log", "line": 3, "order": 2, "count": 1, "ranks": 1}

package_(name, version, manager) := {"name": name, "version": version, "manager": manager, "source": "a.log", "line": 1}

log(software, messages) := {"software": software, "logs": {"messages": messages}}

hang := message("torch-watchdog-timeout", {}, "ran for 600000 milliseconds")

crash := message("process-segmentation-fault", {}, "Signal 11 (SIGSEGV)")

fail := message("nccl-unhandled-cuda-error", {}, "unhandled cuda error")

loaded(version) := package_("nccl", version, "log")

faults(document) := ids if {
	ids := {f.row.id | some f in known_faults.found[_]} with input as document
}

# Each row is complete, and its versions are versions.
test_rows_are_complete if {
	every row in known_faults.rows {
		row.id
		row.library in {"nccl", "rccl", "rocm"}
		row.confidence in {"confirmed", "likely", "possible"}
		count(row.remedies) > 0
		startswith(row.source, "https://")
		row.what
		object.get(row, "symptom", "hang") in {"hang", "crash", "fail", "corrupt", "stall"}
	}
	count({row.id | some row in known_faults.rows}) == count(known_faults.rows)
	count(known_faults.rows) >= 40
}

test_ranges if {
	row := {"since": "2.24.3", "fixed": "2.26.3"}
	known_faults.in_range(row, "2.24.3")
	known_faults.in_range(row, "2.26.2+cuda12.8")
	not known_faults.in_range(row, "2.26.3")
	not known_faults.in_range(row, "2.23.4")
	known_faults.in_range({"fixed": "2.15.1"}, "2.4.8")
	known_faults.range_words(row) == "2.24.3 up to before 2.26.3"
	known_faults.range_words({"fixed": "2.3"}) == "all before 2.3"
	known_faults.range_words({}) == "no version without it is known"
}

test_reverse_path_of_old_versions if {
	m := message("nccl-topo-no-reverse-path", {}, "Failed to find reverse path")
	faults(log([loaded("2.14.3")], [m])) == {"nvlinks-beyond-twelve"}
	faults(log([loaded("2.6.4")], [m])) == {"nvlinks-beyond-six"}
	faults(log([loaded("2.19.3")], [m])) == set()
	faults(log([], [m])) == set()
}

# The message of 2.25 has no architecture in it; newer ones have.
test_telltale_without_a_version if {
	m := message("nccl-shared-memory-exceeded", {"needed": "82240"}, "exceeds")
	{f.row.id | some f in known_faults.telltale.nccl} == {"blackwell-shared-memory"} with input as log([], [m])
	n := message("nccl-shared-memory-exceeded", {"arch": "1200"}, "exceeds")
	object.get(known_faults.telltale, "nccl", set()) == set() with input as log([], [n])
}

# What was loaded counts before what is installed, and installed ones count only
# where they agree.
test_which_version_counts if {
	both := [loaded("2.28.9"), package_("nvidia-nccl-cu12", "2.14.3", "pip")]
	{u.version | some u in known_faults.used.nccl} == {"2.28.9"} with input as log(both, [])
	{u.version | some u in known_faults.used.nccl} == {"2.27.7"} with input as log([package_("libnccl2", "2.27.7-1+cuda12.9", "dpkg"), package_("nccl", "2.27.7.1", "conda")], [])
	two := [package_("nvidia-nccl-cu11", "2.14.3", "pip"), package_("nvidia-nccl-cu12", "2.20.5", "pip")]
	not known_faults.version_known.nccl with input as log(two, [])
	not known_faults.version_known.nccl with input as log([loaded("2.27.7"), package_("rocm", "7.2.1", "rocm")], [])
	{u.version | some u in known_faults.used.rccl} == {"2.22.3"} with input as log([package_("rccl", "2.22.3", "log")], [])
	live := {"libraries": {"files": [{"kind": "libnccl", "path": "/x/libnccl.so.2", "version": "2.27.3", "found_by": "python"}]}}
	{u.version | some u in known_faults.used.nccl} == {"2.27.3"} with input as live
}

gpus(names) := {"gpus": {"devices": [{"address": sprintf("GPU%d", [i]), "vendor": "nvidia", "name": name} | some i, name in names]}}

test_architectures if {
	faults(object.union(log([loaded("2.14.3")], [fail]), gpus(["NVIDIA H100 80GB HBM3"]))) == {"before-hopper"}
	faults(object.union(log([loaded("2.6.4")], [fail]), gpus(["NVIDIA A100-SXM4-40GB"]))) == {"before-ampere"}
	faults(object.union(log([loaded("2.21.5")], [fail]), gpus(["NVIDIA B200"]))) == {"before-blackwell"}
	faults(object.union(log([loaded("2.25.1")], [fail]), gpus(["NVIDIA GeForce RTX 5090"]))) == {"blackwell-workstation"}
	faults(object.union(log([loaded("2.26.2")], [fail]), gpus(["NVIDIA GB10"]))) == {"before-spark"}
	faults(object.union(log([loaded("2.27.6")], [fail]), gpus(["NVIDIA L4"]))) == {"fp8-kernels-before-blackwell"}
	faults(object.union(log([loaded("2.14.3")], []), gpus(["NVIDIA H100 80GB HBM3"]))) == set()
	benchmark := {"benchmarks": [{"gpu_names": ["NVIDIA H100 PCIe"], "source": "b", "line": 1}]}
	faults(object.union(log([loaded("2.14.3")], [fail]), benchmark)) == {"before-hopper"}
}

test_hangs if {
	faults(object.union(log([loaded("2.28.9")], [hang]), gpus(["NVIDIA GB200"]))) == {"arm-proxy-slots", "nvls-silent-fallback"}
	"arm-proxy-slots" in faults(object.union(log([loaded("2.21.5")], [hang]), {"host": {"arch": "arm64"}}))
	faults(log([loaded("2.29.2")], [hang])) == {"regression-2-29-2"}
	faults(log([loaded("2.30.7")], [hang])) == set()
	"mixed-gpus" in faults(object.union(log([loaded("2.21.5")], [hang]), gpus(["NVIDIA A100-PCIE-40GB", "NVIDIA L40S"])))
	"launch-blocking" in faults(object.union(log([loaded("2.14.3")], [hang]), {"env": {"variables": [{"name": "CUDA_LAUNCH_BLOCKING", "value": "1", "effective": true}]}}))
	nodes := {"logs": {"communicators": [{"nodes": 2, "library": "nccl", "ranks": 16}], "messages": [hang]}}
	"mixed-cpus" in faults(object.union({"software": [loaded("2.20.5")]}, nodes))
	hosts := {"logs": {"communicators": [{"hosts": ["a", "b"], "library": "nccl", "ranks": 16}], "messages": [hang]}}
	"mixed-cpus" in faults(object.union({"software": [loaded("2.20.5")]}, hosts))
	off := {"env": {"variables": [{"name": "NCCL_NET_GDR_LEVEL", "value": "LOC", "effective": true}]}}
	"gdr-off-cx8" in faults(object.union(object.union(log([loaded("2.28.9")], [hang]), gpus(["NVIDIA GB300"])), off))
	plugin := {"logs": {"networks": [{"name": "AWS Libfabric"}], "messages": [hang]}}
	"plugin-test-error" in faults(object.union({"software": [loaded("2.20.5")]}, plugin))
	split := message("x", {}, "ncclCommSplit comm 0x1 rank 0")
	"split-share-connect" in faults(log([loaded("2.22.3")], [hang, split]))
	pair := {"pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "kind": "gpu-gpu", "nvlinks": 1, "nvswitch": true}]}
	"cubemesh" in faults(object.union(object.union(log([loaded("2.9.9")], [hang]), gpus(["Tesla V100-SXM2-16GB"])), {"links": pair}))
	"nvls-silent-fallback" in faults(object.union(log([loaded("2.27.7")], [hang]), {"gpus": {"nvswitches": 4}}))
}

test_failures if {
	segments := {"env": {"variables": [{"name": "PYTORCH_CUDA_ALLOC_CONF", "value": "expandable_segments:True", "effective": true}]}}
	"nvls-registration-crash" in faults(object.union(object.union(log([loaded("2.27.7")], [crash]), gpus(["NVIDIA H200"])), segments))
	virtual := {"pci": {"devices": [{"address": "0000:01:00.0", "kind": "nic", "numa_node": -1}]}}
	"numa-minus-one" in faults(object.union(log([loaded("2.21.5")], [crash]), virtual))
	"tree-ll128" in faults(object.union(log([loaded("2.17.1")], []), {"benchmarks": [{"wrong": 4, "source": "b", "line": 2}]}))
	"ll128-nvlink-down" in faults(log([loaded("2.10.3")], [message("llm-output-garbage", {}, "!!!!")]))
	memory := message("torch-out-of-memory", {}, "CUDA out of memory")
	"graph-memory" in faults(log([loaded("2.19.3"), package_("vllm", "0.4.0", "log")], [memory]))
	gdr := message("nccl-gdr-nic-disabled", {}, "GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")
	"peermem-kernel-6-6" in faults(object.union(log([loaded("2.22.3")], [gdr]), {"host": {"kernel": "6.8.0-71-generic"}}))
}

amd(architecture) := {"gpus": {"devices": [{"address": "GPU0", "vendor": "amd", "architecture": architecture, "name": "AMD Radeon"}]}}

test_rocm if {
	faults(object.union(log([package_("rocm", "7.2.1", "rocm")], []), amd("gfx1201"))) == {"gfx12-ll"}
	faults(object.union(log([package_("rocm", "7.1.1", "rocm")], []), amd("gfx1201"))) == set()
	"before-gfx12" in faults(object.union(log([package_("rocm", "6.2.0", "rocm")], [fail]), amd("gfx1201")))
	"mi350-ll" in faults(object.union(log([package_("rocm", "7.0.1", "rocm")], [hang]), amd("gfx950")))
	"pollara-alltoall" in faults(object.union(log([package_("rocm", "7.1.1", "rocm")], []), {"pci": {"devices": [{"address": "0000:01:00.0", "kind": "nic", "vendor": "0x1dd8"}]}}))
	gdr := message("nccl-gdr-nic-disabled", {}, "GPU Direct RDMA Disabled for HCA 0 'bnxt_re0'")
	"kernel-6-8-gdr" in faults(object.union(object.union(log([package_("rocm", "6.2.1", "rocm")], [gdr]), amd("gfx942")), {"host": {"kernel": "6.8.0-71-generic"}}))
	known_faults.on_amd with input as {"logs": {"messages": [object.union(hang, {"program": "rccl"})]}}
}

test_nothing_of_nothing if faults({}) == set()

# RCCL's log names the kernel, and no release of ROCm.
test_faults_of_rccl_by_its_log if {
	gdr := message("nccl-gdr-nic-disabled", {}, "GPU Direct RDMA Disabled for HCA 0 'bnxt_re0'")
	"kernel-6-8-gdr-rccl" in faults(log([package_("rccl", "2.20.5", "log"), package_("kernel", "6.8.0-44-generic", "log")], [gdr]))
	not "kernel-6-8-gdr-rccl" in faults(log([package_("rccl", "2.20.5", "log"), package_("kernel", "5.15.0-44-generic", "log")], [gdr]))
	not "kernel-6-8-gdr-rccl" in faults(log([package_("rccl", "2.21.5", "log"), package_("kernel", "6.8.0-44-generic", "log")], [gdr]))
	captured := message("hip-captured-event", {}, "HIP error: operation not permitted when stream is capturing")
	"hip-captured-event" in faults(log([package_("rocm", "7.2.0", "rocm")], [captured]))
	not "hip-captured-event" in faults(log([package_("rocm", "6.4.0", "rocm")], [captured]))
}
