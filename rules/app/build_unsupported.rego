# METADATA
# title: The program is not built for this GPU or platform
# description: >-
#   A program contains code for the GPU generations that it was built for, and a framework may be built without CUDA or
#   NCCL. Elsewhere, its first kernel or first process group fails.
# related_resources:
#   - {ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html, description: CUDA_ERROR_NO_BINARY_FOR_GPU}
#   - {ref: https://docs.nvidia.com/cuda/blackwell-compatibility-guide/index.html, description: Which code runs on newer GPUs}
#   - {ref: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html, description: Architectures}
# custom:
#   severity: high
#   confidence: confirmed
#   texts_only: true
#   needs: [job-told]
#   remedies: [install-matching-wheels, fix-application, fix-visible-devices, hsa-env, unset-env, install-rdma-libraries, upgrade-nccl, other]
#   explains: [architecture > nccl-bug, pack > app-failure/signal, instruction > app-failure/signal, no-kernels > app-failure/signal]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.build_unsupported

import data.gpudoctor.lib.conditions_gpu
import data.gpudoctor.lib.conditions_job
import data.gpudoctor.lib.conditions_network
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.surroundings
import data.tables.thresholds

# PyTorch holds code for the generations of GPUs that the compiler of its CUDA knew.
findings contains {
	"id": "architecture",
	"subject": "GPUs",
	"message": sprintf("PyTorch is built for CUDA %s, which makes no code for the GPU %s (compute capability %s needs CUDA %s). Install a build for a newer CUDA", [cuda, model.name, model.compute_capability, needed]),
	"severity": {true: "high", false: "medium"}[logs.failed],
	"confidence": "likely",
	"remedies": ["install-matching-wheels"],
	"evidence": [{"fact": "software.version", "value": sprintf("%s %s", [p.name, p.version]), "source": sprintf("%s:%d", [p.source, p.line])}],
} if {
	count(logs.messages({"torch-arch-unsupported", "torch-arch-warned"})) == 0
	p := [p | some p in input.software; built_for(p)][0]
	cuda := built_for(p)
	some model in gpu_models.model
	needed := thresholds.cuda_for_capability[model.compute_capability]
	surroundings.version(cuda) < surroundings.version(needed)
}

# built_for is the CUDA for which a PyTorch is built, of which it says so.
built_for(p) := p.version if [p.name, p.manager] == ["cuda-runtime", "collect_env"]

built_for(p) := sprintf("%s.%s", [major, minor]) if {
	p.name == "torch"
	[_, major, minor] := regex.find_all_string_submatch_n(`\+cu(\d\d)(\d)`, p.version, 1)[0]
}

# MPI copies a message by the processor, high in the stack of a process that died: the program gave it GPU memory.
findings contains {
	"id": "pack",
	"subject": "MPI",
	"message": "MPI failed while the processor copied the data of a message: the program gave it GPU memory, which this build of MPI does not support (ompi_info | grep -e cuda -e rocm -e accelerator). Use a build with support for GPUs, or the program's option that sends from host memory",
	"severity": "high",
	"confidence": "likely",
	"remedies": ["install-matching-wheels", "fix-application", "other"],
	"messages": copies,
} if count(copies) > 0

copies contains m if some m in logs.by_id["openmpi-crash-in-pack"]

copies contains m if {
	some m in logs.by_id["openmpi-built-without-gpu"]
	"process_crashed" in conditions_gpu.holds
}

copies contains m if {
	some m in logs.by_id["stack-in-mpi-shared-memory"]
	regex.match(`(?:^|\] )\[ *[0-3]\]|^ *[0-4] `, m.text)
	not "pid_twice" in conditions_gpu.holds
}

# The kernel cannot read GPU memory for another process (EFAULT of process_vm_readv).
copies contains m if {
	some m in logs.by_id["openmpi-cma-short"]
	"gpu_job" in conditions_job.holds
}

findings contains {
	"id": "ucx",
	"subject": "UCX",
	"message": "UCX takes GPU memory for host memory, so NIXL cannot register it: UCX does not find its modules for GPUs (UCX_MODULE_DIR; ucx_info -d lists the transports), or was built without them",
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["install-matching-wheels", "fix-application"],
	"messages": logs.by_id["ucx-gpu-memory-as-host"],
} if not "ucx_tls_without_gpus" in conditions_network.holds

findings contains {
	"id": "verbs",
	"subject": "libibverbs",
	"message": "The image has no libibverbs: NCCL cannot use the RDMA devices, and uses TCP, which is several times slower",
	"severity": "high",
	"confidence": "likely",
	"remedies": ["install-rdma-libraries"],
	"messages": without_verbs,
} if count(without_verbs) > 0

without_verbs contains m if some m in logs.by_id["prose-no-verbs"]

# A machine without RDMA devices needs none.
without_verbs contains m if {
	some m in logs.by_id["nccl-ib-libverbs-missing"]
	rdma_meant
}

# rdma_meant: its devices or the interface of one are chosen, or somebody writes of them.
rdma_meant if facts.env.NCCL_IB_HCA != ""
rdma_meant if "ib" in {substring(name, 0, 2) | some name in networks.patterns(networks.asked)}
rdma_meant if input.texts[_].topics[_].cause == "ib-port-down"

# A processor refuses an instruction that it does not have.
findings contains {
	"id": "instruction",
	"subject": "job",
	"message": "A process of the job was ended by SIGILL, an instruction that the processor does not have: the program or a library is built for another processor (-march, AVX-512, AMX). Build it for this one, or run it on a node that has the instruction",
	"confidence": "likely",
	"remedies": ["fix-application", "install-matching-wheels"],
	"evidence": [{"fact": "logs.deaths", "value": input.logs.job.first.text, "source": logs.at(input.logs.job.first)}],
} if input.logs.job.first.class == "SIGILL"
