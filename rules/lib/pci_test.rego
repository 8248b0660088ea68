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
