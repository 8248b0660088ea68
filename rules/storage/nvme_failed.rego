# METADATA
# title: An NVMe drive failed
# description: >-
#   The kernel gave up on an NVMe drive, or the drive no longer answers on the PCIe bus. Its file systems fail or are
#   gone, and an array that it belongs to is degraded.
# related_resources:
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/nvme/host/core.c
#     description: The states of a controller (nvme_change_ctrl_state); dead is final
# custom:
#   severity: medium
#   confidence: confirmed
#   cause: other
#   needs: ["storage.drives[].state", pci.devices]
#   remedies: [replace-drive]
#   profiles: [training]
#   since: "0.2"
#   grades:
#     dead: >-
#       The kernel gave up on the NVMe drive {name}[ at {address}][ ({model})]: it did not come back after a reset
#     off-bus:
#       confidence: likely
#       text: "The NVMe drive at {subject} no longer answers on the PCIe bus: its configuration space reads as ones"
package gpudoctor.rules.nvme_failed

# dead are the drives that the kernel gave up. A controller of fabrics is gone from the list by then.
dead contains d if {
	some d in input.storage.drives
	d.name != ""
	d.state == "dead"
}

findings contains {
	"id": "dead",
	"subject": d.name,
	"about": d,
	"evidence": [{"fact": sprintf("storage.drives[%s].state", [d.name]), "value": d.state, "source": sprintf("/sys/class/nvme/%s/state", [d.name])}],
	"params": {"drive": d.name},
} if some d in dead

# That a drive is gone from the list of the kernel does not show it: another driver may use it.
findings contains {
	"id": "off-bus",
	"subject": p.address,
	"evidence": [{"fact": sprintf("pci.devices[%s].off_bus", [p.address]), "value": true, "source": sprintf("/sys/bus/pci/devices/%s/config", [p.address])}],
	"params": {"drive": p.address},
} if {
	some p in input.pci.devices
	p.kind == "nvme"
	p.off_bus == true
	count([d | some d in dead; d.address == p.address]) == 0
}

missing contains {"fact": "storage.drives", "words": sprintf("the state of the NVMe drive %s is not known", [d.name])} if {
	some d in input.storage.drives
	object.get(d, "state", "") == ""
}

not_applicable contains "no NVMe drive" if count(input.storage.drives) == 0
