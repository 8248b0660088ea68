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
#   needs:
#     - [links.pairs, job-told]
#   remedies: [set-net-gdr-level, nccl-topo-file, disable-acs, iommu-pt, other]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.gdr_topology

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.rdma
import data.tables.rates

# too_far are NCCL's decisions against it: "GPU Direct RDMA Disabled for GPU
# ca000 / HCA 0 (distance 7 > 4)". Near NICs of the same machine say "Enabled".
too_far := logs.messages(["nccl-gdr-too-far"])

near := logs.messages(["nccl-gdr-near"])

# able are the words that the NIC itself could.
able := logs.messages(["nccl-gdr-nic-enabled"])

findings contains {
	"subject": "GPUDirect RDMA",
	"message": sprintf("NCCL does not use GPUDirect RDMA, because the NICs are too far from the GPUs (%s)%s", [logs.at(first), advice]),
	"messages": {first},
	"evidence": level_evidence,
	"severity": severity,
	"remedies": ["set-net-gdr-level", "nccl-topo-file", "other"],
	"params": {"gdr_level": level},
} if {
	count(near) == 0
	count(rdma.direct_channels) == 0
	first := logs.first(too_far)
}

# advice: a level that is set shorter than the default is the reason itself.
advice := sprintf(". NCCL_NET_GDR_LEVEL=%s limits it", [facts.env.NCCL_NET_GDR_LEVEL]) if {
	short
} else := ". In a virtual machine, the PCI tree may not be the real one: set NCCL_TOPO_FILE" if {
	input.links.virtual_topology == true
} else := ". NCCL_NET_GDR_LEVEL=PHB or SYS allows it; measure both, because host memory may be as fast"

# level is the shortest distance that allows it for every GPU; what nvidia-smi calls NODE is PHB to
# NCCL (src/graph/topo.h), and the default suffices where a shorter one is set.
level := "PXB" if {
	short
} else := "PHB" if {
	count(nic_paths) > 0
	every paths in nic_paths {
		some path in paths
		path != "SYS"
	}
} else := "SYS"

short if facts.env.NCCL_NET_GDR_LEVEL in {"LOC", "PIX", "0", "1"}

level_evidence := [{
	"fact": "env.variables[NCCL_NET_GDR_LEVEL]",
	"value": facts.env.NCCL_NET_GDR_LEVEL,
	"source": facts.variable.NCCL_NET_GDR_LEVEL.source,
} |
	facts.env.NCCL_NET_GDR_LEVEL
]

severity := "medium" if {
	short
} else := "medium" if {
	networks.multi_node
} else := "low"

# Channels without it, though the NIC could.
findings contains {
	"subject": "GPUDirect RDMA",
	"message": "NCCL moves data between machines over verbs without GPUDirect RDMA, although the NICs support it: they are too far from the GPUs, or the level is too low",
	"evidence": array.concat(array.slice(logs.all_evidence(able), 0, 2), rdma.channel_evidence(rdma.verbs_channels)),
	"remedies": ["set-net-gdr-level", "nccl-topo-file", "other"],
	"params": {"gdr_level": level},
} if {
	count(able) > 0
	count(too_far) == 0
	count(rdma.verbs_channels) > 0
	count(rdma.direct_channels) == 0
}

# across are the GPUs whose nearest NIC is on the other side of the CPU: farther than the default distance up to which
# NCCL uses GPUDirect RDMA (PXB, src/graph/paths.cc, ncclTopoCheckGdr).
across contains gpu if {
	some gpu, paths in nic_paths
	not direct(paths)
}

# The module is there, the channels go without it, and no GPU has a NIC near.
findings contains {
	"subject": "GPUDirect RDMA",
	"affects": sort([gpu | some gpu in across; facts.is_address(gpu)]),
	"message": sprintf("NCCL moves data between machines over verbs without GPUDirect RDMA, although its kernel module is loaded: %s", [separated]),
	"evidence": array.concat(
		rdma.channel_evidence(rdma.verbs_channels),
		[{"fact": sprintf("links.pairs[%s]", [gpu]), "value": concat(", ", sort(nic_paths[gpu])), "source": "topology"} | some gpu in sort(across)],
	),
	"severity": "medium",
	"remedies": separated_cures,
	"params": {"gdr_level": level},
} if {
	by_way
}

