# METADATA
# title: A PCIe link runs below what both its ends can do
# description: >-
#   A link on the way of a GPU or NIC has fewer lanes than both its ends
#   offer, or stays at a lower speed under load. A card that is not fully
#   seated, a riser, a retimer or a BIOS setting is the usual cause.
# related_resources:
#   - ref: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
#     description: current_link_speed, current_link_width and their maxima.
#   - ref: https://github.com/NVIDIA/DCGM/blob/master/nvvs/diag-skus.yaml.in
#     description: The least width that NVIDIA's own diagnosis accepts for each model.
# schemas:
#   - input: schema.facts
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
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.pcie_link_degraded

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.rdma
import data.tables.limits

# endpoints are the GPUs, and the NICs that stand in a pair with one.
endpoints := facts.gpus | {p.b | some p in facts.pairs; p.kind == "gpu-nic"}

# lower are the functions at the lower end of a link on the way of an
# endpoint: the endpoint itself and each switch above it.
lower contains address if some address in endpoints

lower contains bridge if {
	some address in endpoints
	some bridge in pci.device[address].ancestors
	pci.device[bridge].port_type == "upstream-port"
}

# below are the endpoints whose way goes over the link above a function.
below(address) := object.get(above, address, set())

above[address] contains e if {
	some e in endpoints
	some address in array.concat([e], [x | some x in pci.device[e].ancestors])
}

# physical is false where the link is a hypervisor's invention: it says what
# somebody configured, not what is wired.
physical(address) if {
	pci.bare_metal
	not pci.emulated(pci.parent(address).address)
}

# best is what both ends of a link can do, as the PCI tree shows them.
best(address) := {
	"width": min({d.link.max_width, up.link.max_width}),
	"speed": min({d.link.max_speed_gts, up.link.max_speed_gts}),
} if {
	d := pci.device[address]
	up := pci.parent(address)
	d.link.max_width > 0
	up.link.max_width > 0
	d.link.max_speed_gts > 0
	up.link.max_speed_gts > 0
}

# accepted_width is the least width that DCGM accepts of models that are often
# wired with fewer lanes than they have (nvvs/diag-skus.yaml.in).
accepted_width := {
	"0x1eb8": 8, # T4
	"0x2237": 8, # A10G
	"0x20f3": 8, # A800 SXM
	"0x20f5": 8, # A800 PCIe
	"0x26b9": 8, # L40S
	"0x25b6": 4, # A2, A16
}

accepted(address, width) if accepted_width[pci.device[address].device] <= width

# narrow are the links with fewer lanes than both ends offer. Width does not
# change with the power state, so this holds at any time.
narrow[address] := {"width": width, "best": best(address).width, "source": "config space of both ends"} if {
	some address in lower
	physical(address)
	width := pci.device[address].link.width
	width > 0
	width < best(address).width
}

# Without the port above there is NVML's maximum. It is documented as that of
# card and system together, yet boards that split 16 lanes into two slots show
# 16 there, so it only makes one look. In a virtual machine it is the card's
# alone, and a cloud's T4 in 8 lanes is as it should be.
narrow[g.address] := {"width": g.pcie.width, "best": g.pcie.max_width, "source": "NVML"} if {
	some g in facts.named
	at_home
	not passed_through(g)
	not best(g.address)
	g.pcie.width > 0
	g.pcie.width < g.pcie.max_width
}

# at_home is true where the machine is known to be none that a hypervisor made, or
# a text shows widths and nothing speaks of a hypervisor.
at_home if facts.is_guest == false

at_home if {
	count(input.texts) > 0
	not facts.is_guest == true
}

# lspci's own words on one function: what its card can do, and what it does
# ("Width x2 (downgraded)"). The port above was not shown.
narrow[d.address] := {"width": d.link.width, "best": d.link.max_width, "source": "lspci"} if {
	some d in input.pci.devices
	count(input.texts) > 0
	at_home
	a_card(d)
	not best(d.address)
	not width_by_nvml(d.address)
	d.link.width > 0
	d.link.width < d.link.max_width
}

# link_fact is where each source tells the width of a device's link.
link_fact := {
	"config space of both ends": "pci.devices[%s].link.%s",
	"lspci": "pci.devices[%s].link.%s",
	"NVML": "gpus.devices[%s].pcie.%s",
}

