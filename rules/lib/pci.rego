# The PCI tree: devices by address, the ports above them, and which Access Control Services bits redirect peer traffic.
package gpudoctor.lib.pci

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.tables.rates

# bare_metal is true if no hypervisor is below this kernel. Texts that users send rarely show this; anyone who runs
# lspci or reads the kernel log is assumed to be on a real machine, unless something shows otherwise.
bare_metal if facts.is_guest == false

bare_metal if {
	count(input.texts) > 0
	not facts.is_guest == true
	not input.links.virtual_topology == true
}

device := {d.address: d | some d in input.pci.devices; d.address != ""}

parent(address) := device[d.ancestors[last]] if {
	d := device[address]
	last := count([a | some a in d.ancestors]) - 1
	last >= 0
}

# redirecting_bits are the ACS controls that send a peer request or completion up to the root complex instead of
# straight to the peer. The kernel counts the same three (pci_bridge_has_acs_redir, drivers/pci/p2pdma.c).
redirecting_bits := {"ReqRedir", "CmpltRedir", "EgressCtrl"}

redirects(address) := {bit | some bit in device[address].acs.control} & redirecting_bits

# emulated is true for a bridge that exists in a hypervisor only: its bits and its link say nothing about the real path.
# Where it is not known whether this is a virtual machine, such bridges tell.
emulated(address) if device[address].vendor in rates.emulated_vendors

# exempt is true for a port that lets translated requests through to a peer although it redirects others (ACS Direct
# Translated P2P, PCIe base specification 6.12.3), when both ends of the path translate (ATS).
exempt(address, a, b) if {
	"DirectTrans" in device[address].acs.control
	device[a].ats.enabled == true
	device[b].ats.enabled == true
}

# redirecting are the ports of a path whose ACS bits redirect its traffic. The bridge at which the path turns is left
# out: traffic turns below it and never crosses its upper side.
redirecting(pair) := {address |
	some address in pair.bridges
	object.get(pair, "common_bridge", "") != address
	not emulated(address)
	count(redirects(address)) > 0
	not exempt(address, pair.a, pair.b)
}

domains := {address: types | some address, types in types_of}

types_of[address] contains g.type if {
	some g in input.iommu.groups
	some address in g.devices
	g.type != ""
}

# translated is true for a device whose addresses the IOMMU translates; mappings are invalidated at once, or lazily.
translated(address) if count(domains[address] & {"DMA", "DMA-FQ"}) > 0

# untranslated is true where it is known that the IOMMU leaves the addresses of a device alone.
untranslated(_) if input.iommu.mode in {"off", "passthrough"}
untranslated(address) if domains[address] == {"identity"}

untranslated(address) if {
	not domains[address]
	input.iommu.default_domain == "passthrough"
}

all_untranslated(addresses) if {
	every address in addresses {
		untranslated(address)
	}
}

# events are those of the kernel log, by kind; event_evidence shows some of them.
events[e.kind] contains e if some e in input.kernel_log.events

event_evidence(es) := [{
	"fact": sprintf("kernel_log.events[%s]", [e.kind]),
	"value": e.message,
	"source": logs.at(placed),
} |
	some e in sort(es)
	placed := object.union({"source": object.get(input.kernel_log, "source", "kernel log")}, e)
]

# place is the device that an event names, or the host.
place(e) := e.address if {
	e.address != ""
} else := "host"

refused contains e if {
	some kind in ["amd-vi-fault", "dmar-fault"]
	some e in events[kind]
}

# of_nic is true of an event at a NIC, by the PCI tree or by the driver that logged it.
of_nic(e) if device[e.address].kind == "nic"
of_nic(e) if e.fields.driver in {"mlx5_core", "mlx4_core", "bnxt_en", "ice", "irdma", "i40e", "efa", "ionic", "hfi1"}

# no_room are the events of memory that found no address space. amdgpu ends with ENOMEM (12) where it cannot map the BAR
# of its registers, the first that it tries (amdgpu_device.c, amdgpu_device_init).
no_room contains e if some e in events.bar

no_room contains e if {
	some e in events.amdgpu
	e.code == 12
}

# port_at says where the ACS bits of a port were read.
port_at(address) := facts.read_at(sprintf("pci.devices[%s].acs", [address]), sprintf("/sys/bus/pci/devices/%s/config", [address]))

# hidden are the bridges of a path whose ACS capability could not be read: a
# bridge that is not listed, or whose extended configuration space was not.
hidden(pair) := {address |
	some address in pair.bridges
	not shown(address)
}

shown(address) if device[address].extended == true
shown(address) if is_object(device[address].acs)

generation := {2.5: 1, 5: 2, 8: 3, 16: 4, 32: 5, 64: 6}
