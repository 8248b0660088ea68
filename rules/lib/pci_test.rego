package gpudoctor.lib.pci_test

import data.gpudoctor.lib.pci

bridge(address, control) := {"address": address, "vendor": "0x10b5", "extended": true, "acs": {"control": control}}

tree := {"pci": {"devices": [
	{"address": "gpu0", "vendor": "0x10de", "ancestors": ["root", "down0"], "ats": {"enabled": true}},
	{"address": "gpu1", "vendor": "0x10de", "ancestors": ["root", "down1"], "ats": {"enabled": true}},
	bridge("down0", ["SrcValid", "ReqRedir", "CmpltRedir"]),
	bridge("down1", ["SrcValid", "TransBlk", "UpstreamFwd"]),
	bridge("translated", ["ReqRedir", "DirectTrans"]),
	object.union(bridge("made-up", ["ReqRedir"]), {"vendor": "0x1b36"}),
	{"address": "closed", "vendor": "0x10b5", "extended": false},
]}}

path(bridges) := {"a": "gpu0", "b": "gpu1", "bridges": bridges}

test_parent if {
	pci.parent("gpu0").address == "down0" with input as tree
	not pci.parent("down0") with input as tree
}

test_redirects if {
	pci.redirects("down0") == {"ReqRedir", "CmpltRedir"} with input as tree
	pci.redirects("down1") == set() with input as tree
	pci.redirects("closed") == set() with input as tree
}

test_redirecting if {
	pci.redirecting(path(["down0", "down1"])) == {"down0"} with input as tree
	pci.redirecting(path(["made-up"])) == set() with input as tree
	pci.redirecting(path(["translated"])) == set() with input as tree
	pci.redirecting(object.union(path(["down0"]), {"common_bridge": "down0"})) == set() with input as tree
}

test_hidden if {
	pci.hidden(path(["down0", "closed", "unlisted"])) == {"closed", "unlisted"} with input as tree
}

test_generation if {
	pci.generation[2.5] == 1
	pci.generation[64] == 6
}

test_texts_are_taken_for_bare_metal if {
	pci.bare_metal with input as {"host": {"virtualization": {"guest": false}}}
	pci.bare_metal with input as {"texts": [{"name": "x"}]}
	not pci.bare_metal with input as {"texts": [{"name": "x"}], "host": {"virtualization": {"guest": true}}}
	not pci.bare_metal with input as {"texts": [{"name": "x"}], "links": {"virtual_topology": true}}
	not pci.bare_metal with input as {}
}

test_default_domain if {
	pci.untranslated("0000:41:00.0") with input as {"iommu": {"default_domain": "passthrough"}}
	not pci.untranslated("0000:41:00.0") with input as {"iommu": {"default_domain": "translated"}}
	pci.translates_by_default with input as {"iommu": {"default_domain": "translated", "vendor": "amd"}}
	not pci.translates_by_default with input as {"iommu": {"default_domain": "translated"}}
}

test_places if {
	pci.event_at({"source": "dmesg.txt", "line": 3}) == "dmesg.txt:3"
	pci.event_at({"message": "x"}) == "/dev/kmsg" with input as {"kernel_log": {"source": "/dev/kmsg", "events": []}}
	pci.port_at("0000:40:01.1") == "a.txt:9" with input as {"origins": [{"fact": "pci.devices[0000:40:01.1].acs", "source": "a.txt", "line": 9}]}
	pci.port_at("0000:40:01.1") == "/sys/bus/pci/devices/0000:40:01.1/config" with input as {}
}
