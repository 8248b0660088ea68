# METADATA
# title: The NVIDIA kernel driver is not loaded or does not answer
# description: >-
#   nvidia-smi, NVML and CUDA reach the GPUs through the kernel modules of the
#   driver. Where these are not loaded, as after an update of the kernel for which
#   they were not built, or do not answer, nothing finds a GPU. In a container it
#   is the host's driver that counts.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html
#     description: NVML_ERROR_DRIVER_NOT_LOADED, the NVIDIA driver is not loaded
#   - ref: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/index.html
#     description: How the kernel modules are built for a kernel, by DKMS or precompiled
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
