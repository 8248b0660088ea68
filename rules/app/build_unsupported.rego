# METADATA
# title: The program is not built for this GPU or platform
# description: >-
#   A CUDA or HIP program carries code for the generations of GPUs that it was
#   built for, and a build of a framework may leave out CUDA or NCCL altogether.
#   On another GPU or platform its first kernel or its first process group
#   fails. Communication has no part in it.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
#     description: CUDA_ERROR_NO_BINARY_FOR_GPU, no code of the program fits the GPU
#   - ref: https://docs.nvidia.com/cuda/blackwell-compatibility-guide/index.html
#     description: Which code of a program runs on a newer generation
#   - ref: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html
#     description: The architectures that ROCm's libraries are built for
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: confirmed
#   cause: app-failure
#   needs:
#     - job-told
#   remedies: [fix-application, fix-visible-devices]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.build_unsupported

import data.gpudoctor.lib.logs

missing contains {"fact": "logs", "words": "no log of a job was given"} if not logs.given