width_by_nvml(address) if address in widths_by_nvml

widths_by_nvml := {g.address |
	some g in facts.named
	g.pcie.max_width > 0
}

a_card(d) if d.kind == "gpu"

# grep has left out what function it is; who asks for one by its address
# (lspci -s) asks for the one that he suspects.
a_card(d) if object.get(d, "class", "") == ""

passed_through(g) if g.virtualization_mode in {"passthrough", "vgpu"}

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
	"affects": affected(address),
	"message": sprintf("The link above %s runs with %d lanes, while %s %d.%s%s", [
		described(address), n.width, limit[n.source], n.best, felt(address), errors_text(address),
	]),
	"evidence": array.concat(
		[
			{"fact": sprintf(link_fact[n.source], [address, "width"]), "value": n.width, "source": n.source},
			{"fact": sprintf(link_fact[n.source], [address, "max_width"]), "value": n.best, "source": n.source},
		],
		error_evidence(address),
	),
	"params": {"device": address, "width": n.width, "best_width": n.best},
	"severity": width_grade(address, n),
	"confidence": width_confidence(address, n),
} if {
	some address, n in narrow
}

limit := {
	"config space of both ends": "both its ends can do",
	"NVML": "by NVML card and slot may do up to",
	"lspci": "the card can do",
}

# What NVML alone says stays possible: a slow transfer fits either reading.
width_confidence(address, n) := "possible" if {
	n.source != "config space of both ends"
} else := confidence(address)

default affected(_) := []

affected(address) := sort(below(address) & facts.gpus)

described(address) := sprintf("switch %s", [address]) if {
	pci.device[address].port_type == "upstream-port"
} else := sprintf("GPU %s", [address]) if {
	address in facts.gpus
} else := address if {
	pci.device[address].kind == ""
} else := sprintf("NIC %s", [address])

# bridged are the pairs that NVLink joins: what is slow there did not go over
# PCIe.
bridged := {peers.key(p.a, p.b) | some p in facts.gpu_pairs; p.nvlinks > 0}

# slowed are the slow transfers of the endpoints behind a link.
slowed(address) := {t | some gpu in below(address); some t in slow_of[gpu]}

slow_of[gpu] contains t if {
	some k, ts in peers.sluggish
	not k in bridged
	some t in ts
	t.test != "all-at-once"
	some gpu in [t.source, t.destination]
}

confidence(address) := "confirmed" if {
	count(slowed(address)) > 0
} else := "likely"

felt(address) := " Transfers over it were measured too slow." if {
	count(slowed(address)) > 0
} else := ""

# AER's counters tell an unreliable link from one that is wired so.
corrected(address) := sum([n |
	some end in {address, pci.parent(address).address}
	n := pci.device[end].aer.total_correctable
])

errors_text(address) := sprintf(" The kernel counts %d corrected errors on it.", [corrected(address)]) if {
	corrected(address) > 0
} else := ""

error_evidence(address) := [{
	"fact": sprintf("pci.devices[%s].aer.total_correctable", [address]),
	"value": corrected(address),
	"source": sprintf("/sys/bus/pci/devices/%s/aer_dev_correctable, and that of the port above", [address]),
} |
	corrected(address) > 0
]

# dragging are GPUs whose link is slow in the fastest performance state. An
# idle GPU lowers its link to 2.5 GT/s and is healthy, so its own word for the
# state is needed, NVML and config space must agree, and copies at full speed
# refute it.
dragging[g.address] := {"speed": speed, "best": best(g.address).speed} if {
	some g in facts.named
	physical(g.address)
	g.performance_state == 0
	speed := pci.device[g.address].link.speed_gts
	speed > 0
	speed < best(g.address).speed
	g.pcie.generation < pci.generation[best(g.address).speed]
	not quick(g.address)
}

quick(address) if address in quick_ends

quick_ends := {end |
	some p in facts.gpu_pairs
	peers.joined(p) == "pcie"
	peers.measured(p.a, p.b) == "good"
	some end in [p.a, p.b]
}

