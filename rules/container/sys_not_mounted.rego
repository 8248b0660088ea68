# METADATA
# title: /sys does not show the PCI topology
# description: >-
#   NCCL reads from /sys where GPUs and NICs sit. Where /sys is missing or
#   masked it takes all of them for distant from each other, and uses neither
#   peer access over PCIe nor GPUDirect RDMA. Where a virtual machine shows a
#   tree that is not the real one, it may choose wrong NICs and paths.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: /sys must be mounted in containers; virtual machines show a virtual PCI topology
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-topo-file
#     description: A file that tells NCCL the real topology
# schemas:
#   - input: schema.facts
# custom:
#   severity: medium
#   confidence: likely
#   needs:
#     - container.sys_mounted
#     - container.pci_visible
#     - links.virtual_topology
#     - [gpus.devices, transfers.devices]
#   remedies: [mount-sys, nccl-topo-file, other]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.sys_not_mounted

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

findings contains {
	"subject": "/sys",
	"message": sprintf("%s: NCCL cannot tell where the %d GPUs sit%s", [seen, count(surroundings.usable), consequence]),
	"severity": severity,
	"remedies": ["mount-sys"],
	"evidence": [evidence],
} if {
	some [seen, evidence] in absent
	count(surroundings.usable) > 0
}

absent contains ["/sys is not mounted", {
	"fact": "container.sys_mounted",
	"value": false,
	"source": "/proc/self/mountinfo",
}] if {
	input.container.sys_mounted == false
}

absent contains ["/sys is mounted, but /sys/bus/pci/devices lists no device", {
	"fact": "container.pci_visible",
	"value": false,
	"source": "/sys/bus/pci/devices",
}] if {
	input.container.pci_visible == false
	input.container.sys_mounted == true
}

default severity := "medium"

severity := "low" if count(surroundings.usable) == 1

consequence := " and which NIC is near" if {
	count(surroundings.usable) == 1
} else := ", so that it finds NVLinks alone" if {
	surroundings.nvlinked
} else := ", and sends their traffic through host memory"

# A virtual topology is the normal state of a virtual machine. It matters where
# paths over PCIe are to be chosen: between GPUs without NVLink, or to RDMA
# NICs.
findings contains {
	"subject": "PCI topology",
	"message": sprintf("The PCI tree that this %s shows is a virtual one: no bridge stands above any of %d GPUs, so NCCL cannot see which %s. A topology file of this machine type, where its provider has one, tells it", [
		place,
		count(facts.gpus), unseen,
	]),
	"severity": virtual_severity,
	"confidence": "possible",
	"remedies": ["nccl-topo-file"],
	"evidence": [{"fact": "links.virtual_topology", "value": true, "source": "/sys/bus/pci/devices"}],
} if {
	input.links.virtual_topology == true
	count(surroundings.usable) > 1
	not facts.env.NCCL_TOPO_FILE
	chooses_paths
}

chooses_paths if count(surroundings.rdma_nodes) > 1

chooses_paths if {
	count(facts.gpu_pairs) > 0
	not surroundings.all_nvlinked
	nvlinks_known
	not surroundings.p2p_refused
}

# nvlinks_known is true when it is known of each pair whether NVLinks join it.
nvlinks_known if {
	every p in facts.gpu_pairs {
		is_number(p.nvlinks)
	}
}

# With several NICs each GPU's nearest one is worth real bandwidth.
default virtual_severity := "info"

virtual_severity := "low" if count(surroundings.rdma_nodes) > 1

place := "virtual machine" if {
	facts.is_guest
} else := "machine"

unseen := "NIC is near which GPU" if {
	count(surroundings.rdma_nodes) > 1
} else := "GPUs share a switch or a socket"

# unseen_paths are programs' own words for a /sys without PCI devices.
unseen_paths := logs.messages({"sys-pci-missing", "lspci-no-sys", "nccl-sysfs-path-missing"})

topo_failed := logs.messages({"nvsmi-topo-failed"})

# sandboxed are containers whose kernel is gVisor's: it shows a /sys of its own.
sandboxed := {l | some l in logs.launches; l.runtime in {"runsc", "gvisor"}}

findings contains {
	"subject": "/sys",
	"message": sprintf("%s: /sys does not show the PCI devices%s. NCCL and nvidia-smi cannot tell where the GPUs sit", [logs.who(first), sandbox]),
	"severity": "high",
	"confidence": "confirmed",
	"remedies": ["mount-sys", "other"],
	"evidence": array.concat(logs.all_evidence(unseen_paths), array.concat(logs.all_evidence(topo_failed), sandbox_evidence)),
	"order": first.order,
} if {
	count(unseen_paths) > 0
	first := logs.first(unseen_paths)
}

# In a sandbox a failed look at the topology has that reason.
findings contains {
	"subject": "/sys",
	"message": sprintf("nvidia-smi cannot tell how the GPUs are joined%s", [sandbox]),
	"severity": topo_severity,
	"confidence": topo_confidence,
	"remedies": ["mount-sys", "other"],
	"evidence": array.concat(logs.all_evidence(topo_failed), sandbox_evidence),
	"order": logs.first(topo_failed).order,
} if {
	count(unseen_paths) == 0
	count(topo_failed) > 0
}

default topo_severity := "low"

topo_severity := "high" if count(sandboxed) > 0

default topo_confidence := "possible"

topo_confidence := "likely" if count(sandboxed) > 0

default sandbox := ""

sandbox := " (the container runs under gVisor, whose /sys is its own)" if count(sandboxed) > 0

sandbox_evidence := [{"fact": "launches[].runtime", "value": l.runtime, "source": logs.at(l)} | some l in sandboxed]

missing contains {"fact": "container", "words": "mounts were not read"} if not input.container

missing contains {"fact": "container.sys_mounted", "words": "it is not known whether /sys is mounted"} if {
	input.container
	not mounted_known
}

missing contains {"fact": "gpus", "words": "it is not known whether there are GPUs"} if {
	input.container
	not surroundings.usable
}

missing contains {"fact": "links.pairs[].nvlinks", "words": "which GPUs NVLink joins is not known"} if {
	input.links.virtual_topology == true
	count(surroundings.usable) > 1
	not nvlinks_known
}

mounted_known if is_boolean(input.container.sys_mounted)

not_applicable contains "no GPU is visible here" if count(surroundings.usable) == 0
