package gpudoctor.lib.host_copies_test

import data.gpudoctor.lib.host_copies

table(test, points) := {"benchmarks": [{"tool": "bandwidthTest", "test": test, "what": "host-to-gpu", "source": "b.txt", "line": 1, "complete": true, "points": points}]}

unknown_link(gbps) := {"a": "CPU", "b": "GPU0", "bytes": 32000000, "gbps": gbps, "expected_gbps": 0.985, "threshold": 1, "basis": "one lane of PCIe 3.0", "line": 10}

link(gpu, gbps) := {"a": "CPU", "b": gpu, "gbps": gbps, "expected_gbps": 63, "threshold": 0.5, "basis": "the GPU's PCIe link", "line": 6}

test_hopeless if {
	some f in host_copies.found with input as table("Host to Device, pinned", [unknown_link(0.76)])
	[f.severity, f.confidence] == ["medium", "likely"]
	contains(f.message, "0.76 GB/s between host memory and GPU0, which is less than one lane of PCIe 3.0 carries (0.98 GB/s)")
	some pageable in host_copies.found with input as table("Host to Device, pageable", [unknown_link(0.76)])
	pageable.confidence == "possible"
	some guest in host_copies.found with input as object.union(table("Host to Device, pinned", [unknown_link(0.76)]), {"host": {"virtualization": {"guest": true}}})
	guest.confidence == "possible"
	contains(guest.message, "In a virtual machine")
}

# Values that agree may be those of narrow uplinks, unless the ways to the processors are known.
test_alike if {
	narrow := table("host_to_device_memcpy_ce", [link("GPU0", 14.2), link("GPU1", 14.1)])
	some f in host_copies.found with input as narrow
	f.severity == "low"
	contains(f.message, "narrower uplinks")
	some g in host_copies.found with input as object.union(narrow, {"links": {"pairs": [], "hosts": [{"gpu": "0000:18:00.0", "at": "0000:18:00.0", "speed_gts": 32, "width": 16, "gbps": 63}]}})
	g.severity == "medium"
	some one in host_copies.found with input as table("x", [link("GPU0", 14.2), link("GPU1", 55)])
	one.severity == "medium"
	"bind-numa" in one.remedies
}

test_silent if count(host_copies.found) == 0 with input as table("x", [link("GPU0", 55), link("GPU1", 54)])
