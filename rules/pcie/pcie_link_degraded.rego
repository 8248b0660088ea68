# METADATA
# title: A PCIe link runs below what both ends support
# description: >-
#   A link on the path of a GPU or NIC has fewer lanes than both ends support, or stays at a lower speed under load. The
#   usual cause is a card that is not fully seated, a riser, a retimer or a BIOS setting.
# related_resources:
#   - ref: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
#     description: current_link_speed, current_link_width and their maxima.
#   - ref: https://github.com/NVIDIA/DCGM/blob/master/nvvs/diag-skus.yaml.in
#     description: The minimum width that NVIDIA's own diagnosis accepts for each model.
# custom:
#   severity: medium
#   confidence: likely
#   needs:
#     - [gpus.devices, transfers.devices]
#     - pci.devices[].ancestors
#     - pci.devices[].link.width
#     - pci.devices[].link.max_width
#     - pci.devices[].link.max_speed_gts
#     - host.virtualization
#   remedies: [reseat-or-fix-pcie-link, update-bios, bind-numa]
#   explains: [p2p-slow]
#   since: "0.1"
package gpudoctor.rules.pcie_link_degraded

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.pcie_links
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.rdma
import data.tables.gpu_models
import data.tables.thresholds

# sources are where each source has the width of a device's link, and what its maximum is.
sources := {
	"config space of both ends": ["pci.devices[%s].link.%s", "both ends support"],
	"lspci": ["pci.devices[%s].link.%s", "the card supports"],
	"NVML": ["gpus.devices[%s].pcie.%s", "according to NVML, card and slot support up to"],
}

# width_grade: a quarter of the lanes or less loses more than half of the
# bandwidth, which is what "high" means.
width_grade(address, n) := "low" if {
	accepted(address, n.width)
} else := "low" if {
	n.source != "config space of both ends"
	n.width * 4 > n.best
} else := "medium" if {
	n.source != "config space of both ends"
} else := "high" if {
	n.width * 4 <= n.best
} else := "medium"

findings contains {
	"subject": address,
	"affects": pcie_links.affected(address),
	"message": sprintf("The link above %s runs with %d lanes, but %s %d.%s%s", [
		pcie_links.described(address), n.width, sources[n.source][1], n.best,
		pcie_links.slow_words(address), pcie_links.errors_text(address),
	]),
	"evidence": array.flatten([
		{"fact": sprintf(sources[n.source][0], [address, "width"]), "value": n.width, "source": n.source},
		{"fact": sprintf(sources[n.source][0], [address, "max_width"]), "value": n.best, "source": n.source},
		pcie_links.error_evidence(address),
	]),
	"params": {"device": address},
	"severity": width_grade(address, n),
	"confidence": width_confidence(address, n),
} if {
	some address, n in narrow
}

# Evidence from only NVML stays possible: a slow transfer fits either reading.
width_confidence(address, n) := "possible" if {
	n.source != "config space of both ends"
} else := confidence(address)

confidence(address) := "confirmed" if {
	count(pcie_links.slow_transfers(address)) > 0
} else := "likely"

findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("The link of GPU %s ran at PCIe generation %d while the GPU was busy, but card and slot support generation %d. A link that was trained too low, a riser or a retimer limits it; each generation halves the bandwidth.", [
		address, g.generation, g.best,
	]),
	"evidence": array.concat(
		[{"fact": sprintf("gpus.devices[%s].pcie.generation", [address]), "value": g.generation, "source": "NVML"}],
		facts.gpu_evidence({address}, "utilization_percent", "NVML"),
	),
	"severity": held_low_grade(g),
} if {
	some address, g in held_low
	not slow_links[address]
}

held_low_grade(g) := "high" if {
	count(fast_enough[g.best]) > 0
	g.best - g.generation >= 2
} else := "medium"

