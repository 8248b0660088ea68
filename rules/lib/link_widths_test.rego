package gpudoctor.lib.link_widths_test

import data.gpudoctor.lib.link_widths

gpu := "0000:03:00.0"

root := "0000:00:01.0"

# tree is a card below a root port, each with 16 lanes at most.
tree(device, width) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [{"address": gpu, "vendor": "nvidia", "pcie": {"width": width, "max_width": 16}}]},
	"pci": {"devices": [
		{"address": root, "vendor": "0x8086", "port_type": "root-port", "ancestors": [], "link": {"max_speed_gts": 16, "max_width": 16}},
		{"address": gpu, "vendor": "0x10de", "device": device, "ancestors": [root], "link": {"width": width, "max_speed_gts": 16, "max_width": 16}},
	]},
}

test_both_ends if {
	link_widths.narrow == {gpu: {"width": 8, "best": 16, "source": "config space of both ends"}} with input as tree("0x2684", 8)
	link_widths.narrow == {} with input as tree("0x2684", 16)
	link_widths.shown_wide(gpu) with input as tree("0x2684", 16)
	not link_widths.shown_wide(gpu) with input as tree("0x2684", 8)
}

test_models_that_are_wired_so if {
	link_widths.accepted(gpu, 8) with input as tree("0x1eb8", 8)
	not link_widths.accepted(gpu, 4) with input as tree("0x1eb8", 4)
	not link_widths.accepted(gpu, 8) with input as tree("0x2684", 8)
}

test_nvml_alone if {
	alone := object.remove(tree("", 8), ["pci"])
	link_widths.narrow[gpu].source == "NVML" with input as alone
	not link_widths.narrow[gpu] with input as object.union(alone, {"host": {"virtualization": {"guest": true}}})
}

# shown is one function as lspci writes it.
shown(kind, class, width) := {
	"texts": [{"name": "lspci.txt"}],
	"pci": {"devices": [{"address": gpu, "kind": kind, "class": class, "vendor": "", "device": "", "link": {"width": width, "max_width": 16}}]},
}

test_lspci_alone if {
	link_widths.narrow[gpu] == {"width": 2, "best": 16, "source": "lspci"} with input as shown("gpu", "0x030200", 2)
	link_widths.narrow[gpu].width == 2 with input as shown("", "", 2)
	not link_widths.narrow[gpu] with input as shown("nic", "0x020700", 2)
	not link_widths.narrow[gpu] with input as shown("gpu", "0x030200", 16)
}

# boot is what the kernel writes of the way of a device.
boot(lanes, speed, extra) := object.union(
	{"kernel_log": {"source": "dmesg.txt", "events": [{
		"id": "kernel-pcie-link-limited", "kind": "pcie-link", "address": gpu,
		"fields": {"driver": "pci", "width": sprintf("%d", [lanes]), "best_width": "16", "port": root},
		"message": sprintf("pci %s: 31.5 Gb/s available PCIe bandwidth, limited by %v GT/s PCIe x%d link at %s (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)", [gpu, speed, lanes, root]),
	}]}},
	extra,
)

known := {"gpus": {"devices": [{"address": gpu, "vendor": "nvidia"}]}}

test_what_the_kernel_wrote if {
	told := link_widths.told_narrow[gpu] with input as boot(4, 8, known)
	[told.lanes, told.best, told.at] == [4, 16, root]
	not link_widths.told_narrow[gpu] with input as boot(16, 2.5, known)
	not link_widths.told_narrow[gpu] with input as boot(4, 8, {})
	not link_widths.told_narrow[gpu] with input as boot(4, 8, object.union(known, {"host": {"virtualization": {"guest": true}}}))
}
