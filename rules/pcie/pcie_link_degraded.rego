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
#         The link above {subject} runs at {is} {unit}, below its maximum of {best}.[ {slow:transfer} over it
#         {slow:was/were} slow.]
#     copies:
#       confidence: possible
#       text: >-
#         {test}: {gbps:.1f} GB/s between host memory and {end}, where {basis} carries {expected:.1f} and at least
#         {good:.1f} counts as good; {low} of {all} values are too low. The first suspects are a link with few lanes or a
#         low speed (nvidia-smi -q while the copies run shows it), a narrow uplink of the switch above, and memory on
#         another NUMA node
package gpudoctor.rules.pcie_link_degraded

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.pcie_links
import data.gpudoctor.lib.peers
import data.tables.gpu_models

# sign is what shows that a link runs below what is possible, by the function at its lower end. What both ends show has
# the first ranks and is sure; of what one end, NVML or the kernel says, card or board may be made so.
sign(rank, is, best, unit, evidence) := [rank, {"is": is, "best": best, "unit": unit, "sure": rank < 2, "evidence": evidence}]

link_evidence(address, field) := [{
	"fact": sprintf("pci.devices[%s].link.%s", [address, name]),
	"value": pci.device[address].link[name],
	"source": sprintf("/sys/bus/pci/devices/%s/config", [address]),
} |
	some name in [field, sprintf("max_%s", [field])]
]

# The width does not change with the power state.
signs[address] contains sign(0, width, best, "lanes", link_evidence(address, "width")) if {
	some address in pcie_links.lower
	pcie_links.physical(address)
	width := pci.device[address].link.width
	width > 0
	best := pcie_links.best(address).width
	width < best
}

signs[address] contains sign(1, speed, best, "GT/s", evidence) if {
	some address in pcie_links.lower
	pcie_links.physical(address)
	speed := pci.device[address].link.speed_gts
	speed > 0
	best := pcie_links.best(address).speed
	speed < best
	at_work(address, best)
	evidence := array.concat(link_evidence(address, "speed_gts"), facts.gpu_evidence({address}, "performance_state", "nvmlDeviceGetPerformanceState"))
}

# An idle GPU lowers its link to 2.5 GT/s and is healthy, so it must be in the fastest performance state, NVML and config
# space must agree, and copies at full speed refute it.
at_work(address, best) if {
	facts.gpu[address].performance_state == 0
	facts.gpu[address].pcie.generation < pci.generation[best]
	not address in proven
}

# The link above a switch does not follow the GPUs' power states. AMD's cards have a switch of their own that does, so
# theirs are left out.
at_work(address, _) if {
	pci.device[address].port_type == "upstream-port"
	pci.device[address].vendor != "0x1002"
}

proven := peers.ends({p | some p in facts.gpu_pairs; peers.joined(p) == "pcie"; peers.measured(p.a, p.b) == "good"})

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

signs[g.address] contains sign(2, g.pcie.width, g.pcie.max_width, "lanes", facts.gpu_evidence({g.address}, "pcie", "NVML")) if {
	some g in of_nvml
	g.pcie.width > 0
	g.pcie.width < g.pcie.max_width
}

# lspci's own words on one function ("Width x2 (downgraded)"), where the port above was not shown.
signs[d.address] contains sign(3, d.link.width, d.link.max_width, "lanes", link_evidence(d.address, "width")) if {
	count(input.texts) > 0
	pci.bare_metal
	some d in input.pci.devices
	d.kind == "gpu"
	not pcie_links.best(d.address)
	object.get(facts.gpu, [d.address, "pcie", "max_width"], 0) == 0
	d.link.width > 0
	d.link.width < d.link.max_width
}

# What the kernel writes at boot of a GPU or NIC whose path has a quarter of the lanes that it can use, or fewer
# (drivers/pci/pci.c, __pcie_print_link_status). It speaks of speeds too, which an idle GPU lowers.
signs[e.address] contains sign(4, lanes, best, "lanes", pci.event_evidence({e})) if {
	some e in pci.events["pcie-link"]
	e.id == "kernel-pcie-link-limited"
	lanes := to_number(e.fields.width)
	best := to_number(e.fields.best_width)
	lanes > 0
	lanes * 4 <= best
	ours(e)
	not logs.said("spark-told") # Its NIC has four lanes on each link.
	not facts.is_guest == true
	not pcie_links.best(e.address)
}

ours(e) if e.address in facts.gpus
ours(e) if e.fields.driver in {"nvidia", "amdgpu"}
ours(e) if pci.of_nic(e)

# A quarter of the lanes or of the speed loses more than half of the bandwidth. Some models are often wired with fewer
# lanes.
severity(address, s) := "low" if {
	s.unit == "lanes"
	gpu_models.accepted_lanes[pci.device[address].device] <= pci.device[address].link.width
} else := {[true, true]: "high", [true, false]: "medium", [false, true]: "medium", [false, false]: "low"}[[s.sure, (s.is * 4) <= s.best]]

confidence(s, slow) := "possible" if {
	not s.sure
} else := {true: "confirmed", false: "likely"}[count(slow) > 0]

findings contains {
	"grade": "link",
	"subject": address,
	"affects": [gpu | some gpu in sort(pcie_links.below(address)); gpu in facts.gpus],
	"about": {"is": s.is, "best": s.best, "unit": s.unit, "slow": slow},
	"evidence": s.evidence,
	"params": {"device": address},
	"severity": severity(address, s),
	"confidence": confidence(s, slow),
} if {
	some address, ss in signs
	s := sort(ss)[0][1]
	slow := pcie_links.slow_transfers(address)
}

# Copies between host memory and the GPUs that a benchmark measured below what their links carry. The links of GPUs
# rarely fail together, but the uplinks of the switches above them are alike (AWS p5: PCIe 4.0 x8), so several values
# that are all low weigh less.
findings contains {
	"grade": "copies",
	"subject": sprintf("%s, %s", [b.tool, b.test]),
	"about": {
		"test": b.test, "gbps": worst.gbps, "end": {worst.a, worst.b} - {"CPU"}, "basis": worst.basis,
		"expected": worst.expected_gbps, "good": worst.expected_gbps * worst.threshold,
		"low": count(ps), "all": count(b.points),
	},
	"evidence": benchmarks.points_evidence(b, ps),
	"severity": {true: "low", false: "medium"}[count(ps) == max([count(b.points), 2])],
} if {
	some i, ps in benchmarks.low
	b := input.benchmarks[i]
	b.what in {"host-to-gpu", "gpu-to-host"}
	worst := benchmarks.worst(ps)
}

missing contains {"fact": "pci.devices[].link", "words": "the real links of the GPUs are not visible (in a virtual machine they never are)"} if {
	count(facts.gpus) > 0
	count({address | some address in facts.gpus; shown(address); not facts.is_guest == true}) == 0
}

shown(address) if pcie_links.best(address)
shown(address) if facts.gpu[address].pcie.width > 0

not_applicable contains "no GPU" if count(facts.gpus) == 0
