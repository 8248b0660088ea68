# METADATA
# title: The NVIDIA kernel driver is not loaded or does not respond
# description: >-
#   If the driver's kernel modules are not loaded, as after a kernel update for which they were not built, or do not
#   respond, no program finds a GPU. In a container, the host's driver is the one in use.
# related_resources:
#   - ref: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/index.html
#     description: How the kernel modules are built for a kernel, with DKMS or precompiled
# custom:
#   severity: critical
#   confidence: confirmed
#   areas: [gpus]
#   needs:
#     - job-told-if-given
#     - [texts-given, container.inside]
#     - [texts-given, gpus.driver.kernel_version, "pci.devices[].driver"]
#   explains: [transfer-failed]
#   first_of: [module-unsigned, module-of-another, unreachable]
#   remedies: [reboot-or-reload-driver, upgrade-driver, configure-container-runtime, pass-device-nodes, other]
#   profiles: [training]
#   since: "0.2"
#   grades:
#     unserved:
#       severity: high
#       confidence: likely
#       remedies: [reboot-or-reload-driver, upgrade-driver]
#       text: >-
#         No NVIDIA driver is loaded for {gpus:GPU}, as after a kernel update for which the module was not built: nouveau or
#         no driver is bound, so CUDA and NVML find no GPU
package gpudoctor.rules.driver_not_loaded

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci

# No NVIDIA driver at all, although NVML or CUDA is installed and says that it found none. GPUs that are reserved for
# guests are left alone on purpose.
findings contains {
	"grade": "unserved",
	"subject": "host",
	"affects": sort(unserved),
	"about": {"gpus": count(unserved)},
	"evidence": [{"fact": sprintf("pci.devices[%s].driver", [address]), "value": driver, "source": "/sys/bus/pci/devices"} |
		some address in sort(unserved)
		driver := object.get(pci.device[address], "driver", "")
	],
} if {
	input.container.inside == false
	driver_asked_for
	count(unserved) > 0
	count({address | some address in facts.gpus; pci.device[address].driver == "nvidia"}) == 0
}

# unserved are the NVIDIA GPUs to which no driver is bound, or the free one.
unserved := {address |
	some address in facts.gpus
	pci.device[address].vendor == "0x10de"
	object.get(pci.device[address], "driver", "") in {"", "nouveau"}
}

driver_asked_for if endswith(input.gpus.nvml_error, "DRIVER_NOT_LOADED")
driver_asked_for if input.transfers.error_code == driver_errors.code.NO_DEVICE

not_applicable contains "no NVIDIA GPU" if {
	not logs.given
	input.pci
	count([address | some address in facts.gpus; pci.device[address].vendor == "0x10de"]) == 0
}
