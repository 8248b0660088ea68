package gpudoctor.rules.pcie_link_degraded_test

import data.gpudoctor.rules.pcie_link_degraded

gpu := "0000:03:00.0"
other := "0000:04:00.0"

# link gives the two ends of a link: now, and what both can do.
link(speed, width, max_speed, max_width) := {"speed_gts": speed, "width": width, "max_speed_gts": max_speed, "max_width": max_width, "source": "config"}
device(address, kind, up, l) := {"address": address, "vendor": "0x10de", "device": "0x2bb1", "port_type": kind, "ancestors": up, "link": l}

root := "0000:00:01.0"
upstream := "0000:01:00.0"
downstream := "0000:02:00.0"

machine(gpu_link, port_max_width, switch_link) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [{"address": gpu, "vendor": "nvidia", "performance_state": 8, "pcie": {"generation": 1, "width": 16, "max_generation": 5, "max_width": 16}}]},
	"pci": {"devices": [
		device(root, "root-port", [], link(32, 16, 32, 16)),
		device(upstream, "upstream-port", [root], switch_link),
		device(downstream, "downstream-port", [root, upstream], link(2.5, gpu_link.width, 32, port_max_width)),
		device(gpu, "endpoint", [root, upstream, downstream], gpu_link),
	]},
}

full := link(32, 16, 32, 16)

found_by_subject(found) := {f.subject: [f.severity, f.confidence] | some f in found}

test_fires_above_a_switch if {
	slow := pcie_link_degraded.findings with input as machine(full, 16, link(8, 16, 32, 16))
	found_by_subject(slow) == {upstream: ["high", "likely"]}
}

fast(state, generation) := {"gpus": {"devices": [{
	"address": gpu, "vendor": "nvidia", "performance_state": state,
	"pcie": {"generation": generation, "width": 16, "max_generation": 5, "max_width": 16},
}]}}

test_fires_on_speed_under_load if {
	loaded := object.union(machine(link(16, 16, 32, 16), 16, full), fast(0, 4))
	found_by_subject(pcie_link_degraded.findings) == {gpu: ["medium", "likely"]} with input as loaded
}

test_low_for_models_often_wired_so if {
	t4 := {"pci": {"devices": [
		device(root, "root-port", [], link(8, 8, 8, 16)),
		object.union(device(gpu, "endpoint", [root], link(8, 8, 8, 16)), {"device": "0x1eb8"}),
	]}}
	found_by_subject(pcie_link_degraded.findings) == {gpu: ["low", "likely"]} with input as object.union(machine(full, 16, full), t4)
}

by_nvml(guest, mode) := {
	"host": {"virtualization": {"guest": guest}},
	"gpus": {"devices": [{"address": gpu, "vendor": "nvidia", "virtualization_mode": mode, "pcie": {"generation": 3, "width": 8, "max_generation": 3, "max_width": 16}}]},
}

test_a_cloud_t4_in_eight_lanes_is_unresolvable if {
	count(pcie_link_degraded.findings) == 0 with input as by_nvml(false, "passthrough")
}

test_unresolvable if {
	count(pcie_link_degraded.findings) == 0 with input as {}
	blind := {"host": {"virtualization": {"guest": false}}, "gpus": {"devices": [{"address": gpu, "vendor": "nvidia"}]}}
	count(pcie_link_degraded.missing) == 1 with input as blind
}

# What the kernel writes of a link at boot.

at_boot(address, driver, width, best_width) := {
	"kernel_log": {"source": "dmesg.txt", "events": [{
		"id": "kernel-pcie-link-limited", "kind": "pcie-link", "address": address, "message": "x", "seconds": 1, "count": 1, "source": "dmesg.txt", "line": 3,
		"fields": {"driver": driver, "width": width, "best_width": best_width, "port": "0000:3a:00.0"},
	}]},
	"gpus": {"devices": [{"address": "0000:3b:00.0", "vendor": "nvidia"}]},
}

test_fires_on_few_lanes_in_the_kernel_log if {
	some f in pcie_link_degraded.findings with input as at_boot("0000:3b:00.0", "pci", "4", "16")
	[f.subject, f.severity, f.confidence] == ["0000:3b:00.0", "medium", "likely"]
	driver := object.remove(at_boot("0000:03:00.0", "amdgpu", "2", "16"), ["gpus"])
	count(pcie_link_degraded.findings) == 1 with input as driver
}

# texts are what people send: no word of a hypervisor.
texts := {"texts": [{"name": "a"}]}

test_one_function_of_lspci if {
	narrow_card := object.union(texts, {"pci": {"partial": true, "devices": [{"address": gpu, "class": "", "kind": "", "vendor": "", "device": "", "link": link(8, 2, 16, 16)}]}})
	some f in pcie_link_degraded.findings with input as narrow_card
	[f.subject, f.severity] == [gpu, "medium"]
}

