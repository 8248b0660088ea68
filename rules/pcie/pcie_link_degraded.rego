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
#   remedies: [reseat-or-fix-pcie-link, bind-numa, update-bios, replace-hardware]
#   explains: [p2p-slow]
#   since: "0.1"
#   grades:
#     link:
#       remedies: [reseat-or-fix-pcie-link, update-bios, bind-numa]
#       text: >-
#         The link above {of} runs at {is}, below its maximum of {best}.[ {slow:transfer} over it {slow:was/were} slow.][ The
#         kernel counts {errors} corrected errors on it.]
#     copies:
#       confidence: possible
#       text: >-
#         {test}: {gbps:.1f} GB/s between host memory and {end}, where {basis} carries {expected:.1f} and at least
#         {good:.1f} counts as good; {low} of {all} values are too low. The first suspects are a link with few lanes or a
#         low speed (nvidia-smi -q while the copies run shows it), a narrow uplink of the switch above, and memory on
#         another NUMA node
#     network:
#       confidence: possible
#       text: "{words}. InfiniBand loses no packets, so the first suspect is the NIC's own PCIe link, then its NUMA node"
#     lagging:
#       confidence: possible
#       text: >-
#         NCCL's own check finds NICs far below the rest of the job: {nics}. The usual cause is a PCIe link with fewer
#         lanes, a bad cable or a port with a lower rate
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

# sign is what shows that a link runs below what is possible, by the function at its lower end. What both ends show has
# the first ranks, then what one end, NVML or the kernel says ("sure" is false: card or board may be made so).
sign(rank, is, best, unit, sure, evidence) := [rank, {
	"is": sprintf(unit, [is]),
	"best": sprintf(unit, [best]),
	"quarter": (is * 4) <= best,
	"sure": sure,
	"evidence": evidence,
}]

both_ends(address, field) := [
	{"fact": sprintf("pci.devices[%s].link.%s", [address, field]), "value": pci.device[address].link[field], "source": sprintf("/sys/bus/pci/devices/%s/config", [address])},
	{"fact": sprintf("pci.devices[%s].link.max_%s", [address, field]), "value": pci.device[address].link[sprintf("max_%s", [field])], "source": "the lower of both ends"},
]

# The width does not change with the power state.
signs[address] contains sign(0, width, best, "%d lanes", true, both_ends(address, "width")) if {
	some address in pcie_links.lower
	pcie_links.physical(address)
	width := pci.device[address].link.width
	width > 0
	best := pcie_links.best(address).width
	width < best
}

signs[address] contains sign(1, speed, best, "%v GT/s", true, evidence) if {
	some address in pcie_links.lower
	pcie_links.physical(address)
	speed := pci.device[address].link.speed_gts
	speed > 0
	best := pcie_links.best(address).speed
	speed < best
	at_work(address, best)
	evidence := array.concat(both_ends(address, "speed_gts"), facts.gpu_evidence({address}, "performance_state", "nvmlDeviceGetPerformanceState"))
}

# An idle GPU lowers its link to 2.5 GT/s and is healthy, so it must be in the fastest performance state, NVML and config
# space must agree, and copies at full speed refute it.
at_work(address, best) if {
	facts.gpu[address].performance_state == 0
	facts.gpu[address].pcie.generation < pci.generation[best]
	not address in proven_ends
}

# The link above a switch does not follow the GPUs' power states. AMD's cards
# have a switch of their own that does, so theirs are left out.
at_work(address, _) if {
	pci.device[address].port_type == "upstream-port"
	pci.device[address].vendor != "0x1002"
}

proven_ends := {end |
	some p in facts.gpu_pairs
	peers.joined(p) == "pcie"
	peers.measured(p.a, p.b) == "good"
	some end in [p.a, p.b]
}

# of_nvml are the GPUs of which NVML alone tells what card and slot support. It is documented as the maximum of both, yet
# boards that split 16 lanes into two slots show 16 there, so it only makes one look. In a virtual machine it is the
# card's alone, and a cloud's T4 in 8 lanes is as it should be.
of_nvml contains g if {
	some g in facts.named
	pci.bare_metal
	not g.virtualization_mode == "passthrough"
	not g.virtualization_mode == "vgpu"
	not pcie_links.best(g.address)
}

signs[g.address] contains sign(2, g.pcie.width, g.pcie.max_width, "%d lanes", false, facts.gpu_evidence({g.address}, "pcie", "NVML")) if {
	some g in of_nvml
	g.pcie.width > 0
	g.pcie.width < g.pcie.max_width
}

# GPUs whose link was at a lower generation than card and system can do while they worked.
signs[g.address] contains sign(3, rate[g.pcie.generation], rate[g.pcie.max_generation], "%v GT/s", true, evidence) if {
	some g in of_nvml
	g.utilization_percent >= thresholds.busy_percent
	g.pcie.generation < g.pcie.max_generation
	evidence := array.concat(facts.gpu_evidence({g.address}, "pcie", "NVML"), facts.gpu_evidence({g.address}, "utilization_percent", "NVML"))
}

rate[generation] := gts if some gts, generation in pci.generation

# lspci's own words on one function ("Width x2 (downgraded)"), where the port above was not shown. If grep has left out
# the kind of function, whoever selects one by its address (lspci -s) selects the suspect.
signs[d.address] contains sign(4, d.link.width, d.link.max_width, "%d lanes", false, both_ends(d.address, "width")) if {
	count(input.texts) > 0
	pci.bare_metal
	some d in input.pci.devices
	"gpu" in {d.kind, {"": "gpu"}[object.get(d, "class", "")]}
	not pcie_links.best(d.address)
	object.get(facts.gpu, [d.address, "pcie", "max_width"], 0) == 0
	d.link.width > 0
	d.link.width < d.link.max_width
}

