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

test_fires_on_width if {
	found := pcie_link_degraded.findings with input as machine(link(2.5, 8, 32, 16), 16, full)
	found_by_subject(found) == {gpu: ["medium", "likely"]}
	some f in found
	f.affects == [gpu]
	contains(f.message, "8 lanes")
}

test_high_with_a_quarter_of_the_lanes if {
	found_by_subject(pcie_link_degraded.findings) == {gpu: ["high", "likely"]} with input as machine(link(32, 4, 32, 16), 16, full)
}

test_fires_above_a_switch if {
	found := pcie_link_degraded.findings with input as machine(full, 16, link(32, 8, 32, 16))
	found_by_subject(found) == {upstream: ["medium", "likely"]}
	some f in found
	f.affects == [gpu]
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

test_confirmed_by_a_slow_transfer if {
	measured := object.union(machine(link(32, 8, 32, 16), 16, full), {"transfers": {"outcome": "ok", "transfers": [{"test": "copy", "source": gpu, "destination": other, "outcome": "slow"}]}})
	found_by_subject(pcie_link_degraded.findings) == {gpu: ["medium", "confirmed"]} with input as measured
}

test_slow_nvlink_confirms_nothing if {
	measured := object.union(machine(link(32, 8, 32, 16), 16, full), {
		"links": {"pairs": [{"a": gpu, "b": other, "kind": "gpu-gpu", "nvlinks": 4}]},
		"transfers": {"outcome": "ok", "transfers": [{"test": "copy", "source": gpu, "destination": other, "outcome": "slow"}]},
	})
	found_by_subject(pcie_link_degraded.findings) == {gpu: ["medium", "likely"]} with input as measured
}

test_silent_when_idle if {
	count(pcie_link_degraded.findings) == 0 with input as machine(link(2.5, 16, 32, 16), 16, full)
	count(pcie_link_degraded.missing) == 0 with input as machine(link(2.5, 16, 32, 16), 16, full)
}

test_silent_when_nvml_woke_it if {
	woken := object.union(machine(link(2.5, 16, 32, 16), 16, full), fast(0, 5))
	count(pcie_link_degraded.findings) == 0 with input as woken
}

test_silent_in_a_slot_wired_with_eight_lanes if {
	count(pcie_link_degraded.findings) == 0 with input as machine(link(32, 8, 32, 16), 8, full)
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

test_nvml_alone_on_bare_metal if {
	found_by_subject(pcie_link_degraded.findings) == {gpu: ["low", "possible"]} with input as by_nvml(false, "none")
}

test_a_cloud_t4_in_eight_lanes_is_unresolvable if {
	count(pcie_link_degraded.findings) == 0 with input as by_nvml(true, "passthrough")
	count(pcie_link_degraded.missing) == 1 with input as by_nvml(true, "passthrough")
	count(pcie_link_degraded.findings) == 0 with input as by_nvml(false, "passthrough")
}

test_counters_are_evidence if {
	devices := [
		object.union(device(root, "root-port", [], link(32, 8, 32, 16)), {"aer": {"total_correctable": 900}}),
		device(gpu, "endpoint", [root], link(32, 8, 32, 16)),
	]
	some f in pcie_link_degraded.findings with input as object.union(machine(full, 16, full), {"pci": {"devices": devices}})
	contains(f.message, "900 corrected errors")
	count(f.evidence) == 3
}

test_unresolvable if {
	count(pcie_link_degraded.findings) == 0 with input as {}
	count(pcie_link_degraded.missing) == 1 with input as {}
	blind := {"host": {"virtualization": {"guest": false}}, "gpus": {"devices": [{"address": gpu, "vendor": "nvidia"}]}}
	count(pcie_link_degraded.missing) == 1 with input as blind
}

test_not_applicable_without_a_gpu if {
	count(pcie_link_degraded.not_applicable) == 1 with input as {"host": {"virtualization": {"guest": false}}, "gpus": {"devices": []}}
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
	contains(f.message, "0000:3a:00.0")
	driver := object.remove(at_boot("0000:03:00.0", "amdgpu", "2", "16"), ["gpus"])
	count(pcie_link_degraded.findings) == 1 with input as driver
}

test_silent_on_an_idle_speed_in_the_kernel_log if {
	count(pcie_link_degraded.findings) == 0 with input as at_boot("0000:3b:00.0", "pci", "16", "16")
	count(pcie_link_degraded.findings) == 0 with input as at_boot("0000:05:00.0", "pci", "1", "4")
}

# texts are what people send: no word of a hypervisor.
texts := {"texts": [{"name": "a"}]}

test_widths_in_a_text if {
	csv := object.union(texts, {"gpus": {"devices": [{"address": "GPU1", "vendor": "nvidia", "pcie": {"width": 4, "max_width": 16}}]}})
	some f in pcie_link_degraded.findings with input as csv
	[f.severity, f.confidence] == ["medium", "possible"]
	half := object.union(texts, {"gpus": {"devices": [{"address": "GPU1", "vendor": "nvidia", "pcie": {"width": 8, "max_width": 16}}]}})
	some g in pcie_link_degraded.findings with input as half
	g.severity == "low"
	count(pcie_link_degraded.findings) == 0 with input as object.union(csv, {"host": {"virtualization": {"guest": true}}})
}

test_one_function_of_lspci if {
	narrow_card := object.union(texts, {"pci": {"partial": true, "devices": [{"address": gpu, "class": "", "kind": "", "vendor": "", "device": "", "link": link(8, 2, 16, 16)}]}})
	some f in pcie_link_degraded.findings with input as narrow_card
	[f.subject, f.severity] == [gpu, "medium"]
	contains(f.message, "the card supports")
	wide := object.union(texts, {"pci": {"partial": true, "devices": [{"address": gpu, "class": "", "kind": "", "vendor": "", "device": "", "link": link(2.5, 16, 16, 16)}]}})
	count(pcie_link_degraded.findings) == 0 with input as wide
}

# copies is a table of nvbandwidth between host memory and GPUs in slots of 63 GB/s.
copies(rates) := {"benchmarks": [{
	"tool": "nvbandwidth", "test": "host_to_device_memcpy_ce", "what": "host-to-gpu", "source": "nvb.txt", "line": 3, "complete": true,
	"points": [{"a": "CPU", "b": sprintf("GPU%d", [i]), "gbps": gbps, "expected_gbps": 63, "threshold": 0.5, "basis": "the GPU's PCIe link", "line": 6} | some i, gbps in rates],
}]}

test_fires_slow_host_copies if {
	some f in pcie_link_degraded.findings with input as copies([55, 12, 55])
	f.severity == "medium"
	contains(f.message, "12.0 GB/s between host memory and GPU1")
	contains(f.message, "1 of 3")
	"bind-numa" in f.remedies
	some g in pcie_link_degraded.findings with input as copies([12, 12])
	not "bind-numa" in g.remedies
}

test_silent_host_copies if {
	count(pcie_link_degraded.findings) == 0 with input as copies([55, 54])
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
	count(pcie_link_degraded.findings) == 0 with input as network("InfiniBand", 48)
}

lag(rate) := {"logs": {"messages": [{
	"id": "nccl-diag-net-slow", "program": "nccl", "role": "cause", "text": "x", "source": "app.log", "line": 9, "order": 4,
	"fields": {"rank": "3", "slow_host": "node0", "rate": rate, "median": "391.5", "mode": "same-nic"},
}]}}

test_fires_lagging_nic if {
	some f in pcie_link_degraded.findings with input as lag("165.1")
	f.subject == "NIC of rank 3"
	contains(f.message, "165.1 of 391.5 Gb/s")
}

test_silent_leading_nic if {
	count(pcie_link_degraded.findings) == 0 with input as lag("565.1")
}

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
	count(pcie_link_degraded.findings) == 0 with input as asked(100, 5)
	count(pcie_link_degraded.findings) == 0 with input as object.union(asked(100, 2), {"host": {"virtualization": {"guest": true}}})
}
