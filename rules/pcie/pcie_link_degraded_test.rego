package gpudoctor.rules.pcie_link_degraded_test

import data.gpudoctor.rules.pcie_link_degraded

gpu := "0000:03:00.0"
other := "0000:04:00.0"
root := "0000:00:01.0"
upstream := "0000:01:00.0"
downstream := "0000:02:00.0"

# link gives the two ends of a link: now, and what both can do.
link(speed, width, max_speed, max_width) := {"speed_gts": speed, "width": width, "max_speed_gts": max_speed, "max_width": max_width, "source": "config"}
full := link(32, 16, 32, 16)
device(address, kind, up, l) := {"address": address, "vendor": "0x10de", "device": "0x2bb1", "port_type": kind, "ancestors": up, "link": l}
bare_metal := {"host": {"virtualization": {"guest": false}}}
guest := {"host": {"virtualization": {"guest": true}}}
cards(list) := {"gpus": {"devices": [object.union({"address": gpu, "vendor": "nvidia"}, more) | some more in list]}}
pcie(generation, width, max_generation) := {"pcie": {"generation": generation, "width": width, "max_generation": max_generation, "max_width": 16}}

# machine is a GPU below a switch.
machine(gpu_link, switch_link) := object.union_n([bare_metal, cards([object.union(pcie(1, 16, 5), {"performance_state": 8})]), {"pci": {"devices": [
	device(root, "root-port", [], full),
	device(upstream, "upstream-port", [root], switch_link),
	device(downstream, "downstream-port", [root, upstream], link(2.5, gpu_link.width, 32, 16)),
	device(gpu, "endpoint", [root, upstream, downstream], gpu_link),
]}}])

# busy is the machine whose GPU is in the fastest performance state, and has a slow link.
busy(speed, generation) := object.union(machine(link(speed, 16, 32, 16), full), cards([object.union(pcie(generation, 16, 5), {"performance_state": 0})]))

good_copies := {
	"links": {"pairs": [{"a": gpu, "b": other, "kind": "gpu-gpu", "nvlinks": 0}]},
	"transfers": {"outcome": "ok", "transfers": [{"test": "copy", "source": s, "destination": d, "outcome": "ok"} |
		some [s, d] in [[gpu, other], [other, gpu]]
	]},
}

# A Tesla T4 in a slot of 8 lanes.
t4 := {"pci": {"devices": [
	device(root, "root-port", [], link(8, 8, 8, 16)),
	object.union(device(gpu, "endpoint", [root], link(8, 8, 8, 16)), {"device": "0x1eb8"}),
]}}

# at_boot is what the kernel writes of a link at boot.
at_boot(driver, width) := {"kernel_log": {"source": "dmesg.txt", "events": [{
	"id": "kernel-pcie-link-limited", "kind": "pcie-link", "address": gpu, "message": "x", "seconds": 1, "count": 1, "source": "dmesg.txt", "line": 3,
	"fields": {"driver": driver, "width": width, "best_width": "16", "port": root},
}]}}

# shown is one function as lspci writes it.
shown(kind, class, width) := {
	"texts": [{"name": "lspci.txt"}],
	"pci": {"partial": true, "devices": [{
		"address": gpu, "kind": kind, "class": class, "vendor": "", "device": "", "link": link(8, width, 16, 16),
	}]},
}

test_findings if {
	every row in [
		[machine(full, link(8, 16, 32, 16)), {upstream: ["high", "likely"]}],
		[json.patch(machine(full, link(16, 16, 32, 16)), [{"op": "replace", "path": "/pci/devices/1/vendor", "value": "0x1002"}]), {}],
		[busy(16, 4), {gpu: ["medium", "likely"]}],
		[object.union(busy(8, 3), good_copies), {}],
		[object.union(machine(full, full), t4), {gpu: ["low", "likely"]}],
		# In a virtual machine, the other end is not known.
		[object.union(bare_metal, cards([object.union(pcie(3, 8, 3), {"virtualization_mode": "passthrough"})])), {}],
		[object.union(bare_metal, cards([pcie(3, 8, 3)])), {gpu: ["low", "possible"]}],
		# What the kernel wrote.
		[object.union(at_boot("pci", "4"), cards([{}])), {gpu: ["medium", "possible"]}],
		[object.union(at_boot("pci", "16"), cards([{}])), {}],
		[object.union_n([at_boot("pci", "4"), cards([{}]), guest]), {}],
		[at_boot("pci", "4"), {}],
		[at_boot("amdgpu", "2"), {gpu: ["medium", "possible"]}],
		[at_boot("mlx5_core", "4"), {gpu: ["medium", "possible"]}],
		[shown("gpu", "0x030200", 2), {gpu: ["medium", "possible"]}],
		[shown("gpu", "0x030200", 16), {}],
		[shown("nic", "0x020700", 2), {}],
	] {
		found := pcie_link_degraded.findings with input as row[0]
		{f.subject: [object.get(f, "severity", "medium"), object.get(f, "confidence", "likely")] | some f in found} == row[1]
	}
}

# copies is a table of two values between host memory and GPUs in slots of 63 GB/s.
copies(rates) := {"benchmarks": [{
	"tool": "nvbandwidth", "test": "host_to_device_memcpy_ce", "what": "host-to-gpu", "source": "nvb.txt", "line": 3, "complete": true,
	"points": [{"a": "CPU", "b": sprintf("GPU%d", [i]), "gbps": gbps, "expected_gbps": 63, "threshold": 0.5, "basis": "the GPU's PCIe link", "line": 6} |
		some i, gbps in rates
	],
}]}

# Values that are all low may be those of narrow uplinks.
test_copies if {
	{"low"} == {f.severity | some f in pcie_link_degraded.findings} with input as copies([14.2, 14.1])
	{"medium"} == {f.severity | some f in pcie_link_degraded.findings} with input as copies([54.2, 14.1])
}

test_unresolvable if {
	count(pcie_link_degraded.findings) == 0 with input as {}
	count(pcie_link_degraded.missing) == 1 with input as object.union(bare_metal, cards([{}]))
}