findings contains {
	"subject": address,
	"affects": pcie_links.affected(address),
	"message": sprintf("The link above %s runs at %v GT/s, but both ends support %v.%s%s", [
		pcie_links.described(address), d.speed, d.best, pcie_links.slow_words(address), pcie_links.errors_text(address),
	]),
	"evidence": array.flatten([
		{"fact": sprintf("pci.devices[%s].link.speed_gts", [address]), "value": d.speed, "source": sprintf("/sys/bus/pci/devices/%s/config", [address])},
		{"fact": sprintf("pci.devices[%s].link.max_speed_gts", [address]), "value": d.best, "source": "the lower of both ends"},
		facts.gpu_evidence({address}, "performance_state", "nvmlDeviceGetPerformanceState"),
		pcie_links.error_evidence(address),
	]),
	"params": {"device": address},
	"severity": {true: "high", false: "medium"}[(d.speed * 4) <= d.best],
	"confidence": confidence(address),
} if {
	some address, d in slow_links
	not narrow[address]
}

findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("The kernel found %d lanes on the path of GPU %s, at %s, which supports %d.", [n.lanes, address, n.at, n.best]),
	"evidence": pci.event_evidence({n.event}),
} if {
	some address, n in told_narrow
	not narrow[address]
	not accepted(address, n.lanes)
	not shown_wide(address)
}

# What a benchmark measured between host memory and the GPUs, against their links.
findings contains found if some found in slow_copies

# A NIC that does not reach the rate of its InfiniBand port from host memory, where
# credits lose no packet, is most often in a slot that is too narrow or too slow.
findings contains {
	"subject": n.point.a,
	"message": sprintf("%s. InfiniBand loses no packets, so the first suspect is the NIC's own PCIe link, then its NUMA node", [rdma.network_words(n)]),
	"evidence": [rdma.network_evidence(n)],
	"confidence": "possible",
	"remedies": ["reseat-or-fix-pcie-link", "bind-numa", "update-bios"],
} if {
	some n in rdma.slow_networks.host
	not "Ethernet" in {p.link_layer | some p in n.ports}
}

# NCCL's own check compares what each rank gets over its NIC. One that is far below
# the rest of its job has a narrow slot, a bad cable or a port of a lower rate;
# one that is above it is no fault.
lagging contains m if {
	some m in logs.by_id["nccl-diag-net-slow"]
	to_number(m.fields.rate) < to_number(m.fields.median)
}

findings contains {
	"subject": sprintf("NIC of rank %s", [facts.list({m.fields.rank | some m in lagging})]),
	"message": sprintf("NCCL's own check finds NICs far below the rest of the job: %s. The usual cause is a PCIe link with fewer lanes, a bad cable or a port with a lower rate.", [
		concat("; ", sort({sprintf("rank %s on %s, %s of %s Gb/s (%s)", [m.fields.rank, m.fields.slow_host, m.fields.rate, m.fields.median, m.fields.mode]) | some m in lagging})),
	]),
	"messages": lagging,
	"confidence": "possible",
	"remedies": ["reseat-or-fix-pcie-link", "bind-numa", "update-bios"],
} if {
	count(lagging) > 0
}

missing contains {"fact": "pci.devices[].link", "words": "in a virtual machine, the real links are not visible"} if {
	facts.is_guest == true
	count(facts.gpus) > 0
}

missing contains {"fact": "pci.devices[].link", "words": "the links of the GPUs are not known"} if {
	facts.is_guest == false
	count(facts.gpus) > 0
	count({address | some address in facts.gpus; shown(address)}) == 0
}

shown(address) if pcie_links.best(address)

shown(address) if facts.gpu[address].pcie.width > 0

not_applicable contains "no GPU" if count(facts.gpus) == 0

# Tables whose values are below what the ways between the GPUs and their processors carry, or below what any
# slot carries.

# slow are the tables with their low values and the worst of them.
slow contains {"table": b, "points": ps, "worst": benchmarks.worst(ps)} if {
	some i, ps in benchmarks.low
	b := input.benchmarks[i]
	b.what in {"host-to-gpu", "gpu-to-host"}
}

