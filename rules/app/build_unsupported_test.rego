package gpudoctor.rules.build_unsupported_test

import data.gpudoctor.rules.build_unsupported

ended_by(class) := {"logs": {"messages": [], "job": {"first": {"what": "signal", "class": class, "text": "a line", "source": "job.log", "line": 3}}}}

test_fires_on_an_instruction_that_the_processor_lacks if {
	{f.id | some f in build_unsupported.findings} == {"instruction"} with input as ended_by("SIGILL")
}

test_is_silent_on_other_signals if {
	count(build_unsupported.findings) == 0 with input as ended_by("SIGSEGV")
}

report(gpu, version) := {
	"gpus": {"devices": [{"name": gpu}]},
	"software": [object.union({"source": "a.txt", "line": 3, "manager": "collect_env"}, version)],
}

test_fires_on_a_pytorch_older_than_the_gpu if {
	every row in [
		["NVIDIA GeForce RTX 5090", {"name": "cuda-runtime", "version": "11.8"}],
		["NVIDIA B200", {"name": "torch", "version": "2.3.1+cu121"}],
		["NVIDIA H100 80GB HBM3", {"name": "torch", "version": "2.0.0+cu117"}],
	] {
		{[f.id, f.severity] | some f in build_unsupported.findings} == {["architecture", "medium"]} with input as report(row[0], row[1])
	}
	complains := {"logs": {"messages": [{"id": "x", "role": "category"}]}}
	some f in build_unsupported.findings with input as object.union(complains, report("NVIDIA GeForce RTX 5090", {"name": "cuda-runtime", "version": "11.8"}))
	f.severity == "high"
}

test_is_silent_on_a_pytorch_for_the_gpu if {
	every row in [
		["NVIDIA GeForce RTX 5090", {"name": "cuda-runtime", "version": "12.8"}],
		["NVIDIA GeForce RTX 4090", {"name": "torch", "version": "2.0.0+cu117"}], # It runs the code for 8.6.
		["NVIDIA GeForce RTX 5090", {"name": "torch", "version": "2.7.0"}], # It does not say for which CUDA.
		["NVIDIA GeForce RTX 5090", {"name": "cuda-runtime", "version": "11.8", "manager": "pip"}],
	] {
		count(build_unsupported.findings) == 0 with input as report(row[0], row[1])
	}
}

of(name, value) := {"env": {"variables": [{"name": name, "value": value, "effective": true, "source": "job.log"}]}}

said(id, text) := {"id": id, "role": "category", "text": text, "source": "job.log", "line": 3, "order": 1}

test_fires_where_the_processor_copies_gpu_memory if {
	every row in [
		["stack-in-mpi-shared-memory", "[ws04:21377] [ 2] /usr/lib/openmpi/mca_btl_vader.so(+0x2558)[0x7f5193bca558]", true],
		["openmpi-crash-in-pack", "[gpn12:20881] [ 9] /sw/lib/libopen-pal.so.80(opal_convertor_pack+0x18f)[0x7faaff0d2a1f]", true],
		["stack-in-mpi-shared-memory", " 3 0x0000000000042ab8 uct_mm_ep_am_short()  ???:0", true],
		["stack-in-mpi-shared-memory", "[ws04:21377] [ 8] /usr/lib/openmpi/mca_btl_vader.so(+0x2558)[0x7f5193bca558]", false],
		["openmpi-cma-short", "[ws04:21377] Read -1, expected 65536, errno = 14", false],
	] {
		found := {f.id | some f in build_unsupported.findings} with input as {"logs": {"messages": [said(row[0], row[1])]}}
		found == {id | id := "pack"; row[2]}
	}
	on_gpus := {"texts": [{"name": "issue.md", "gpu": "GeForce GTX 1080"}], "logs": {"messages": [said("openmpi-cma-short", "Read -1, expected 65536, errno = 14")]}}
	{f.id | some f in build_unsupported.findings} == {"pack"} with input as on_gpus
	built := said("openmpi-built-without-gpu", "mpi_built_with_cuda_support:value:false")
	every others, found in {set(): set(), {said("process-segmentation-fault", "Caught signal 11")}: {"pack"}} {
		{f.id | some f in build_unsupported.findings} == found with input as {"logs": {"messages": [m | some m in ({built} | others)]}}
	}
}

test_fires_where_ucx_has_no_gpu_support if {
	host := said("ucx-gpu-memory-as-host", "VRAM memory is detected as host by UCX.")
	{f.id | some f in build_unsupported.findings} == {"ucx"} with input as {"logs": {"messages": [host]}}
	told := object.union(said("trtllm-ucx-settings", "TransferAgent init: UCX_TLS=tcp"), {"fields": {"tls": "tcp"}})
	count(build_unsupported.findings) == 0 with input as {"logs": {"messages": [host, told]}}
}

test_fires_where_rdma_is_meant_and_libibverbs_missing if {
	missing := {"logs": {"messages": [said("nccl-ib-libverbs-missing", "Failed to open libibverbs.so[.1]")]}}
	every row in [
		[missing, false],
		[object.union(missing, of("NCCL_IB_HCA", "mlx5_0")), true],
		[object.union(missing, of("NCCL_SOCKET_IFNAME", "=ib0")), true],
		[object.union(missing, of("NCCL_SOCKET_IFNAME", "eth0")), false],
		[object.union(missing, {"texts": [{"name": "issue.md", "topics": [{"cause": "ib-port-down"}]}]}), true],
		[{"logs": {"messages": [said("prose-no-verbs", "no libibverbs")]}}, true],
	] {
		found := {f.id | some f in build_unsupported.findings} with input as row[0]
		found == {id | id := "verbs"; row[1]}
	}
}
