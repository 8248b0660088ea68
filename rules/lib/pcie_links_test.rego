package gpudoctor.lib.pcie_links_test

import data.gpudoctor.lib.pcie_links

gpu := "0000:03:00.0"
nic := "0000:04:00.0"
root := "0000:00:01.0"
upstream := "0000:01:00.0"
downstream := "0000:02:00.0"

device(address, port, up, speed, width) := {
	"address": address, "kind": "", "vendor": "0x10b5", "port_type": port, "ancestors": up,
	"link": {"max_speed_gts": speed, "max_width": width},
}

# machine is a GPU and a NIC behind one switch.
machine := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [{"address": gpu, "vendor": "nvidia"}]},
	"links": {"pairs": [{"a": gpu, "b": nic, "kind": "gpu-nic"}]},
	"pci": {"devices": [
		device(root, "root-port", [], 32, 16),
		device(upstream, "upstream-port", [root], 16, 8),
		device(downstream, "downstream-port", [root, upstream], 16, 16),
		device(gpu, "endpoint", [root, upstream, downstream], 32, 16),
		object.union(device(nic, "endpoint", [root, upstream, downstream], 16, 4), {"kind": "nic"}),
	]},
}

measured(test, nvlinks) := object.union(machine, {
	"links": {"pairs": [{"a": gpu, "b": "0000:05:00.0", "kind": "gpu-gpu", "nvlinks": nvlinks}]},
	"transfers": {"outcome": "ok", "transfers": [{"test": test, "source": gpu, "destination": "0000:05:00.0", "outcome": "slow"}]},
})

test_slow_transfers if {
	count(pcie_links.slow_transfers(gpu)) > 0 with input as measured("copy", 0)
	count(pcie_links.slow_transfers(gpu)) == 0 with input as measured("copy", 4)
	count(pcie_links.slow_transfers(gpu)) == 0 with input as measured("all-at-once", 0)
}
