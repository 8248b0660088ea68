# METADATA
# title: PCIe links with fewer lanes than they support
# description: >-
#   From the PCI tree, NVML, lspci and the kernel's boot messages, and which
#   models are often wired this way.
package gpudoctor.lib.link_widths

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.pcie_links
import data.tables.gpu_models

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
	pcie_links.real_hardware
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
	pcie_links.real_hardware
	a_card(d)
	not pcie_links.best(d.address)
	not width_by_nvml(d.address)
	d.link.width > 0
	d.link.width < d.link.max_width
}

width_by_nvml(address) if address in widths_by_nvml

widths_by_nvml := {g.address |
	some g in facts.named
	g.pcie.max_width > 0
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
