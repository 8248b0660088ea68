# METADATA
# title: The NVIDIA kernel driver is not loaded or does not respond
# description: >-
#   nvidia-smi, NVML and CUDA access the GPUs through the driver's kernel
#   modules. If these are not loaded, as after a kernel update for which they
#   were not built, or do not respond, no program finds a GPU. In a container,
#   the host's driver is the one in use.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html
#     description: 'NVML_ERROR_DRIVER_NOT_LOADED: the NVIDIA driver is not loaded'
#   - ref: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/index.html
#     description: How the kernel modules are built for a kernel, with DKMS or precompiled
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: confirmed
#   areas: [gpus]
#   needs:
#     - job-told
#   remedies: [reboot-or-reload-driver, upgrade-driver]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.driver_not_loaded

import data.gpudoctor.lib.logs

missing contains {"fact": "logs", "words": "no log of a job was given"} if not logs.given
