# METADATA
# title: BARs that did not fit into the address space
# description: >-
#   GPU BARs for which the kernel found no address space, in the PCI tree and in
#   the kernel log. Each sign has the GPUs, words and evidence.
package gpudoctor.lib.bar_room

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci

# A memory BAR for which the kernel found no room: the driver cannot reach the
# GPU at all, or not its memory.
roomless[d.address] contains bar.index if {
	some address in facts.gpus
	d := pci.device[address]
	some bar in d.bars
	bar.unassigned == true
	not bar.io == true
}

signs contains {
	"gpus": {address},
	"message": sprintf("The kernel found no address space for BAR %s of GPU %s: the firmware reserves too little (Above 4G Decoding).", [
		concat(", ", [sprintf("%d", [i]) | some i in sort(indices)]), address,
	]),
	"evidence": [{
		"fact": sprintf("pci.devices[%s].bars[%d].unassigned", [address, i]),
		"value": true,
		"source": sprintf("/sys/bus/pci/devices/%s/resource", [address]),
	} |
		some i in sort(indices)
	],
	"confidence": "confirmed",
} if {
	some address, indices in roomless
}

# What the kernel log says. kept_out are the BARs of GPUs for which there is no
# room: that of the function which the address, or the driver's name at the
# beginning of the line, says is a GPU. A driver that fails to enlarge a BAR goes
# on with the small one, so a later size says nothing against it.
kept_out[e.address] contains e if {
	some e in pci.events.bar
	gpu_event(e)
	not roomless[e.address]
}

gpu_event(e) if e.address in facts.gpus

gpu_event(e) if e.fields.driver in {"nvidia", "amdgpu"}

gpu_event(e) if e.id == "nvrm-bar-invalid"

# The driver of AMD GPUs speaks of the same function.
gpu_event(e) if {
	some other in pci.events.amdgpu
	other.address == e.address
	e.address != ""
}

# Nothing but a GPU asks for a BAR of 1 GiB and more on these machines.
gpu_event(e) if {
	not facts.gpus
	e.size_bytes >= (1024 * 1024) * 1024
}

signs contains {
	"gpus": {address},
	"message": sprintf("The kernel found no address space for %s of GPU %s: the firmware reserves too little (Above 4G Decoding, Resizable BAR).", [
		asked_for(es), address,
	]),
	"evidence": pci.event_evidence(es),
	"confidence": "confirmed",
} if {
	some address, es in kept_out
	address != ""
}

asked_for(es) := sprintf("%s of BAR %d", [facts.bytes(max(sizes)), max(bars)]) if {
	sizes := {e.size_bytes | some e in es; e.size_bytes > 0}
	bars := {e.bar | some e in es; is_number(e.bar)}
	count(sizes) > 0
	count(bars) > 0
} else := "a BAR"

# unsized are lines of AMD's driver that say for themselves that the BAR over the
# memory keeps the size which the firmware gave it (amdgpu_device.c,
# amdgpu_device_resize_fb_bar). Many of them name no GPU.
unsized contains e if {
	some e in pci.events.bar
	e.id in {"amdgpu-bar-resize-failed", "amdgpu-bar-no-address-space"}
	not kept_out[object.get(e, "address", "")]
}

signs contains {
	"gpus": {e.address | some e in unsized; e.address != ""},
	"subject": "host",
	"message": "AMD's driver could not enlarge the BAR over a GPU's memory: the firmware reserves too little address space (Above 4G Decoding, Resizable BAR). Without a BAR over all memory there is no peer access, and a GPU whose BARs lost their address in the attempt does not start",
	"evidence": pci.event_evidence(unsized),
	"confidence": "confirmed",
} if {
	count(unsized) > 0
}

# unmappable are AMD GPUs that did not start because memory could not be mapped (ENOMEM,
# 12). At that point the driver has only tried to map the BAR of its registers
# (amdgpu_device.c, amdgpu_device_init), for which the firmware or the kernel found no
# place.
unmappable contains e if {
	some e in pci.events.amdgpu
	e.code == 12
	not kept_out[e.address]
}

signs contains {
	"gpus": {e.address},
	"message": sprintf("The driver of GPU %s did not start because it could not map memory (error -12): the BAR of its registers has no address. Check Above 4G Decoding, SR-IOV support and the size of the MMIO space in the BIOS.", [e.address]),
	"evidence": pci.event_evidence({e}),
} if {
	some e in unmappable
}

# A window of a bridge that found no room, although nothing but the memory of a
# GPU needs one as large. Where it is not known which bridges are above a GPU, it may
# be below this one.
cramped[e.address] contains e if {
	some e in pci.events["bridge-window"]
	count(below(e.address) | unplaced) > 0
	not fits(e.address)
}

below(bridge) := {address |
	some address in facts.gpus
	bridge in pci.device[address].ancestors
}

unplaced := {address | some address in facts.gpus; not placed(address)}

placed(address) if pci.device[address].root_bus != ""

# fits is true for a bridge whose GPUs still have enough room.
fits(bridge) if {
	count(below(bridge)) > 0
	every address in below(bridge) {
		facts.gpu[address].bar1_bytes >= facts.gpu[address].memory_bytes / 2
		facts.gpu[address].memory_bytes > 0
	}
}

signs contains {
	"gpus": gpus,
	"subject": bridge,
	"message": sprintf("The kernel found no address space for a window of %s below bridge %s, %s: the BAR of a GPU there cannot cover its memory.", [
		facts.bytes(max({e.size_bytes | some e in es})), bridge, below_words(gpus),
	]),
	"evidence": pci.event_evidence(es),
	"confidence": {true: "confirmed", false: "likely"}[count(gpus) > 0],
	"remedies": ["update-bios", "enable-rebar"],
} if {
	some bridge, es in cramped
	gpus := below(bridge)
	count(gpus & object.keys(kept_out)) == 0
}

below_words(gpus) := sprintf("above GPU %s", [facts.list(gpus)]) if {
	count(gpus) > 0
} else := "and only GPUs request this much"
