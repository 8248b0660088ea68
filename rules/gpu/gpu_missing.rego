# METADATA
# title: Not every source shows the same GPUs
# description: >-
#   The management library (NVML), or AMD's compute driver, lists GPUs that CUDA or HIP does not offer, or the other way
#   round, or the PCI tree lacks one of them. No variable, MIG mode, device node or error of the GPU explains the
#   difference. Programs run without the GPU, or fail on it, and nothing was tested on it. The parts about AMD GPUs have
#   not been tested on AMD hardware.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
#     description: CUDA_VISIBLE_DEVICES, which hides GPUs from CUDA and not from NVML
#   - ref: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
#     description: CUDA offers one MIG instance to a process
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
package gpudoctor.rules.gpu_missing

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.visible_devices as visible

# sources are what a source is called, where its list of GPUs stands, and what a GPU that it lacks means. The API that the
# probe used offers the GPUs of one vendor; those of the other are not compared.
sources := {
	"api": [
		{"amd": "HIP", "nvidia": "CUDA"}[vendor], "transfers.devices",
		{"amd": "hipGetDeviceCount", "nvidia": "cuDeviceGetCount"}[vendor],
		"programs run without it, and the probe did not test it",
	],
	"management": [
		{"amd": "AMD's compute driver", "nvidia": "NVML"}[vendor], "gpus.devices",
		{"amd": "/sys/class/kfd/kfd/topology", "nvidia": "nvmlDeviceGetCount"}[vendor],
		"faults of its memory and its links are not reported",
	],
	"tree": ["the PCI tree", "pci.devices", "/sys/bus/pci/devices", "NCCL and RCCL cannot locate it"],
}

hip if input.transfers.api == "hip"

of_vendor := [g | some g in input.gpus.devices; g.vendor == vendor]

default vendor := "nvidia"

vendor := "amd" if hip

# listed are the GPUs that each source shows, as far as it answered to the end and names
# all of them, and as far as it is known what hides some from it.
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

# In a container with a masked /sys, and on WSL, the tree shows no GPU at all.
listed.tree := {d.address | some d in input.pci.devices} if {
	not input.pci.partial == true
	count([g | some g in of_vendor; pci.device[g.address]]) > 0
}

# lacking are the sources that lack a GPU which CUDA, HIP or what manages the GPUs shows. What the tree shows, and NVML
# or AMD's compute driver lack, is left to gpu-fault and amd-gpu-fault.
lacking[address] contains source if {
	some from in ["api", "management"]
	some address in (listed[from] - {g.address | some g in of_vendor; object.get(g, "error", "") != ""})
	some source, theirs in shown
	not same(address) in theirs
	not explained(source, address)
}

shown[source] := {same(address) | some address in theirs} if some source, theirs in listed

# same is what the partitions of an AMD GPU, functions of one device, have in common.
same(address) := split(address, ".")[0] if {
	hip
} else := address

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

explained("api", _) if hidden

# The host gives GPUs to virtual machines in parts, and HIP may not support a model of which it offers no other.
explained("api", address) if address in {g.address | some g in of_vendor; g.virtualization_mode in {"host-vgpu", "host-vsga"}}

explained("api", address) if {
	hip
	not pci.device[address].device in {pci.device[offered].device | some offered in listed.api}
}

together[from] contains address if some address, from in lacking

findings contains {
	"subject": peers.shorten(addresses),
	"affects": sort(addresses),
	"message": sprintf("GPU %s is listed by %s, but not by %s, and nothing here explains that: %s", [
		peers.shorten(addresses), facts.list({sources[s][0] | some s, theirs in listed; count(addresses - theirs) == 0}),
		facts.list({sources[s][0] | some s in from}), concat("; ", sort({sources[s][3] | some s in from})),
	]),
	# NCCL and RCCL place a GPU by the PCI tree; without it they choose slower paths.
	"severity": {true: "medium", false: "high"}[from == {"tree"}],
	"evidence": [{"fact": fact, "value": sort(theirs), "source": origin} |
		some source, theirs in listed
		[_, fact, origin, _] := sources[source]
		source != "tree"
	],
} if some from, addresses in together

missing contains {"fact": "gpus.nvml", "words": "NVML did not list the GPUs"} if {
	not hip
	not listed.management
	count(of_vendor) > 0
}

missing contains {"fact": "transfers.devices", "words": "it is not known which GPUs the driver's API should offer, or offers"} if {
	input.transfers
	not listed.api
}

not_applicable contains "no GPU" if count(facts.gpus) == 0

# In a container that was given some of the GPUs, /sys hides the others.
not_applicable contains "AMD's compute driver does not list all GPUs here" if {
	hip
	not listed.management
}
