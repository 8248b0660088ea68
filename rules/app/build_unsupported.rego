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
#   remedies: [install-matching-wheels, fix-application, fix-visible-devices, hsa-env, unset-env, other]
#   explains: [architecture > nccl-bug, pack > app-failure/signal, instruction > app-failure/signal, no-kernels > app-failure/signal]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.build_unsupported

import data.gpudoctor.lib.gpu_models
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.thresholds

# PyTorch holds code for the generations of GPUs that the compiler of its CUDA knew.
findings contains {
	"id": "architecture",
	"subject": "GPUs",
	"message": sprintf("PyTorch is built for CUDA %s, which makes no code for the GPU %s (compute capability %s needs CUDA %s). Install a build for a newer CUDA", [cuda, model.name, model.compute_capability, needed]),
	"severity": {true: "high", false: "medium"}[failed],
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

default failed := false

failed if logs.failed

# built_for is the CUDA for which a PyTorch is built, of which it says so.
built_for(p) := p.version if [p.name, p.manager] == ["cuda-runtime", "collect_env"]

built_for(p) := sprintf("%s.%s", [major, minor]) if {
	p.name == "torch"
	[_, major, minor] := regex.find_all_string_submatch_n(`\+cu(\d\d)(\d)`, p.version, 1)[0]
}

# A processor refuses an instruction that it does not have.
findings contains {
	"id": "instruction",
	"subject": "job",
	"message": "A process of the job was ended by SIGILL, an instruction that the processor does not have: the program or a library is built for another processor (-march, AVX-512, AMX). Build it for this one, or run it on a node that has the instruction",
	"confidence": "likely",
	"remedies": ["fix-application", "install-matching-wheels"],
	"evidence": [{"fact": "logs.deaths", "value": input.logs.job.first.text, "source": logs.at(input.logs.job.first)}],
} if input.logs.job.first.class == "SIGILL"