# What the kernel writes at boot of a GPU whose path has a quarter of the lanes that it can use, or fewer
# (drivers/pci/pci.c, __pcie_print_link_status). It speaks of speeds too, which an idle GPU lowers.
signs[e.address] contains sign(5, lanes, best, "%d lanes", false, pci.event_evidence({e})) if {
	some e in pci.events["pcie-link"]
	e.id == "kernel-pcie-link-limited"
	lanes := to_number(e.fields.width)
	best := to_number(e.fields.best_width)
	lanes > 0
	lanes * 4 <= best
	a_gpu(e)
	not facts.is_guest == true
	not pcie_links.best(e.address)
}

# A NIC does not lower the speed of its link, and a quarter of what it can do is no matter of the board's generation.
signs[e.address] contains sign(5, gbps, best, "%v Gb/s", false, pci.event_evidence({e})) if {
	some e in pci.events["pcie-link"]
	pci.of_nic(e)
	gbps := to_number(e.fields.gbps)
	best := to_number(e.fields.best_gbps)
	gbps * 4 <= best
	not facts.is_guest == true
}

a_gpu(e) if e.address in facts.gpus
a_gpu(e) if e.fields.driver in {"nvidia", "amdgpu"}

# A quarter of the lanes or of the speed loses more than half of the bandwidth. Some models are often wired with fewer
# lanes.
severity(address, s) := "low" if {
	endswith(s.is, "lanes")
	gpu_models.accepted_lanes[pci.device[address].device] <= pci.device[address].link.width
} else := {[true, true]: "high", [true, false]: "medium", [false, true]: "medium", [false, false]: "low"}[[s.sure, s.quarter]]

confidence(address, s) := "possible" if {
	not s.sure
} else := "confirmed" if {
	count(pcie_links.slow_transfers(address)) > 0
} else := "likely"

findings contains {
	"grade": "link",
	"subject": address,
	"affects": [gpu | some gpu in sort(pcie_links.below(address)); gpu in facts.gpus],
	"about": {
		"of": pcie_links.described(address), "is": s.is, "best": s.best,
		"slow": pcie_links.slow_transfers(address),
		"errors": [e.value | some e in errors],
	},
	"evidence": array.concat(s.evidence, errors),
	"params": {"device": address},
	"severity": severity(address, s),
	"confidence": confidence(address, s),
} if {
	some address, ss in signs
	s := sort(ss)[0][1]
	errors := pcie_links.corrected(address)
}

# Copies between host memory and the GPUs that a benchmark measured below what their links carry.
findings contains {
	"grade": "copies",
	"subject": sprintf("%s, %s", [b.tool, b.test]),
	"about": {
		"test": b.test, "gbps": worst.gbps, "end": {worst.a, worst.b} - {"CPU"}, "basis": worst.basis,
		"expected": worst.expected_gbps, "good": worst.expected_gbps * worst.threshold,
		"low": count(ps), "all": count(b.points),
	},
	"evidence": benchmarks.points_evidence(b, ps),
	"severity": {true: "low", false: "medium"}[alike(ps, count(b.points))],
} if {
	some i, ps in benchmarks.low
	b := input.benchmarks[i]
	b.what in {"host-to-gpu", "gpu-to-host"}
	worst := benchmarks.worst(ps)
}

# alike is true of several values that all are low and do not differ: the links of GPUs rarely fail together, but the
# uplinks of the switches above them are alike (AWS p5: PCIe 4.0 x8), if these are not known.
default alike(_, _) := false

alike(points, all) if {
	count(points) == all
	count(points) > 1
	rates := {p.gbps | some p in points}
	max(rates) <= min(rates) * 1.1
	count(object.get(input, ["links", "hosts"], [])) == 0
	benchmarks.worst(points).threshold < 1 # Else no slot explains it: the bound is a rate, not a share of one.
}

# A NIC that does not reach the rate of its InfiniBand port from host memory, where
# credits lose no packet, is most often in a slot that is too narrow or too slow.
findings contains {
	"grade": "network",
	"subject": n.point.a,
	"about": {"words": rdma.network_words(n)},
	"evidence": [rdma.network_evidence(n)],
} if {
	some n in rdma.slow_networks.host
	not "Ethernet" in {p.link_layer | some p in n.ports}
}

# NCCL's own check compares what each rank gets over its NIC. One that is above the rest of its job is no fault.
lagging contains m if {
	some m in logs.by_id["nccl-diag-net-slow"]
	to_number(m.fields.rate) < to_number(m.fields.median)
}

findings contains {
	"grade": "lagging",
	"subject": sprintf("NIC of rank %s", [facts.list({m.fields.rank | some m in lagging})]),
	"about": {"nics": {sprintf("rank %s on %s, %s of %s Gb/s", [m.fields.rank, m.fields.slow_host, m.fields.rate, m.fields.median]) | some m in lagging}},
	"messages": lagging,
} if count(lagging) > 0

missing contains {"fact": "pci.devices[].link", "words": "the real links of the GPUs are not visible (in a virtual machine they never are)"} if {
	count(facts.gpus) > 0
	count({address | some address in facts.gpus; shown(address)}) == 0
}

shown(address) if {
	not facts.is_guest == true
	pcie_links.best(address)
}

shown(address) if {
	not facts.is_guest == true
	facts.gpu[address].pcie.width > 0
}

not_applicable contains "no GPU" if count(facts.gpus) == 0