# copies is a table of nvbandwidth between host memory and GPUs in slots of 63 GB/s.
copies(rates) := {"benchmarks": [{
	"tool": "nvbandwidth", "test": "host_to_device_memcpy_ce", "what": "host-to-gpu", "source": "nvb.txt", "line": 3, "complete": true,
	"points": [{"a": "CPU", "b": sprintf("GPU%d", [i]), "gbps": gbps, "expected_gbps": 63, "threshold": 0.5, "basis": "the GPU's PCIe link", "line": 6} | some i, gbps in rates],
}]}

test_fires_slow_host_copies if {
	some g in pcie_link_degraded.findings with input as copies([12, 12])
	not "bind-numa" in g.remedies
}

network(layer, gbps) := {
	"benchmarks": [{
		"tool": "perftest", "test": "RDMA_Write BW", "what": "network", "memory": "host", "source": "bw.txt", "line": 4, "complete": true,
		"points": [{"a": "mlx5_0", "bytes": 65536, "gbps": gbps, "expected_gbps": 50, "threshold": 0.8, "basis": "the port of mlx5_0", "line": 9}],
	}],
	"nics": {"rdma": [{"device": "mlx5_0", "port": 1, "state": "active", "link_layer": layer, "rate_gbps": 400, "source": "i.txt", "line": 2}]},
}

test_fires_slow_infiniband if {
	some f in pcie_link_degraded.findings with input as network("InfiniBand", 13)
	f.subject == "mlx5_0"
	count(pcie_link_degraded.findings) == 0 with input as network("Ethernet", 13)
}

lag(rate) := {"logs": {"messages": [{
	"id": "nccl-diag-net-slow", "program": "nccl", "role": "cause", "text": "x", "source": "app.log", "line": 9, "order": 4,
	"fields": {"rank": "3", "slow_host": "node0", "rate": rate, "median": "391.5", "mode": "same-nic"},
}]}}

test_fires_lagging_nic if {
	some f in pcie_link_degraded.findings with input as lag("165.1")
	contains(f.message, "165.1 of 391.5 Gb/s")
}

test_silent_leading_nic if count(pcie_link_degraded.findings) == 0 with input as lag("565.1")

# asked are two GPUs of which nvidia-smi tells the links, by utilization.
asked(used, generation) := {
	"texts": [{"name": "smi.txt"}],
	"gpus": {"devices": [
		{"address": gpu, "vendor": "nvidia", "utilization_percent": used, "pcie": {"generation": generation, "width": 16, "max_generation": 5, "max_width": 16}},
		{"address": other, "vendor": "nvidia", "utilization_percent": 100, "pcie": {"generation": 5, "width": 16, "max_generation": 5, "max_width": 16}},
	]},
}

test_fires_on_a_low_generation_under_load if {
	some f in pcie_link_degraded.findings with input as asked(100, 2)
	[f.subject, f.severity, f.confidence] == [gpu, "high", "likely"]
	contains(f.message, other)
	some near in pcie_link_degraded.findings with input as asked(90, 4)
	near.severity == "medium"
	alone := json.patch(asked(100, 2), [{"op": "remove", "path": "/gpus/devices/1"}])
	some g in pcie_link_degraded.findings with input as alone
	g.severity == "medium"
}

test_an_idle_link_rests if {
	count(pcie_link_degraded.findings) == 0 with input as asked(3, 1)
	count(pcie_link_degraded.findings) == 0 with input as object.union(asked(100, 2), {"host": {"virtualization": {"guest": true}}})
}

table(test, points) := {"benchmarks": [{"tool": "bandwidthTest", "test": test, "what": "host-to-gpu", "source": "b.txt", "line": 1, "complete": true, "points": points}]}
host_copies_link(gpu, gbps) := {"a": "CPU", "b": gpu, "gbps": gbps, "expected_gbps": 63, "threshold": 0.5, "basis": "the GPU's PCIe link", "line": 6}

# Values that agree may be those of narrow uplinks, unless the ways to the processors are known.
test_alike if {
	narrow := table("host_to_device_memcpy_ce", [host_copies_link("GPU0", 14.2), host_copies_link("GPU1", 14.1)])
	some f in pcie_link_degraded.slow_copies with input as narrow
	f.severity == "low"
	contains(f.message, "narrower uplinks")
	some g in pcie_link_degraded.slow_copies with input as object.union(narrow, {"links": {"pairs": [], "hosts": [{"gpu": "0000:18:00.0", "at": "0000:18:00.0", "speed_gts": 32, "width": 16, "gbps": 63}]}})
	g.severity == "medium"
}

