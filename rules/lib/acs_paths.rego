# METADATA
# title: Pairs of devices whose traffic ACS redirects
# description: >-
#   The pairs of GPUs, and of a GPU and a NIC, that communicate over PCIe
#   bridges, the bridges on their paths that redirect peer traffic, and how much
#   this matters to each pair.
package gpudoctor.lib.acs_paths

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers

# judged are the pairs whose traffic would cross PCIe bridges as it stands:
# GPUs that NVLink does not join and to which the driver does not refuse peer
# access, and a GPU with a NIC below the same switch (NCCL uses GPUDirect RDMA
# up to PXB, src/graph/paths.cc; beyond that traffic goes through the CPU by
# choice).
judged contains p if {
	some p in facts.gpu_pairs
	peers.joined(p) != "nvlink"
	not p.link_type == "xgmi"
	not peers.refused(p)
}

judged contains p if {
	some p in nic_pairs
	p.common_bridge != ""
}

nic_pairs := {p | some p in facts.pairs; p.kind == "gpu-nic"}

# affected are the judged pairs with a redirecting bridge on their path. The bridges of a
# virtual machine are the hypervisor's own, whatever vendor ids they have (QEMU has Intel
# root ports and TI switches).
affected := {p: bridges |
	not facts.is_guest == true
	some p in judged
	bridges := pci.redirecting(p)
	count(bridges) > 0
}

# standing is how much a redirecting bridge matters to one pair. A measurement takes
# precedence over what the facts imply.
standing(p) := peers.standing(p) if {
	peers.standing(p)
} else := "passed-on" if {
	peers.passed_on(p)
} else := "rdma" if {
	p.kind == "gpu-nic"
	rdma_nic(p.b)
} else := "nic" if {
	p.kind == "gpu-nic"
} else := "tolerated" if {
	# amdgpu accepts a way through the host bridge on Zen (p2pdma.c).
	not peers.both_nvidia(p)
} else := "implied" if {
	peers.joined(p) == "pcie"
} # NVLink may join these two: this is not known.

else := "unsure"

# rdma_nic is true for a NIC that is there for RDMA: an InfiniBand one (class 0x0207), or
# one of Mellanox, whose Ethernet ports also do RDMA.
rdma_nic(address) if startswith(pci.device[address].class, "0x0207")

rdma_nic(address) if pci.device[address].vendor == "0x15b3"