# The link above a switch does not follow the GPUs' power states. AMD's cards
# have a switch of their own that does, so theirs are left out.
dragging[address] := {"speed": speed, "best": best(address).speed} if {
	some address in lower
	pci.device[address].port_type == "upstream-port"
	pci.device[address].vendor != "0x1002"
	physical(address)
	speed := pci.device[address].link.speed_gts
	speed > 0
	speed < best(address).speed
}

# busy is true of a GPU that worked when nvidia-smi was asked: its link does not
# rest then.
busy(g) if g.utilization_percent >= limits.busy_percent

# held_low are GPUs whose link was at a lower generation than card and system can do
# while they worked. A second GPU of the same model that worked too and had its
# full speed says that the system does not hold it down.
held_low[g.address] := {"generation": g.pcie.generation, "best": g.pcie.max_generation} if {
	some g in facts.named
	at_home
	not passed_through(g)
	not best(g.address)
	busy(g)
	g.pcie.generation > 0
	g.pcie.generation < g.pcie.max_generation
}

findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("The link of GPU %s was at PCIe generation %d while the GPU worked, though card and slot may do generation %d%s. A link that was trained low, a riser or a retimer holds it down; each generation halves the bandwidth.", [
		address, g.generation, g.best, twin_words(address),
	]),
	"evidence": [
		{"fact": sprintf("gpus.devices[%s].pcie.generation", [address]), "value": g.generation, "source": "NVML"},
		{"fact": sprintf("gpus.devices[%s].utilization_percent", [address]), "value": facts.gpu[address].utilization_percent, "source": "NVML"},
	],
	"params": {"device": address, "generation": g.generation, "best_generation": g.best},
	"severity": held_low_grade(address, g),
	"confidence": "likely",
} if {
	some address, g in held_low
	not dragging[address]
}

# twins are GPUs that worked beside it with the link that it lacks.
twins(address) := fast_enough[held_low[address].best]

# fast_enough holds, by generation, the GPUs that worked with a link of at least that.
fast_enough := {generation: addresses |
	some generation in {h.best | some h in held_low}
	addresses := {g.address |
		some g in facts.named
		busy(g)
		g.pcie.generation >= generation
	}
}

twin_words(address) := sprintf(", as that of %s was", [facts.few(twins(address))]) if {
	count(twins(address)) > 0
} else := ""

held_low_grade(address, g) := "high" if {
	count(twins(address)) > 0
	g.best - g.generation >= 2
} else := "medium"

findings contains {
	"subject": address,
	"affects": affected(address),
	"message": sprintf("The link above %s runs at %v GT/s, while both its ends can do %v.%s%s", [
		described(address), d.speed, d.best, felt(address), errors_text(address),
	]),
	"evidence": array.concat(
		[
			{
				"fact": sprintf("pci.devices[%s].link.speed_gts", [address]),
				"value": d.speed,
				"source": sprintf("/sys/bus/pci/devices/%s/config", [address]),
			},
			{
				"fact": sprintf("pci.devices[%s].link.max_speed_gts", [address]),
				"value": d.best,
				"source": "the lower of both ends",
			},
		],
		array.concat(state_evidence(address), error_evidence(address)),
	),
	"params": {"device": address, "speed_gts": d.speed, "best_speed_gts": d.best},
	"severity": speed_grade(d),
	"confidence": confidence(address),
} if {
	some address, d in dragging
	not narrow[address]
}

speed_grade(d) := "high" if {
	d.speed * 4 <= d.best
} else := "medium"

state_evidence(address) := [{
	"fact": sprintf("gpus.devices[%s].performance_state", [address]),
	"value": facts.gpu[address].performance_state,
	"source": "nvmlDeviceGetPerformanceState",
} |
	facts.gpu[address].performance_state == 0
]

# told_narrow are the GPUs of which the kernel wrote at boot that a link on their
# way has a quarter of the lanes that they can use, or fewer (drivers/pci/pci.c,
# __pcie_print_link_status). It speaks of speeds too, which an idle GPU lowers.
told_narrow[e.address] := {"lanes": lanes, "best": best_lanes, "at": m[3], "event": e} if {
	some e in pci.events["pcie-link"]
	some m in regex.find_all_string_submatch_n(`limited by [0-9.]+ GT/s PCIe(?: Gen)? ?x([0-9]{1,2}) link at ([^ ]*?)([0-9a-f]{4,8}:[0-9a-f:.]+).*GT/s PCIe(?: Gen)? ?x([0-9]{1,2})`, e.message, 1)
	lanes := to_number(m[1])
	best_lanes := to_number(m[4])
	lanes > 0
	lanes * 4 <= best_lanes
	a_gpu(e)
	not facts.is_guest == true
}

