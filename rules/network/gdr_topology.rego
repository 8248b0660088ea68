# METADATA
# title: NIC and GPU are too far apart for GPUDirect RDMA
# description: >-
#   By default, NCCL lets a NIC access GPU memory directly only if both are below the same PCIe switches
#   (NCCL_NET_GDR_LEVEL, default PXB); through the CPU, the path over host memory is usually as fast or faster. A
#   machine whose NICs are all on another socket, or whose PCI tree is virtual, then uses host memory although GPUDirect
#   RDMA itself works.
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
#     unused: >-
#       NCCL does not use GPUDirect RDMA, because the NICs are too far from the GPUs[ ({paths:comma})].
#       NCCL_NET_GDR_LEVEL=PHB or SYS allows it; measure both, because host memory may be as fast
#     limited: "NCCL does not use GPUDirect RDMA, because NCCL_NET_GDR_LEVEL={set} limits it to nearer NICs"
#     virtual:
#       remedies: [nccl-topo-file]
#       text: >-
#         NCCL does not use GPUDirect RDMA, because the PCI tree of this virtual machine shows no NIC near a GPU.
#         NCCL_TOPO_FILE, set to the topology file that the cloud's image brings, tells NCCL which are (Azure ND H100
#         v5: ndv5-topo.xml)
#     slow:
#       severity: medium
#       text: >-
#         {words}. The first suspect is the path between NIC and GPU: too far apart, ACS that redirects or an IOMMU that
#         translates on the path
#     far:
#       severity: info
#       confidence: confirmed
#       remedies: [other]
#       text: >-
#         {subject}: up to {gbps} of {port} Gb/s from the memory of {gpus}, which is what the path between them allows
package gpudoctor.rules.gdr_topology

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.rdma
import data.tables.rates

# too_far are NCCL's decisions against it: "GPU Direct RDMA Disabled for GPU ca000 / HCA 0 (distance 7 > 4)". Near NICs
# of the same machine say "Enabled".
too_far := logs.messages(["nccl-gdr-too-far"])

near := logs.messages(["nccl-gdr-near"])

# able are the words that the NIC itself could.
able := logs.messages(["nccl-gdr-nic-enabled"])

findings contains {
	"grade": unused_grade,
	"subject": "GPUDirect RDMA",
	"affects": sort([gpu | some gpu in separated; facts.is_address(gpu)]),
	"about": {"set": object.get(facts.env, "NCCL_NET_GDR_LEVEL", ""), "paths": {path | some gpu in separated; some path in nic_paths[gpu]}},
	"messages": [logs.first(ms) | some ms in [too_far, able]; count(ms) > 0],
	"evidence": array.flatten([
		[{"fact": "env.variables[NCCL_NET_GDR_LEVEL]", "value": v.value, "source": v.source} | v := facts.variable.NCCL_NET_GDR_LEVEL],
		rdma.channel_evidence(rdma.verbs_channels),
		[{"fact": sprintf("links.pairs[%s]", [gpu]), "value": concat(", ", sort(nic_paths[gpu])), "source": "topology"} | some gpu in sort(separated)],
	]),
	"severity": unused_severity,
	"remedies": {
		true: ["nccl-topo-file"],
		false: ["set-net-gdr-level", "nccl-topo-file", "other"],
	}[unused_grade == "virtual"],
	"params": {"gdr_level": level},
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
	count(able) > 0
	count(too_far) == 0
	count(rdma.verbs_channels) > 0
}

unused if by_way

# by_way is true where the module is there, the channels go without it, and no GPU has a NIC near.
by_way if {
	all_across
	count(rdma.verbs_channels) > 0
	count(too_far | able) == 0
	rdma.peermem_loaded
}

separated := {gpu | by_way; some gpu in across}

unused_grade := "limited" if {
	short
} else := "virtual" if {
	input.links.virtual_topology == true
	not facts.env.NCCL_TOPO_FILE
} else := "unused"

default unused_severity := "medium"

# One machine needs no GPUDirect RDMA, unless somebody set a level.
unused_severity := "low" if {
	not short
	not networks.multi_node
	count(rdma.verbs_channels) == 0
}

# short is true of a level below the default: it is the reason itself.
short if facts.env.NCCL_NET_GDR_LEVEL in {"LOC", "PIX", "0", "1"}

# level is the shortest distance that allows it for every GPU; what nvidia-smi calls NODE is PHB to
# NCCL (src/graph/topo.h), and the default suffices where a shorter one is set.
level := "PXB" if {
	short
} else := "PHB" if {
	count(nic_paths) > 0
	every paths in nic_paths {
		count(paths - {"SYS"}) > 0
	}
} else := "SYS"

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
	"confidence": {true: "likely", false: "possible"}[n.point.a in good_from_host],
	"remedies": ["disable-acs", "iommu-pt", "set-net-gdr-level"],
	"params": {"gdr_level": "LOC"},
} if {
	some n in rdma.slow_networks.gpu
	not n.point.a in {slow.point.a | some slow in rdma.slow_networks.host}
}

good_from_host contains p.a if {
	some b in input.benchmarks
	b.memory == "host"
	some p in b.points
	p.gbps >= p.expected_gbps * p.threshold
}

# far are the values of ib_write_bw from a GPU's memory that reach what their path allows, and not what the port
# carries, by NIC.
far[p.a] contains {"benchmark": b, "point": p} if {
	some b in input.benchmarks
	b.what == "network"
	b.memory == "gpu"
	some p in b.points
	p.b != ""
	p.threshold < rates.network
	p.gbps >= p.expected_gbps * p.threshold
	p.gbps < p.expected_gbps * rates.network
}

findings contains {
	"grade": "far",
	"subject": nic,
	"about": {
		"gbps": round(max({p.point.gbps | some p in points}) * 8),
		"port": round(max({p.point.expected_gbps | some p in points}) * 8),
		"gpus": {p.point.b | some p in points},
	},
	"evidence": array.slice([e | some p in sort(points); e := rdma.network_evidence(p)], 0, 4),
} if some nic, points in far

missing contains {"fact": "links", "words": "neither NCCL's choice for GPUDirect RDMA nor the paths between GPUs and NICs are known"} if {
	count(too_far | near) == 0
	count(nic_paths) == 0
	count(rdma.direct_channels) == 0
	not rdma.slow_networks.gpu
	not no_gpu
	not rdma.no_device
}

# Far paths are a fault only where a job uses them, and why it does not is known only with the module.
missing contains {"fact": "logs", "words": "every NIC is beyond the default limit of GPUDirect RDMA (NCCL_NET_GDR_LEVEL), and no log of a job over several machines shows whether it uses it"} if {
	undecided
	count(rdma.verbs_channels) == 0
}

missing contains {"fact": "nics.modules", "words": "neither the distance nor the lack of its kernel module can be ruled out as the reason why GPUDirect RDMA is not used"} if {
	undecided
	count(rdma.verbs_channels) > 0
	not rdma.peermem_loaded
	not rdma.peermem_absent
}

undecided if {
	all_across
	count(near | too_far) == 0
	count(rdma.direct_channels) == 0
	not rdma.no_device
}

no_gpu if count(facts.gpus) == 0

not_applicable contains "no GPU" if no_gpu
not_applicable contains "no RDMA device is available" if rdma.no_device

nic_paths[p.a] contains p.path if {
	some p in input.links.pairs
	p.kind == "gpu-nic"
}
