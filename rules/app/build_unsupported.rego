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
#   remedies: [install-matching-wheels, fix-application, fix-visible-devices, hsa-env, other]
#   explains: [architecture > nccl-bug, pack > app-failure/signal]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.build_unsupported
