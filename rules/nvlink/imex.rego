# METADATA
# title: IMEX, which shares GPU memory over the NVLinks between hosts, is not ready
# description: >-
#   GPUs of several hosts in one NVLink domain share memory through the service nvidia-imex, which must run on every
#   host, and through an IMEX channel, a device node that a container must be given. Without either, NCCL cannot use the
#   NVLinks between hosts.
# related_resources:
#   - ref: https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/
#     description: The service, its domain and its channels
# custom:
#   severity: high
#   confidence: likely
#   texts_only: true
#   needs: [job-told]
#   remedies: [start-imex, pass-imex-channel, start-fabric-manager, nccl-mnnvl-disable, unset-env]
#   explains: [gpu-visibility/gpu-of-another]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.imex
