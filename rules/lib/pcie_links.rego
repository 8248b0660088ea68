# The PCIe links above GPUs and NICs: what both ends of each support, whether the reported link is real, and what was
# measured on it.
package gpudoctor.lib.pcie_links

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers

endpoints := facts.gpus | {p.b | some p in facts.pairs; p.kind == "gpu-nic"}

# lower are the functions at the lower end of a link on the way of an endpoint: the endpoint itself and each switch above.
lower := endpoints | {bridge | some bridge, _ in above; pci.device[bridge].port_type == "upstream-port"}

# below are the endpoints whose way goes over the link above a function.
below(address) := object.get(above, address, set())

above[address] contains e if {
	some e in endpoints
	some address in array.concat([e], [x | some x in pci.device[e].ancestors])
}

# physical is false if a hypervisor emulates the link: it then shows a configuration, not the wiring.
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

# slow_transfers are the slow transfers of the endpoints behind a link. What is slow
# between GPUs that NVLink joins did not go over PCIe.
slow_transfers(address) := {t | some gpu in below(address); some t in slow_of[gpu]}

slow_of := {gpu: ts | some gpu, ts in slow_by_gpu}

slow_by_gpu[gpu] contains t if {
	some k, ts in peers.sluggish
	not k in peers.bridged
	some t in ts
	t.test != "all-at-once"
	some gpu in [t.source, t.destination]
}