link_speeds_gpu := "0000:03:00.0"
link_speeds_other := "0000:04:00.0"
link_speeds_root := "0000:00:01.0"
link_speeds_upstream := "0000:01:00.0"

link_speeds_device(address, vendor, port, up, speed) := {
	"address": address, "vendor": vendor, "port_type": port, "ancestors": up,
	"link": {"speed_gts": speed, "width": 16, "max_speed_gts": 32, "max_width": 16},
}

# machine is a GPU in a performance state below a switch.
link_speeds_machine(state, speed, switch_speed) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [{"address": link_speeds_gpu, "vendor": "nvidia", "performance_state": state, "pcie": {"generation": 3, "width": 16, "max_generation": 5, "max_width": 16}}]},
	"pci": {"devices": [
		link_speeds_device(link_speeds_root, "0x8086", "root-port", [], 32),
		link_speeds_device(link_speeds_upstream, "0x10b5", "upstream-port", [link_speeds_root], switch_speed),
		link_speeds_device(link_speeds_gpu, "0x10de", "endpoint", [link_speeds_root, link_speeds_upstream], speed),
	]},
}

test_copies_at_full_speed_refute_it if {
	good := {
		"links": {"pairs": [{"a": link_speeds_gpu, "b": link_speeds_other, "kind": "gpu-gpu", "nvlinks": 0}]},
		"transfers": {"outcome": "ok", "transfers": [{"test": "copy", "source": s, "destination": d, "outcome": "ok"} | some [s, d] in [[link_speeds_gpu, link_speeds_other], [link_speeds_other, link_speeds_gpu]]]},
	}
	pcie_link_degraded.slow_links == {} with input as object.union(link_speeds_machine(0, 8, 32), good)
}

test_the_link_above_a_switch if {
	amd := json.patch(link_speeds_machine(8, 32, 16), [{"op": "replace", "path": "/pci/devices/1/vendor", "value": "0x1002"}])
	pcie_link_degraded.slow_links == {} with input as amd
}

link_widths_gpu := "0000:03:00.0"
link_widths_root := "0000:00:01.0"

# tree is a card below a root port, each with 16 lanes at most.
tree(device, width) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [{"address": link_widths_gpu, "vendor": "nvidia", "pcie": {"width": width, "max_width": 16}}]},
	"pci": {"devices": [
		{"address": link_widths_root, "vendor": "0x8086", "port_type": "root-port", "ancestors": [], "link": {"max_speed_gts": 16, "max_width": 16}},
		{"address": link_widths_gpu, "vendor": "0x10de", "device": device, "ancestors": [link_widths_root], "link": {"width": width, "max_speed_gts": 16, "max_width": 16}},
	]},
}

test_both_ends if {
	pcie_link_degraded.shown_wide(link_widths_gpu) with input as tree("0x2684", 16)
	not pcie_link_degraded.shown_wide(link_widths_gpu) with input as tree("0x2684", 8)
}

# shown is one function as lspci writes it.
shown(kind, class, width) := {
	"texts": [{"name": "lspci.txt"}],
	"pci": {"devices": [{"address": link_widths_gpu, "kind": kind, "class": class, "vendor": "", "device": "", "link": {"width": width, "max_width": 16}}]},
}

test_lspci_alone if {
	pcie_link_degraded.narrow[link_widths_gpu] == {"width": 2, "best": 16, "source": "lspci"} with input as shown("gpu", "0x030200", 2)
	not pcie_link_degraded.narrow[link_widths_gpu] with input as shown("nic", "0x020700", 2)
	not pcie_link_degraded.narrow[link_widths_gpu] with input as shown("gpu", "0x030200", 16)
}

# boot is what the kernel writes of the way of a device.
boot(lanes, speed, extra) := object.union(
	{"kernel_log": {"source": "dmesg.txt", "events": [{
		"id": "kernel-pcie-link-limited", "kind": "pcie-link", "address": link_widths_gpu,
		"fields": {"driver": "pci", "width": sprintf("%d", [lanes]), "best_width": "16", "port": link_widths_root},
		"message": sprintf("pci %s: 31.5 Gb/s available PCIe bandwidth, limited by %v GT/s PCIe x%d link at %s (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)", [link_widths_gpu, speed, lanes, link_widths_root]),
	}]}},
	extra,
)

known := {"gpus": {"devices": [{"address": link_widths_gpu, "vendor": "nvidia"}]}}

test_what_the_kernel_wrote if {
	not pcie_link_degraded.told_narrow[link_widths_gpu] with input as boot(16, 2.5, known)
	not pcie_link_degraded.told_narrow[link_widths_gpu] with input as boot(4, 8, {})
	not pcie_link_degraded.told_narrow[link_widths_gpu] with input as boot(4, 8, object.union(known, {"host": {"virtualization": {"guest": true}}}))
}