# separated says what keeps them apart: in a virtual machine it may be the tree alone, and the
# cloud has a file with the real one.
separated := "the PCI tree of this virtual machine shows no NIC near a GPU. NCCL_TOPO_FILE, set to the topology file that the cloud's image brings, tells NCCL which are (Azure ND H100 v5: ndv5-topo.xml)" if {
	input.links.virtual_topology == true
	not facts.env.NCCL_TOPO_FILE
} else := sprintf("each NIC is separated from the GPUs by the CPU (%s), and NCCL uses it only up to PXB unless NCCL_NET_GDR_LEVEL allows more. Measure both, because host memory may be as fast", [concat(", ", sort({p | some gpu in across; some p in nic_paths[gpu]}))])

separated_cures := ["nccl-topo-file"] if {
	input.links.virtual_topology == true
	not facts.env.NCCL_TOPO_FILE
} else := ["set-net-gdr-level", "nccl-topo-file", "other"]

all_across if {
	count(across) > 0
	count(across) == count(nic_paths)
}

# by_way is true where that explains the channels.
by_way if {
	all_across
	count(rdma.verbs_channels) > 0
	count(rdma.direct_channels) == 0
	count(too_far | able) == 0
	rdma.peermem_loaded
}

# beyond are those that have no NIC at their own socket.
beyond contains gpu if {
	some gpu, paths in nic_paths
	paths == {"SYS"}
}

findings contains {
	"subject": "topology",
	"affects": sort([gpu | some gpu in beyond; facts.is_address(gpu)]),
	"message": sprintf("No NIC is near %d of %d GPUs: every path crosses the sockets (SYS). Their traffic between machines goes through host memory and the link between the sockets", [count(beyond), count(nic_paths)]),
	"evidence": [{"fact": sprintf("links.pairs[%s]", [gpu]), "value": "SYS to every NIC", "source": "topology"} | some gpu in sort(beyond)],
	"severity": topology_severity,
	"confidence": "possible",
	"remedies": ["set-net-gdr-level", "other"],
	"params": {"gdr_level": "SYS"},
} if {
	count(beyond) > 0
	count(rdma_used) > 0
	not by_way
}

topology_severity := "low" if {
	networks.multi_node
} else := "info"

# rdma_used are the signs that the NICs of the topology carry RDMA.
rdma_used contains "channels" if count(rdma.verbs_channels) > 0

rdma_used contains "ports" if count(rdma.active_ports) > 0

# Slow from a GPU's memory, and good from the host's: the path between NIC and GPU is at
# fault. If the host's was not measured, the network may be slow itself.
findings contains {
	"subject": n.point.a,
	"message": sprintf("%s. %s between NIC and GPU: too far apart, ACS that redirects or an IOMMU that translates on the path", [rdma.network_words(n), blame[good_from_host(n.point.a)]]),
	"evidence": [rdma.network_evidence(n)],
	"severity": "medium",
	"confidence": {true: "likely", false: "possible"}[good_from_host(n.point.a)],
	"remedies": array.concat(["disable-acs", "iommu-pt"], avoidances(n.point)),
	"params": {"gdr_level": narrower(n.point)},
} if {
	some n in rdma.slow_networks.gpu
	not n.point.a in {slow.point.a | some slow in rdma.slow_networks.host}
}

# avoidances keep NCCL from a slow path. One beyond the default limit it takes only where a variable says so.
avoidances(point) := ["nccl-topo-file"] if {
	beyond_default(point)
	not facts.env.NCCL_NET_GDR_LEVEL
} else := ["set-net-gdr-level"]

narrower(point) := "PXB" if {
	beyond_default(point)
} else := "LOC"

beyond_default(point) if {
	path := between[gpu_name(point.b)][point.a]
	not direct({path})
}

# What the path between GPU and NIC costs, and which NIC is nearer.
findings contains found if some found in far_findings

blame := {true: "From host memory it is good, so the fault is in the path", false: "The first suspect is the path"}

good_from_host(device) if {
	some b in input.benchmarks
	b.memory == "host"
	some p in b.points
	p.a == device
	p.gbps >= p.expected_gbps * p.threshold
} else := false