# hopeless is true of a table whose worst value no slot explains: its bound is a rate, not a share of one.
hopeless(t) if t.worst.threshold == 1

slow_copies contains {
	"subject": sprintf("%s, %s", [t.table.tool, t.table.test]),
	"message": sprintf("%s: %s GB/s between host memory and %s, where %s carries %s and at least %s counts as good; %d of %d values are too low. %s.", [
		t.table.test, peers.decimal(t.worst.gbps), end(t.worst), t.worst.basis, peers.decimal(t.worst.expected_gbps),
		peers.decimal(t.worst.expected_gbps * t.worst.threshold), count(t.points), count(t.table.points), remark(t),
	]),
	"evidence": benchmarks.points_evidence(t.table, t.points),
	"severity": grade(t),
	"confidence": copies_confidence(t),
	"remedies": cures(t),
} if some t in slow

# Copies from pageable memory depend on the processor as well.
copies_confidence(t) := "likely" if {
	hopeless(t)
	endswith(t.table.test, ", pinned")
	not facts.is_guest == true
} else := "possible"

end(p) := [e | some e in [p.a, p.b]; e != "CPU"][0]

all_low(t) if count(t.points) == count(t.table.points)

# alike is true of several values that all are low and do not differ: the links of GPUs rarely
# fail together, but the uplinks of the switches above them are alike. These are not known.
alike(t) if {
	all_low(t)
	rates := {p.gbps | some p in t.points}
	count(t.points) > 1
	max(rates) <= min(rates) * 1.1
	count(object.get(object.get(input, "links", {}), "hosts", [])) == 0
}

grade(t) := "low" if {
	alike(t)
	not hopeless(t)
} else := "medium"

cures(t) := ["reseat-or-fix-pcie-link", "update-bios"] if {
	all_low(t)
	not hopeless(t)
} else := ["reseat-or-fix-pcie-link", "bind-numa", "update-bios"]

# What limits the copies of a virtual machine cannot be seen in it.
remark(t) := "In a virtual machine, the first suspects are the link on the host and the memory of the guest" if {
	hopeless(t)
	facts.is_guest == true
} else := "A GPU has at least four lanes, and usually sixteen: the first suspects are a riser or slot with one lane, and a link that dropped to its lowest speed or width; run nvidia-smi -q while the copies run to see the link" if {
	hopeless(t)
} else := "All values agree, so the switches above the GPUs may have narrower uplinks, which is how some machines are built (AWS p5: PCIe 4.0 x8). gpudoctor check on the machine, or lspci -vvv as root, shows them" if {
	alike(t)
} else := "The first suspects are a link that dropped to fewer lanes or a lower speed, and memory on a remote NUMA node"

# An idle GPU lowers its link speed and is healthy, so only its speed under load counts.

# slow are the links that are: first those of GPUs in the fastest performance state. An
# idle GPU lowers its link to 2.5 GT/s and is healthy, so its own word for the
# state is needed, NVML and config space must agree, and copies at full speed
# refute it.
slow_links[g.address] := {"speed": speed, "best": pcie_links.best(g.address).speed} if {
	some g in facts.named
	pcie_links.physical(g.address)
	g.performance_state == 0
	speed := pci.device[g.address].link.speed_gts
	speed > 0
	speed < pcie_links.best(g.address).speed
	g.pcie.generation < pci.generation[pcie_links.best(g.address).speed]
	not g.address in proven_ends
}

proven_ends := {end |
	some p in facts.gpu_pairs
	peers.joined(p) == "pcie"
	peers.measured(p.a, p.b) == "good"
	some end in [p.a, p.b]
}

# The link above a switch does not follow the GPUs' power states. AMD's cards
# have a switch of their own that does, so theirs are left out.
slow_links[address] := {"speed": speed, "best": pcie_links.best(address).speed} if {
	some address in pcie_links.lower
	pci.device[address].port_type == "upstream-port"
	pci.device[address].vendor != "0x1002"
	pcie_links.physical(address)
	speed := pci.device[address].link.speed_gts
	speed > 0
	speed < pcie_links.best(address).speed
}

