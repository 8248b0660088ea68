# METADATA
# title: Not every source shows the same GPUs
# description: >-
#   The management library (NVML), or AMD's compute driver, lists GPUs that CUDA or HIP does not offer, or the other way
#   round. No variable, MIG mode, device node or error of the GPU explains the difference. Programs run without the GPU,
#   and nothing was tested on it. The parts about AMD GPUs have not been tested on AMD hardware.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
#     description: CUDA_VISIBLE_DEVICES, which hides GPUs from CUDA and not from NVML
#   - ref: https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html
#     description: What hides GPUs from HIP
# custom:
#   severity: high
#   confidence: confirmed
#   cause: gpu-visibility
#   areas: [gpus]
#   needs:
#     - env.variables
#     - container.device_nodes
#     - pci.devices
#     - gpus.devices
#     - transfers.devices
#   remedies: [reboot-or-reload-driver, reset-gpu]
#   since: "0.2"
#   grades:
#     api: >-
#       GPU {subject} is listed by {management}, but not by {api}, and nothing here explains that: programs run without it,
#       and the probe did not test it
#     management: >-
#       GPU {subject} is listed by {api}, but not by {management}, and nothing here explains that: faults of its memory and
#       its links are not reported
package gpudoctor.rules.gpu_missing

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.visible_devices as visible

hip if input.transfers.api == "hip"

default vendor := "nvidia"

vendor := "amd" if hip

of_vendor := [g | some g in input.gpus.devices; g.vendor == vendor]

# listed are the GPUs that each source shows, where it answered to the end and names all of them, and where it is known
# what hides some from it. The API offers the GPUs of one vendor; those of the other are not compared.
listed.api := {d.address | some d in input.transfers.devices} if {
	count(input.transfers.devices) > 0
	every d in input.transfers.devices {
		contains(d.address, ":")
	}
	object.get(input.transfers, "stage", "") != "devices"
	is_array(input.env.variables)
	is_array(input.container.device_nodes)
	count([u | some u in input.unknown; u.fact == "devices.mig"]) == 0
}

listed.management := {g.address | some g in of_vendor; g.in_nvml} if {
	not hip
	input.gpus.nvml == "ok"
	every g in of_vendor {
		contains(g.address, ":")
	}
}

listed.management := {g.address | some g in of_vendor; g.kfd.node >= 0} if {
	hip
	input.gpus.amd.kfd == "ok"
}

# lacking are the GPUs that a source lacks and the other shows. The partitions of an AMD GPU are functions of one device.
lacking[source] contains address if {
	some [source, other] in [["api", "management"], ["management", "api"]]
	devices := {split(address, ".")[0] | some address in listed[source]}
	some address in listed[other]
	not split(address, ".")[0] in devices
	not explained(source, address)
}

# The host gives GPUs to virtual machines in parts. HIP may not support a model of which it offers no other.
explained(_, address) if object.get(facts.gpu, [address, "error"], "") != ""
explained("api", _) if hidden
explained("api", address) if facts.gpu[address].virtualization_mode in {"host-vgpu", "host-vsga"}

explained("api", address) if {
	hip
	not pci.device[address].device in offered_models
}

offered_models := {pci.device[address].device | some address in listed.api}

# hidden is true where something explains that CUDA or HIP offers fewer GPUs than there are: a list of GPUs with no more
# entries than it offers, MIG, of which CUDA offers one instance, or device nodes.
hidden if {
	some left in visible.kept
	count({entry | some entry in left}) <= count(input.transfers.devices)
}

hidden if facts.env.GPU_DEVICE_ORDINAL
hidden if visible.instances

hidden if {
	open := {path | some path in {"amd": surroundings.render_nodes, "nvidia": surroundings.nvidia_nodes}[vendor]; surroundings.node_access[path] != "none"}
	count(open) in numbers.range(1, count(input.transfers.devices))
}

findings contains {
	"grade": source,
	"subject": peers.shorten(addresses),
	"affects": sort(addresses),
	"about": {"api": {"amd": "HIP", "nvidia": "CUDA"}[vendor], "management": {"amd": "AMD's compute driver", "nvidia": "NVML"}[vendor]},
	"evidence": [
		{"fact": "transfers.devices", "value": sort(listed.api), "source": "probe"},
		{"fact": "gpus.devices", "value": sort(listed.management), "source": {"amd": "/sys/class/kfd", "nvidia": "NVML"}[vendor]},
	],
} if some source, addresses in lacking

missing contains {"fact": "transfers.devices", "words": "it is not known which GPUs the driver's API should offer, or offers"} if {
	input.transfers
	not listed.api
}

missing contains {"fact": "gpus.nvml", "words": "NVML did not list the GPUs"} if {
	not hip
	not listed.management
	count(of_vendor) > 0
}

not_applicable contains "no GPU" if count(facts.gpus) == 0

# In a container that was given some of the GPUs, /sys hides the others.
not_applicable contains "AMD's compute driver does not list all GPUs here" if {
	hip
	not listed.management
}