missing contains {"fact": "links", "words": "neither NCCL's choice for GPUDirect RDMA nor the paths between GPUs and NICs are known"} if {
	count(too_far | near) == 0
	count(nic_paths) == 0
	count(rdma.direct_channels) == 0
	count(object.get(rdma.slow_networks, "gpu", set())) == 0
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

# Which NIC is nearest to each GPU, and what was measured over paths that are not the nearest.

# paths are the types of paths from each GPU to the NICs.
nic_paths[p.a] contains p.path if {
	some p in input.links.pairs
	p.kind == "gpu-nic"
	p.path != ""
}

# direct is true where NCCL uses GPUDirect RDMA over one of these types of paths by default.
direct(types) if count(types & {path | some path in array.slice(rates.paths, 0, reach)}) > 0

reach := [n | some i, path in rates.paths; path == rates.gdr_path; n := i + 1][0]

# nearest are the NICs at the shortest distance of each GPU, by the name of the RDMA device where it is known.
nearest[p.a] contains nic(p.b) if {
	some p in input.links.pairs
	p.kind == "gpu-nic"
	p.path == [path | some path in rates.paths; path in nic_paths[p.a]][0]
	usable(p.b)
}

nic(name) := sort(device[name])[0] if {
	device[name]
} else := name

device[p.address] contains p.device if {
	some p in input.nics.rdma
	p.address != ""
}

# usable leaves out NICs without RDMA where RDMA devices are known.
usable(name) if device[name]

usable(name) if name in {p.device | some p in input.nics.rdma}

usable(_) if count(object.get(object.get(input, "nics", {}), "rdma", [])) == 0

# between is the type of the path between a GPU and a NIC, by the names that tools print.
between[p.a][nic(p.b)] := p.path if {
	some p in input.links.pairs
	p.kind == "gpu-nic"
	p.path != ""
}

# far are the values of ib_write_bw from a GPU's memory that reach what their path allows, and
# not what the port carries, by NIC and what their path crosses.
far[[p.a, crossing[between[gpu_name(p.b)][p.a]]]] contains {"benchmark": b, "point": p} if {
	some b in input.benchmarks
	b.what == "network"
	b.memory == "gpu"
	some p in b.points
	p.b != ""
	p.threshold < rates.network
	p.gbps >= p.expected_gbps * p.threshold
	p.gbps < p.expected_gbps * rates.network
}

crossing := {"PHB": "the processor", "NODE": "the processor", "SYS": "the link between the processors"}

far_findings contains {
	"subject": k[0],
	"affects": sort({gpu | some p in points; gpu := gpu_name(p.point.b); facts.is_address(gpu)}),
	"message": sprintf("%s: %s of %d Gb/s from the memory of %s, whose path to it crosses %s: normal for such a path%s", [
		k[0], span({p.point.gbps | some p in points}), round(max({p.point.expected_gbps | some p in points}) * 8),
		facts.list({p.point.b | some p in points}), k[1], nic_advice(points),
	]),
	"evidence": array.slice([e | some p in sort(points); e := rdma.network_evidence(p)], 0, 4),
	"severity": "info",
	"confidence": "confirmed",
	"remedies": ["other"],
} if {
	some k, points in far
}

# span writes the least and the greatest of rates in Gb/s.
span(seen) := concat(" to ", [sprintf("%d", [x]) | some x in sort({round(min(seen) * 8), round(max(seen) * 8)})])

# advice names a nearer NIC of the GPUs.
nic_advice(points) := sprintf("; nearer to %s: %s", [found[0][0], facts.list(found[0][1])]) if {
	found := sort([[p.point.b, nearer] |
		some p in points
		nearer := nearest[gpu_name(p.point.b)] - {p.point.a}
		count(nearer) > 0
		not p.point.a in nearest[gpu_name(p.point.b)]
	])
	count(found) > 0
} else := ""

# gpu_name is how pairs name a GPU that a tool names by its number.
gpu_name(name) := name if {
	nic_paths[name]
} else := address if {
	some g in input.gpus.devices
	sprintf("GPU%d", [g.index]) == name
	address := g.address
} else := name
