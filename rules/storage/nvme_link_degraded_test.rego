package gpudoctor.rules.nvme_link_degraded_test

import data.gpudoctor.rules.nvme_link_degraded

drive := "0000:1a:00.0"
port := "0000:17:02.0"

link(width, speed, best) := {"width": width, "speed_gts": speed, "max_width": 4, "max_speed_gts": best, "source": "config"}

machine(at_drive, at_port, guest) := {
	"host": {"virtualization": {"guest": guest, "kind": "none", "source": "x"}},
	"pci": {"devices": [
		{"address": drive, "kind": "nvme", "vendor": "0x144d", "ancestors": [port], "link": at_drive},
		{"address": port, "kind": "bridge", "vendor": "0x1000", "ancestors": [], "link": at_port},
	]},
}

ids(m) := found if found := {f.id | some f in nvme_link_degraded.findings} with input as m

test_unresolvable if {
	ids({}) == set()
	m := machine({}, link(4, 32, 32), false)
	count(nvme_link_degraded.missing) == 1 with input as m
	count(nvme_link_degraded.missing) == 0 with input as machine({}, {}, true)
	direct := {"host": {"virtualization": {"guest": false}}, "pci": {"devices": [{"address": drive, "kind": "nvme", "ancestors": []}]}}
	count(nvme_link_degraded.missing) == 0 with input as direct
}

test_not_applicable if {
	nvme_link_degraded.not_applicable == set() with input as {"pci": {"devices": [], "partial": true}}
}