# busy is true of a GPU that worked when nvidia-smi was asked: its link does not
# rest then.
busy(g) if g.utilization_percent >= thresholds.busy_percent

# held_low are GPUs whose link was at a lower generation than card and system can do
# while they worked. A second GPU of the same model that worked too and had its
# full speed says that the system does not hold it down.
held_low[g.address] := {"generation": g.pcie.generation, "best": g.pcie.max_generation} if {
	some g in facts.named
	pci.bare_metal
	not pcie_links.passed_through(g)
	not pcie_links.best(g.address)
	busy(g)
	g.pcie.generation > 0
	g.pcie.generation < g.pcie.max_generation
}

# fast_enough holds, by generation, the GPUs that worked beside them with a link of at least that.
fast_enough := {generation: addresses |
	some generation in {h.best | some h in held_low}
	addresses := {g.address |
		some g in facts.named
		busy(g)
		g.pcie.generation >= generation
	}
}

# From the PCI tree, NVML, lspci and the kernel's boot messages, and which models are often wired this way.

# accepted is true of a width that its model is often wired with.
accepted(address, width) if gpu_models.accepted_lanes[pci.device[address].device] <= width

# narrow are the links with fewer lanes than both ends offer. Width does not
# change with the power state, so this holds at any time.
narrow[address] := {"width": width, "best": pcie_links.best(address).width, "source": "config space of both ends"} if {
	some address in pcie_links.lower
	pcie_links.physical(address)
	width := pci.device[address].link.width
	width > 0
	width < pcie_links.best(address).width
}

# Without the port above there is NVML's maximum. It is documented as that of
# card and system together, yet boards that split 16 lanes into two slots show
# 16 there, so it only makes one look. In a virtual machine it is the card's
# alone, and a cloud's T4 in 8 lanes is as it should be.
narrow[g.address] := {"width": g.pcie.width, "best": g.pcie.max_width, "source": "NVML"} if {
	some g in facts.named
	pci.bare_metal
	not pcie_links.passed_through(g)
	not pcie_links.best(g.address)
	g.pcie.width > 0
	g.pcie.width < g.pcie.max_width
}

# lspci's own words on one function: what its card can do, and what it does
# ("Width x2 (downgraded)"). The port above was not shown.
narrow[d.address] := {"width": d.link.width, "best": d.link.max_width, "source": "lspci"} if {
	some d in input.pci.devices
	count(input.texts) > 0
	pci.bare_metal
	a_card(d)
	not pcie_links.best(d.address)
	object.get(facts.gpu, [d.address, "pcie", "max_width"], 0) == 0
	d.link.width > 0
	d.link.width < d.link.max_width
}

a_card(d) if d.kind == "gpu"

# grep has left out the kind of function; whoever selects one by its address (lspci -s)
# selects the suspect.
a_card(d) if object.get(d, "class", "") == ""

# told_narrow are the GPUs of which the kernel wrote at boot that a link on their
# way has a quarter of the lanes that they can use, or fewer (drivers/pci/pci.c,
# __pcie_print_link_status). It speaks of speeds too, which an idle GPU lowers.
told_narrow[e.address] := {"lanes": lanes, "best": best_lanes, "at": e.fields.port, "event": e} if {
	some e in pci.events["pcie-link"]
	e.id == "kernel-pcie-link-limited"
	lanes := to_number(e.fields.width)
	best_lanes := to_number(e.fields.best_width)
	lanes > 0
	lanes * 4 <= best_lanes
	a_gpu(e)
	not facts.is_guest == true
}

a_gpu(e) if e.address in facts.gpus

a_gpu(e) if e.fields.driver in {"nvidia", "amdgpu"}

# shown_wide is true where the link itself is known and is not narrow.
shown_wide(address) if {
	pcie_links.best(address)
	not narrow[address]
}
