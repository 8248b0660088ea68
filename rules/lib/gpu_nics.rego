# METADATA
# title: The paths between GPUs and NICs
# description: >-
#   Which NIC is nearest to each GPU, and what was measured over paths that are not the
#   nearest.
package gpudoctor.lib.gpu_nics

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.rdma
import data.tables.rates

# paths are the types of paths from each GPU to the NICs.
paths[p.a] contains p.path if {
	some p in input.links.pairs
	p.kind == "gpu-nic"
	p.path != ""
}

# direct is true where NCCL uses GPUDirect RDMA over one of these types of paths by default.
direct(types) if count(types & {path | some path in array.slice(rates.paths, 0, reach)}) > 0

reach := [n | some i, path in rates.paths; path == rates.gdr_path; n := i + 1][0]

# nearest are the NICs at the shortest distance of each GPU, by the name of the RDMA device
# where it is known.
nearest[p.a] contains nic(p.b) if {
	some p in input.links.pairs
	p.kind == "gpu-nic"
	p.path == [path | some path in rates.paths; path in paths[p.a]][0]
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
		facts.list({p.point.b | some p in points}), k[1], advice(points),
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
advice(points) := sprintf("; nearer to %s: %s", [found[0][0], facts.list(found[0][1])]) if {
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
	paths[name]
} else := address if {
	some g in input.gpus.devices
	sprintf("GPU%d", [g.index]) == name
	address := g.address
} else := name
