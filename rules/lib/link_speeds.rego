# METADATA
# title: PCIe links that run below their speed under load
# description: >-
#   An idle GPU lowers its link speed and is healthy, so only its speed under
#   load counts.
package gpudoctor.lib.link_speeds

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.pcie_links
import data.gpudoctor.lib.peers
import data.tables.limits

# slow are the links that are: first those of GPUs in the fastest performance state. An
# idle GPU lowers its link to 2.5 GT/s and is healthy, so its own word for the
# state is needed, NVML and config space must agree, and copies at full speed
# refute it.
slow[g.address] := {"speed": speed, "best": pcie_links.best(g.address).speed} if {
	some g in facts.named
	pcie_links.physical(g.address)
	g.performance_state == 0
	speed := pci.device[g.address].link.speed_gts
	speed > 0
	speed < pcie_links.best(g.address).speed
	g.pcie.generation < pci.generation[pcie_links.best(g.address).speed]
	not proven(g.address)
}

proven(address) if address in proven_ends

proven_ends := {end |
	some p in facts.gpu_pairs
	peers.joined(p) == "pcie"
	peers.measured(p.a, p.b) == "good"
	some end in [p.a, p.b]
}

# The link above a switch does not follow the GPUs' power states. AMD's cards
# have a switch of their own that does, so theirs are left out.
slow[address] := {"speed": speed, "best": pcie_links.best(address).speed} if {
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
busy(g) if g.utilization_percent >= limits.busy_percent

# held_low are GPUs whose link was at a lower generation than card and system can do
# while they worked. A second GPU of the same model that worked too and had its
# full speed says that the system does not hold it down.
held_low[g.address] := {"generation": g.pcie.generation, "best": g.pcie.max_generation} if {
	some g in facts.named
	pcie_links.real_hardware
	not pcie_links.passed_through(g)
	not pcie_links.best(g.address)
	busy(g)
	g.pcie.generation > 0
	g.pcie.generation < g.pcie.max_generation
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
