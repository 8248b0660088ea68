# METADATA
# title: NIC and GPU are too far apart for GPUDirect RDMA
# description: >-
#   By default, NCCL lets a NIC access GPU memory directly only if both are below the same PCIe switches
#   (NCCL_NET_GDR_LEVEL, default PXB). A machine whose NICs are all on another socket, or whose PCI tree is virtual,
#   uses host memory although GPUDirect RDMA itself works. That is often as fast.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-net-gdr-level
#     description: The distances
#   - ref: https://github.com/NVIDIA/nccl/issues/1151
#     description: What "distance" means, and why a greater one is not always faster
# custom:
#   severity: low
#   confidence: likely
#   needs: [[links.pairs, job-told]]
#   remedies: [set-net-gdr-level, nccl-topo-file, disable-acs, iommu-pt, other]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     unused:
#       remedies: [set-net-gdr-level, nccl-topo-file, other]
#       text: >-
#         NCCL does not use GPUDirect RDMA, because the NICs are too far from the GPUs[ ({paths:comma})].
#         NCCL_NET_GDR_LEVEL=PHB or SYS allows it; measure both, because host memory may be as fast
#     limited:
#       remedies: [set-net-gdr-level]
#       text: "NCCL does not use GPUDirect RDMA, because NCCL_NET_GDR_LEVEL={set} limits it to nearer NICs"
#     virtual:
#       remedies: [nccl-topo-file]
#       text: >-
#         NCCL does not use GPUDirect RDMA, because the PCI tree of this virtual machine shows no NIC near a GPU.
#         NCCL_TOPO_FILE, set to the topology file that the cloud's image brings, tells NCCL which are (Azure ND H100
#         v5: ndv5-topo.xml)
#     slow:
#       severity: medium
#       remedies: [disable-acs, iommu-pt, set-net-gdr-level]
#       text: >-
#         {words}. The first suspect is the path between NIC and GPU: too far apart, ACS that redirects or an IOMMU that
#         translates on the path
package gpudoctor.rules.gdr_topology

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.rdma
import data.tables.rates

# NCCL decides by pair: "GPU Direct RDMA Disabled for GPU ca000 / HCA 0 (distance 7 > 4)". able are NICs that could.
too_far := logs.messages(["nccl-gdr-too-far"])
near := logs.messages(["nccl-gdr-near"])
able := logs.messages(["nccl-gdr-nic-enabled"])

findings contains {
	"grade": grade,
	"subject": "GPUDirect RDMA",
	"affects": sort([gpu | some gpu in across; facts.is_address(gpu)]),
	"about": {"set": object.get(facts.env, "NCCL_NET_GDR_LEVEL", ""), "paths": {path | some gpu in across; some path in nic_paths[gpu]}},
	"messages": [logs.first(ms) | some ms in [too_far, able]; count(ms) > 0],
	"evidence": array.concat(
		rdma.channel_evidence(rdma.verbs_channels),
		[{"fact": sprintf("links.pairs[%s]", [gpu]), "value": concat(", ", sort(nic_paths[gpu])), "source": "topology"} | some gpu in sort(across)],
	),
	"severity": {true: "low", false: "medium"}[count(rdma.verbs_channels) == 0], # One machine does not need it.
	"params": {"gdr_level": {true: "PXB", false: "SYS"}[grade == "limited"]},
} if {
	unused
	count(rdma.direct_channels) == 0
}

# NCCL says so, or its channels go without although the NICs could.
unused if {
	count(too_far) > 0
	count(near) == 0
}

unused if {
	count(rdma.verbs_channels) > 0
	count(too_far) == 0
	count(able) > 0
}

unused if {
	count(rdma.verbs_channels) > 0
	all_across
	rdma.peermem_loaded
}

grade := "limited" if {
	facts.env.NCCL_NET_GDR_LEVEL in {"LOC", "PIX", "0", "1"} # Below the default.
} else := "virtual" if {
	input.links.virtual_topology == true
	not facts.env.NCCL_TOPO_FILE
} else := "unused"

# across are the GPUs whose nearest NIC is on the other side of the CPU: farther than the default distance up to which
# NCCL uses GPUDirect RDMA (PXB, src/graph/paths.cc, ncclTopoCheckGdr).
across contains gpu if {
	some gpu, paths in nic_paths
	count(paths & near_enough) == 0
}

near_enough := {path | some i, path in rates.paths; some j; rates.paths[j] == rates.gdr_path; i <= j}

all_across if {
	count(across) > 0
	count(across) == count(nic_paths)
}

# Slow from a GPU's memory, and not slow from the host's: the path between NIC and GPU is at fault. If the host's was
# not measured, the network may be slow itself.
findings contains {
	"grade": "slow",
	"subject": n.point.a,
	"about": {"words": rdma.network_words(n)},
	"evidence": [rdma.network_evidence(n)],
	"confidence": {true: "likely", false: "possible"}[n.point.a in {p.a | some b in input.benchmarks; b.memory == "host"; some p in b.points}],
	"params": {"gdr_level": "LOC"},
} if {
	some n in rdma.slow_networks.gpu
	not n.point.a in {slow.point.a | some slow in rdma.slow_networks.host}
}

# Far paths are a fault only where a job uses them, and why it does not is known only with the module.
asks contains "logs.transports" if undecided

asks contains "nics.modules" if {
	undecided
	count(rdma.verbs_channels) > 0
}

undecided if {
	all_across
	count(near | too_far) == 0
	count(rdma.direct_channels) == 0
}

asks contains "links.pairs" if count(((near | too_far) | rdma.direct_channels)) == 0

not_applicable contains "no GPU" if count(facts.gpus) == 0
not_applicable contains "no RDMA device is available" if rdma.no_device

nic_paths[p.a] contains p.path if {
	some p in input.links.pairs
	p.kind == "gpu-nic"
}
