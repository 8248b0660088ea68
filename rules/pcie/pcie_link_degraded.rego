# METADATA
# title: A PCIe link runs below what both ends support
# description: >-
#   A link on the path of a GPU or NIC has fewer lanes than both ends support,
#   or stays at a lower speed under load. The usual cause is a card that is not
#   fully seated, a riser, a retimer or a BIOS setting.
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
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.pcie_link_degraded

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.host_copies
import data.gpudoctor.lib.link_speeds
import data.gpudoctor.lib.link_widths
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.pcie_links
import data.gpudoctor.lib.rdma

# link_fact is where each source has the width of a device's link.
link_fact := {
	"config space of both ends": "pci.devices[%s].link.%s",
	"lspci": "pci.devices[%s].link.%s",
	"NVML": "gpus.devices[%s].pcie.%s",
}

# width_grade: a quarter of the lanes or less loses more than half of the
# bandwidth, which is what "high" means.
width_grade(address, n) := "low" if {
	link_widths.accepted(address, n.width)
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
		pcie_links.described(address), n.width, limit[n.source], n.best,
		pcie_links.slow_words(address), pcie_links.errors_text(address),
	]),
	"evidence": array.concat(
		[
			{"fact": sprintf(link_fact[n.source], [address, "width"]), "value": n.width, "source": n.source},
			{"fact": sprintf(link_fact[n.source], [address, "max_width"]), "value": n.best, "source": n.source},
		],
		pcie_links.error_evidence(address),
	),
	"params": {"device": address, "width": n.width, "best_width": n.best},
	"severity": width_grade(address, n),
	"confidence": width_confidence(address, n),
} if {
	some address, n in link_widths.narrow
}

limit := {
	"config space of both ends": "both ends support",
	"NVML": "according to NVML, card and slot support up to",
	"lspci": "the card supports",
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
	"message": sprintf("The link of GPU %s ran at PCIe generation %d while the GPU was busy, but card and slot support generation %d%s. A link that was trained too low, a riser or a retimer limits it; each generation halves the bandwidth.", [
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
	some address, g in link_speeds.held_low
	not link_speeds.slow[address]
}

twin_words(address) := sprintf(", as that of %s was", [facts.few(link_speeds.twins(address))]) if {
	count(link_speeds.twins(address)) > 0
} else := ""

held_low_grade(address, g) := "high" if {
	count(link_speeds.twins(address)) > 0
	g.best - g.generation >= 2
} else := "medium"

findings contains {
	"subject": address,
	"affects": pcie_links.affected(address),
	"message": sprintf("The link above %s runs at %v GT/s, but both ends support %v.%s%s", [
		pcie_links.described(address), d.speed, d.best, pcie_links.slow_words(address), pcie_links.errors_text(address),
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
		array.concat(state_evidence(address), pcie_links.error_evidence(address)),
	),
	"params": {"device": address, "speed_gts": d.speed, "best_speed_gts": d.best},
	"severity": speed_grade(d),
	"confidence": confidence(address),
} if {
	some address, d in link_speeds.slow
	not link_widths.narrow[address]
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

findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("The kernel found %d lanes on the path of GPU %s, at %s, which supports %d.", [n.lanes, address, n.at, n.best]),
	"evidence": pci.event_evidence({n.event}),
	"params": {"device": address, "width": n.lanes, "best_width": n.best},
	"severity": "medium",
	"confidence": "likely",
} if {
	some address, n in link_widths.told_narrow
	not link_widths.narrow[address]
	not link_widths.accepted(address, n.lanes)
	not link_widths.shown_wide(address)
}

# What a benchmark measured between host memory and the GPUs, against their links.
findings contains found if some found in host_copies.found

# A NIC that does not reach the rate of its InfiniBand port from host memory, where
# credits lose no packet, is most often in a slot that is too narrow or too slow.
findings contains {
	"subject": n.point.a,
	"message": sprintf("%s. InfiniBand loses no packets, so the first suspect is the NIC's own PCIe link, then its NUMA node", [rdma.network_words(n)]),
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
	"message": sprintf("NCCL's own check finds NICs far below the rest of the job: %s. The usual cause is a PCIe link with fewer lanes, a bad cable or a port with a lower rate.", [
		concat("; ", sort({sprintf("rank %s on %s, %s of %s Gb/s (%s)", [m.fields.rank, m.fields.slow_host, m.fields.rate, m.fields.median, m.fields.mode]) | some m in lagging})),
	]),
	"messages": lagging,
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["reseat-or-fix-pcie-link", "bind-numa", "update-bios"],
} if {
	count(lagging) > 0
}

missing contains {"fact": "pci.devices[].link", "words": "in a virtual machine, the real links are not visible"} if {
	facts.is_guest == true
	count(facts.gpus) > 0
}

missing contains {"fact": "host.virtualization", "words": "it is not known whether this is bare metal"} if {
	not virtualization_known
	not no_gpu
}

missing contains {"fact": "pci.devices[].link", "words": "the links of the GPUs are not known"} if {
	facts.is_guest == false
	count(facts.gpus) > 0
	count({address | some address in facts.gpus; shown(address)}) == 0
}

shown(address) if pcie_links.best(address)

shown(address) if facts.gpu[address].pcie.width > 0

virtualization_known if is_boolean(facts.is_guest)

no_gpu if count(facts.gpus) == 0

not_applicable contains "no GPU" if no_gpu
