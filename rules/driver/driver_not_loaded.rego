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
#   needs:
#     - job-told
#   remedies: [reboot-or-reload-driver, upgrade-driver]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.driver_not_loaded

import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs

# PyTorch finds no driver in a container that was given no GPU either: there the
# driver may well be loaded.
unreachable := logs.messages({"nvidia-driver-unreachable"}) | {m |
	some m in logs.by_id["torch-no-driver"]
	count(launches.enclosed) == 0
}

# mismatched are statements that the driver answers, in another version than its
# libraries (driver-library-mismatch).
mismatched := logs.messages({"nvml-version-mismatch", "nvml-function-missing", "nvrm-api-mismatch", "xla-dso-mismatch", "cuda-driver-mismatch"})

findings contains {
	"subject": "driver",
	"message": "The NVIDIA kernel driver is not loaded, or does not answer. After an update of the kernel or of the driver its modules have to be built for the kernel that runs, and loaded",
	"evidence": logs.all_evidence(unreachable),
	"order": logs.first(unreachable).order,
} if {
	count(unreachable) > 0
	count(mismatched) == 0
}

missing contains {"fact": "logs", "words": "no log of a job was given"} if not logs.given