a_gpu(e) if e.address in facts.gpus

a_gpu(e) if regex.match(`^(nvidia|amdgpu) `, e.message)

findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("The kernel found %d lanes on the way of GPU %s, at %s, which can use %d.", [n.lanes, address, n.at, n.best]),
	"evidence": pci.event_evidence({n.event}),
	"params": {"device": address, "width": n.lanes, "best_width": n.best},
	"severity": "medium",
	"confidence": "likely",
} if {
	some address, n in told_narrow
	not narrow[address]
	not accepted(address, n.lanes)
	not shown_wide(address)
}

# shown_wide is true where the link itself is known and is not narrow.
shown_wide(address) if {
	best(address)
	not narrow[address]
}

# What a benchmark measured between host memory and the GPUs, against their links.
findings contains {
	"subject": sprintf("%s, %s", [b.tool, b.test]),
	"message": sprintf("%s: %s GB/s between host memory and %s, where %s carries %s and at least %s counts as good; %d of %d values are too low. %s.", [
		b.test, peers.decimal(worst.gbps), [e | some e in [worst.a, worst.b]; e != "CPU"][0], worst.basis, peers.decimal(worst.expected_gbps),
		peers.decimal(worst.expected_gbps * worst.threshold), count(ps), count(b.points), remark,
	]),
	"evidence": benchmarks.points_evidence(b, ps),
	"severity": "medium",
	"confidence": "possible",
	"remedies": cures,
} if {
	some i, ps in benchmarks.low
	b := input.benchmarks[i]
	b.what in {"host-to-gpu", "gpu-to-host"}
	worst := benchmarks.worst(ps)
	[remark, cures] := {
		true: ["A link that fell to fewer lanes or a lower speed is the first suspect", ["reseat-or-fix-pcie-link", "update-bios"]],
		false: ["Others are good, so their link fell to fewer lanes or a lower speed, or the memory was on a far NUMA node", ["reseat-or-fix-pcie-link", "bind-numa", "update-bios"]],
	}[count(ps) == count(b.points)]
}

# A NIC that does not reach the rate of its InfiniBand port from host memory, where
# credits lose no packet, is most often in a slot that is too narrow or too slow.
findings contains {
	"subject": n.point.a,
	"message": sprintf("%s. InfiniBand loses no packets, so the NIC's own PCIe link is the first suspect, then its NUMA node", [rdma.network_words(n)]),
	"evidence": [rdma.network_evidence(n)],
	"severity": "medium",
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
	"message": sprintf("NCCL's own check finds NICs far below the rest of the job: %s. A PCIe link with fewer lanes, a bad cable or a port of a lower rate does that.", [
		concat("; ", sort({sprintf("rank %s on %s, %s of %s Gb/s (%s)", [m.fields.rank, m.fields.slow_host, m.fields.rate, m.fields.median, m.fields.mode]) | some m in lagging})),
	]),
	"messages": lagging,
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["reseat-or-fix-pcie-link", "bind-numa", "update-bios"],
} if {
	count(lagging) > 0
}

missing contains {"fact": "pci.devices[].link", "words": "in a virtual machine the real links are not visible"} if {
	facts.is_guest == true
	count(facts.gpus) > 0
}

missing contains {"fact": "host.virtualization", "words": "whether this is bare metal is not known"} if {
	not virtualization_known
	not no_gpu
}

missing contains {"fact": "pci.devices[].link", "words": "the links of the GPUs are not known"} if {
	facts.is_guest == false
	count(facts.gpus) > 0
	count({address | some address in facts.gpus; shown(address)}) == 0
}

shown(address) if best(address)

shown(address) if facts.gpu[address].pcie.width > 0

virtualization_known if is_boolean(facts.is_guest)

no_gpu if count(facts.gpus) == 0

not_applicable contains "no GPU" if no_gpu
