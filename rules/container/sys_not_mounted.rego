# METADATA
# title: /sys does not show the PCI topology
# description: >-
#   NCCL reads the location of GPUs and NICs from /sys. If /sys is missing or masked, NCCL treats them all as distant
#   from each other, and uses neither peer access over PCIe nor GPUDirect RDMA. If a virtual machine shows a tree that
#   is not the real one, NCCL may choose the wrong NICs and paths.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: /sys must be mounted in containers; virtual machines show a virtual PCI topology
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-topo-file
#     description: A file that gives NCCL the real topology
# custom:
#   severity: medium
#   confidence: likely
#   needs: [container.sys_mounted, container.pci_visible, [links.virtual_topology, one-gpu], [gpus.devices, transfers.devices]]
#   remedies: [mount-sys, nccl-topo-file, other]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     absent: >-
#       /sys is not mounted, or /sys/bus/pci/devices lists no device: NCCL cannot locate the GPUs and the nearest NICs,
#       finds only NVLinks, and sends other traffic through host memory
#     virtual:
#       severity: info
#       confidence: possible
#       remedies: [nccl-topo-file]
#       text: >-
#         This machine shows a virtual PCI tree: no bridge is above any of {gpus} GPUs, so NCCL cannot see which GPUs and
#         NICs share a switch or a socket. If the provider has a topology file for this machine type, use it
package gpudoctor.rules.sys_not_mounted

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peer_access
import data.gpudoctor.lib.surroundings

findings contains {
	"grade": "absent",
	"subject": "/sys",
	"severity": {true: "low", false: "medium"}[count(surroundings.usable) == 1],
	"remedies": ["mount-sys"],
	"evidence": absent,
} if {
	count(absent) > 0
	count(surroundings.usable) > 0
}

absent := [{"fact": sprintf("container.%s", [name]), "value": false, "source": source} |
	some name, source in {"sys_mounted": "/proc/self/mountinfo", "pci_visible": "/sys/bus/pci/devices"}
	input.container[name] == false
]

# A virtual topology is the normal state of a virtual machine. It matters where NCCL chooses paths over PCIe: between
# GPUs without NVLink, or to several RDMA NICs.
findings contains {
	"grade": "virtual",
	"subject": "PCI topology",
	"about": {"gpus": count(facts.gpus)},
	"evidence": [{"fact": "links.virtual_topology", "value": true, "source": "/sys/bus/pci/devices"}],
} if {
	input.links.virtual_topology == true
	count(surroundings.usable) > 1
	not facts.env.NCCL_TOPO_FILE
	paths_chosen
}

paths_chosen if count(surroundings.rdma_nodes) > 1

paths_chosen if {
	count(facts.gpu_pairs) > 0
	not surroundings.all_nvlinked
	nvlinks_known
	not peer_access.refused
}

nvlinks_known if facts.gpu_pairs == {p | some p in facts.gpu_pairs; is_number(p.nvlinks)}

missing contains {"fact": "links.pairs[].nvlinks", "words": "it is not known which GPUs NVLink connects"} if {
	input.links.virtual_topology == true
	count(surroundings.usable) > 1
	not nvlinks_known
}

not_applicable contains "no GPU is visible here" if count(surroundings.usable) == 0
