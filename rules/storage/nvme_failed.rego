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
#   needs: ["storage.drives[].state"]
#   remedies: [replace-drive]
#   profiles: [training]
#   since: "0.2"
#   grades:
#     dead: "The kernel gave up on the NVMe drive {name}[ at {address}][ ({model})]: it did not come back after a reset"
package gpudoctor.rules.nvme_failed

findings contains {
	"id": "dead",
	"subject": d.name,
	"about": d,
	"evidence": [{"fact": sprintf("storage.drives[%s].state", [d.name]), "value": d.state, "source": sprintf("/sys/class/nvme/%s/state", [d.name])}],
	"params": {"drive": d.name},
} if {
	some d in input.storage.drives
	d.state == "dead"
	d.name != ""
}

missing contains {"fact": "storage.drives", "words": sprintf("the state of the NVMe drive %s is not known", [d.name])} if {
	some d in input.storage.drives
	object.get(d, "state", "") == ""
}

not_applicable contains "no NVMe drive" if count(input.storage.drives) == 0
