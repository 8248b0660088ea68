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

test_redirecting if {
	pci.redirecting(path(["down0", "down1"])) == {"down0"} with input as tree
	pci.redirecting(path(["made-up"])) == set() with input as tree
	pci.redirecting(path(["translated"])) == set() with input as tree
	pci.redirecting(object.union(path(["down0"]), {"common_bridge": "down0"})) == set() with input as tree
}

test_texts_are_taken_for_bare_metal if {
	pci.bare_metal with input as {"texts": [{"name": "x"}]}
	not pci.bare_metal with input as {"texts": [{"name": "x"}], "host": {"virtualization": {"guest": true}}}
	not pci.bare_metal with input as {"texts": [{"name": "x"}], "links": {"virtual_topology": true}}
	not pci.bare_metal with input as {}
}

test_default_domain if {
	pci.untranslated("0000:41:00.0") with input as {"iommu": {"default_domain": "passthrough"}}
	not pci.untranslated("0000:41:00.0") with input as {"iommu": {"default_domain": "translated"}}
}
