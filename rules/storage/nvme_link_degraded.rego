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
#   grades:
#     width: "The link of an NVMe drive has fewer lanes than both ends support: {links}"
#     speed: "The link of an NVMe drive has a lower speed than both ends support, in GT/s: {links}"
package gpudoctor.rules.nvme_link_degraded

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.pcie_links

drives contains d.address if {
	some d in input.pci.devices
	d.kind == "nvme"
	facts.is_address(d.address)
	not d.virtual == true
	not d.off_bus == true
}

# below are the drives whose link has less than both ends support, by what it has less of, with the field that shows it.
below[what][address] := {"field": field, "now": now, "best": best} if {
	some address in drives
	pcie_links.physical(address)
	some what, field in {"width": "width", "speed": "speed_gts"}
	now := pci.device[address].link[field]
	best := pcie_links.best(address)[what]
	now > 0
	now < best
}

findings contains {
	"id": what,
	"subject": {true: min(object.keys(links)), false: "NVMe drives"}[count(links) == 1],
	"about": {"links": {sprintf("%s has %v of %v", [address, l.now, l.best]) | some address, l in links}},
	"evidence": [{"fact": sprintf("pci.devices[%s].link.%s", [address, l.field]), "value": l.now, "source": sprintf("/sys/bus/pci/devices/%s/config", [address])} |
		some address, l in links
	],
	"params": {"device": min(object.keys(links))},
} if some what, links in below

missing contains {"fact": "pci.devices[].link", "words": "the links of some NVMe drives are not known"} if {
	not facts.is_guest == true
	some address in drives
	not link_known(address)
}

link_known(address) if {
	pcie_links.best(address)
	pci.device[address].link.width > 0
	pci.device[address].link.speed_gts > 0
}

# A drive right below a host bridge has no port above it that could be compared.
link_known(address) if count(pci.device[address].ancestors) == 0

not_applicable contains "no NVMe drive" if {
	is_array(input.pci.devices)
	not input.pci.partial == true
	count(drives) == 0
}

not_applicable contains "in a virtual machine, the real links are not visible" if facts.is_guest == true
