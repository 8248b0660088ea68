package gpudoctor.lib.known_faults_test

import data.gpudoctor.lib.known_faults
import data.gpudoctor.lib.library_versions

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

# The message of 2.25 has no architecture in it; newer ones have.
test_telltale_without_a_version if {
	m := message("nccl-shared-memory-exceeded", {"needed": "82240"}, "exceeds")
	faults(log([], [m])) == {"blackwell-shared-memory"}
	n := message("nccl-shared-memory-exceeded", {"arch": "1200"}, "exceeds")
	faults(log([], [n])) == set()
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
	"nvls-silent-fallback" in faults(object.union(log([loaded("2.27.7")], [hang]), {"gpus": {"nvswitches": 4}}))
}

test_failures if {
	segments := {"env": {"variables": [{"name": "PYTORCH_CUDA_ALLOC_CONF", "value": "expandable_segments:True", "effective": true}]}}
	"nvls-registration-crash" in faults(object.union(object.union(log([loaded("2.27.7")], [crash]), gpus(["NVIDIA H200"])), segments))
	virtual := {"pci": {"devices": [{"address": "0000:01:00.0", "kind": "nic", "no_numa_node": true}]}}
	"numa-minus-one" in faults(object.union(log([loaded("2.21.5")], [crash]), virtual))
	"tree-ll128" in faults(object.union(log([loaded("2.17.1")], []), {"benchmarks": [{"wrong": 4, "source": "b", "line": 2}]}))
	"ll128-nvlink-down" in faults(log([loaded("2.10.3")], [message("model-output-degenerate", {}, "!!!!")]))
	memory := message("torch-out-of-memory", {}, "CUDA out of memory")
	"graph-memory" in faults(log([loaded("2.19.3"), package_("vllm", "0.4.0", "log")], [memory]))
	gdr := message("nccl-gdr-nic-disabled", {}, "GPU Direct RDMA Disabled for HCA 0 'mlx5_0'")
	"peermem-kernel-6-6" in faults(object.union(log([loaded("2.22.3")], [gdr]), {"host": {"kernel": "6.8.0-71-generic"}}))
}

amd(architecture) := {"gpus": {"devices": [{"address": "GPU0", "vendor": "amd", "architecture": architecture, "name": "AMD Radeon"}]}}

test_rocm if {
	faults(object.union(log([package_("rocm", "7.2.1", "rocm")], [hang]), amd("gfx1201"))) == {"gfx12-ll"}
	faults(object.union(log([package_("rocm", "7.1.1", "rocm")], []), amd("gfx1201"))) == set()
	"before-gfx12" in faults(object.union(log([package_("rocm", "6.2.0", "rocm")], [fail]), amd("gfx1201")))
	"mi350-ll" in faults(object.union(log([package_("rocm", "7.0.1", "rocm")], [hang]), amd("gfx950")))
	"pollara-alltoall" in faults(object.union(log([package_("rocm", "7.1.1", "rocm"), package_("rccl", "2.27.7", "log")], []), {"pci": {"devices": [{"address": "0000:01:00.0", "kind": "nic", "vendor": "0x1dd8"}]}}))
	gdr := message("nccl-gdr-nic-disabled", {}, "GPU Direct RDMA Disabled for HCA 0 'bnxt_re0'")
	"kernel-6-8-gdr" in faults(object.union(object.union(log([package_("rocm", "6.2.1", "rocm")], [gdr]), amd("gfx942")), {"host": {"kernel": "6.8.0-71-generic"}}))
	library_versions.on_amd with input as {"logs": {"messages": [object.union(hang, {"program": "rccl"})]}}
}

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
