# METADATA
# title: A GPU's slot offers no PCIe atomics
# description: >-
#   ROCm uses PCIe atomics for queues and signals between the processor and GPUs. The processor's root port and each
#   bridge above the GPU must support them, which slots of the chipset, some risers and many virtual machines do not.
#   amdkfd then leaves the GPU out, and HIP does not offer it, while graphics work. Newer GPUs with newer firmware do
#   without.
# related_resources:
#   - ref: https://rocm.docs.amd.com/en/latest/understand/More-about-how-ROCm-uses-PCIe-Atomics.html
#     description: What ROCm uses PCIe atomics for, and which platforms have them
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/gpu/drm/amd/amdkfd/kfd_device.c
#     description: The driver skips a GPU that needs PCIe atomics where they are missing
# custom:
#   severity: high
#   confidence: confirmed
#   areas: [gpus, kernel-log]
#   needs: [kernel_log.events, gpus.devices]
#   explains: ["gpu-visibility/no-gpu", "gpu-visibility/said", app-failure, oom]
#   remedies: [move-slot, update-bios]
#   profiles: [training]
#   since: "0.3"
package gpudoctor.rules.pcie_atomics

import data.gpudoctor.lib.amd

not_applicable contains "no AMD GPU" if amd.absent
