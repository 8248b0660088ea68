# METADATA
# title: Redirecting ports in texts without a path
# description: >-
#   PCIe ports whose ACS bits redirect peer traffic, in texts that are cut off
#   and do not show which devices communicate through them.
package gpudoctor.lib.acs_ports

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci

# Texts are often cut, so that the tree is not known: "lspci -vvv | grep ACSCtl",
# or a switch's ports alone. What is redirected there may as well be a path that
# no text mentions.
#
# loose are the ports that are known to redirect and stand on no known path of a
# pair: those of switches, and root ports right above a GPU.
loose contains d.address if {
	input.pci.partial == true
	some d in input.pci.devices
	d.kind == "bridge"
	count(pci.redirects(d.address)) > 0
	not pci.emulated(d.address)
	not on_path(d.address)
	switch_port(d)
}

# setpci shows the register of a port, but not what port it is. If a job fails, it is a
# suspect, according to NVIDIA's guide.
loose contains d.address if {
	benchmarks.job_failed
	some d in input.pci.devices
	object.get(d, "class", "") == ""
	object.get(d, "kind", "") == ""
	count(pci.redirects(d.address)) > 0
	not on_path(d.address)
}

on_path(address) if {
	some p in facts.pairs
	address in p.bridges
}

# switch_vendors make PCIe switches and no root ports: PLX, Broadcom (LSI) and
# PMC-Sierra (Microsemi, Microchip), as the PCI ID database names them.
switch_vendors := {"0x10b5", "0x1000", "0x11f8"}

switch_port(d) if d.vendor in switch_vendors

switch_port(d) if d.port_type == "downstream-port"

switch_port(d) if {
	some g in input.pci.devices
	g.kind == "gpu"
	g.ancestors[count(g.ancestors) - 1] == d.address
}

# unnamed are the lines of ACS controls whose ports are not shown.
unnamed contains u if {
	some u in input.pci.unnamed_acs
	count({bit | some bit in u.control; bit in pci.redirecting_bits}) > 0
}

# bits are the redirecting bits of all of them.
bits := {bit | some address in loose; some bit in pci.redirects(address)} | {bit |
	some u in unnamed
	some bit in u.control
	bit in pci.redirecting_bits
}
