# METADATA
# title: The PCIe link of an NVMe drive runs below what both ends support
# description: >-
#   The link of an NVMe drive has fewer lanes, or a lower speed, than the drive and the port above it support. Unlike a
#   GPU, a drive does not lower them at rest. The usual cause is a drive or cable that is not fully seated, a backplane,
#   a retimer or a BIOS setting.
# related_resources:
#   - ref: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
#     description: current_link_speed, current_link_width and their maxima
# custom:
#   severity: low
#   confidence: likely
#   cause: pcie-link-degraded
#   needs: ["pci.devices[].link", "pci.devices[].ancestors", host.virtualization]
#   remedies: [reseat-or-fix-pcie-link, update-bios]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.nvme_link_degraded

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.pcie_links

# drives are the addresses of the NVMe drives of this machine.
drives contains d.address if {
	some d in input.pci.devices
	d.kind == "nvme"
	facts.is_address(d.address)
	not d.virtual == true
	not d.off_bus == true
}

narrow[address] := {"now": width, "best": pcie_links.best(address).width} if {
	some address in drives
	pcie_links.physical(address)
	width := pci.device[address].link.width
	width > 0
	width < pcie_links.best(address).width
}

slow[address] := {"now": speed, "best": pcie_links.best(address).speed} if {
	some address in drives
	pcie_links.physical(address)
	speed := pci.device[address].link.speed_gts
	speed > 0
	speed < pcie_links.best(address).speed
}

subject(set_) := min(set_) if {
	count(set_) == 1
} else := "NVMe drives"

shown(address, field, value) := {
	"fact": sprintf("pci.devices[%s].link.%s", [address, field]),
	"value": value,
	"source": sprintf("/sys/bus/pci/devices/%s/config", [address]),
}

findings contains {
	"id": "width",
	"subject": subject({address | some address, _ in narrow}),
	"message": sprintf("Fewer lanes than both ends support: %s", [facts.list({sprintf("NVMe drive %s has %d of %d", [address, n.now, n.best]) | some address, n in narrow})]),
	"evidence": [shown(address, "width", n.now) | some address, n in narrow],
	"params": {"device": min({address | some address, _ in narrow})},
} if count(narrow) > 0

findings contains {
	"id": "speed",
	"subject": subject({address | some address, _ in slow}),
	"message": sprintf("A lower speed than both ends support: %s", [facts.list({sprintf("NVMe drive %s runs at %v of %v GT/s", [address, n.now, n.best]) | some address, n in slow})]),
	"evidence": [shown(address, "speed_gts", n.now) | some address, n in slow],
	"params": {"device": min({address | some address, _ in slow})},
} if count(slow) > 0

missing contains {"fact": "pci.devices[].link", "words": sprintf("the links of %s are not known", [facts.counted(count(hidden), "NVMe drive")])} if {
	not facts.is_guest == true
	count(hidden) > 0
}

hidden := {address |
	some address in drives
	not link_known(address)
}

link_known(address) if {
	pcie_links.best(address)
	pci.device[address].link.width > 0
	pci.device[address].link.speed_gts > 0
}

# A drive right below a host bridge has no port above it that could be compared.
link_known(address) if {
	is_array(pci.device[address].ancestors)
	count(pci.device[address].ancestors) == 0
}

not_applicable contains "no NVMe drive" if {
	is_array(input.pci.devices)
	not input.pci.partial == true
	count(drives) == 0
}

not_applicable contains "in a virtual machine, the real links are not visible" if facts.is_guest == true
