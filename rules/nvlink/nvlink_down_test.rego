package gpudoctor.rules.nvlink_down_test

import data.gpudoctor.rules.nvlink_down

a := "0000:01:00.0"
b := "0000:02:00.0"
c := "0000:03:00.0"

# links are n NVLinks of which the first k are active.
links(n, k) := [{"link": i, "active": i < k} | some i in numbers.range(0, n - 1)]
gpu(address, name, nvlinks) := {"address": address, "vendor": "nvidia", "name": name, "mig": false, "nvlinks": nvlinks}
machine(switches, gpus) := {"gpus": {"nvml": "ok", "nvswitches": switches, "devices": gpus}}
h200(address, more) := object.union(gpu(address, "NVIDIA H200", links(18, 18)), more)
rtx(address, k) := gpu(address, "NVIDIA GeForce RTX 3090", links(4, k))
unhealthy(why) := {"fabric": {"state": "completed", "unhealthy": [why]}}
pair(x, y, more) := object.union({"a": x, "b": y, "kind": "gpu-gpu", "nvlinks": 18, "nvswitch": true}, more)
xids(events) := {"kernel_log": {"source": "dmesg", "events": [object.union({"kind": "xid", "code": 45, "message": "x", "count": 1}, e) |
	some e in events
]}}

after(address, previous) := {"id": "kernel-xid-after", "address": address, "fields": {"previous": previous}}

test_findings if {
	every row in [
		[machine(0, [rtx(a, 3), rtx(b, 3)]), {[a, "medium"], [b, "medium"]}],
		# One without a bridge.
		[machine(0, [rtx(a, 4), rtx(b, 4), rtx(c, 0)]), set()],
		# A module of a board has none, and lost all links.
		[machine(0, [gpu(x, "NVIDIA A100-SXM4-80GB", links(12, 8)) | some x in [a, b]]), set()],
		[
			machine(0, array.concat([gpu(x, "NVIDIA A100-SXM4-80GB", links(12, 8)) | some x in [a, b]], [gpu(c, "NVIDIA A100-SXM4-80GB", links(12, 0))])),
			{[c, "high"]},
		],
		[machine(4, [h200(x, unhealthy("degraded-bandwidth")) | some x in [a, b]]), {["host", "high"]}],
		[machine(4, [h200(a, unhealthy("route-recovery")), h200(b, {})]), {[a, "medium"]}],
		# A matrix shows a GPU with fewer links.
		[
			{
				"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in [a, b, c]]},
				"links": {"pairs": [pair(a, b, {}), pair(a, c, {"nvlinks": 16}), pair(b, c, {"nvlinks": 16})]},
			},
			{[c, "high"]},
		],
		[xids([{"code": 145, "address": a}]), {[a, "high"]}],
		[xids([after(a, "149"), after(b, "145")]), {["host", "high"]}],
		[xids([after(a, "31"), {"code": 31, "address": a}]), set()],
		[machine(0, [gpu(a, "NVIDIA A100 80GB PCIe", links(12, 8))]), set()],
		[machine(4, [{"address": a, "vendor": "nvidia", "nvlinks": null}]), set()],
	] {
		found := nvlink_down.findings with input as row[0]
		{[f.subject, object.get(f, "severity", "high")] | some f in found} == row[1]
	}
}

test_short if {
	every row in [
		[4, [gpu(a, "NVIDIA H800", links(18, 8)), gpu(b, "NVIDIA H800", links(18, 7))], {b: 8}],
		[0, [gpu(a, "NVIDIA A100", links(12, 12)), gpu(b, "NVIDIA A100", links(12, 8))], {b: 12}],
		[0, [gpu(x, "NVIDIA A40", links(4, 0)) | some x in [a, b]], {}],
	] {
		nvlink_down.short == row[2] with input as machine(row[0], row[1])
	}
}

test_unresolvable if count(nvlink_down.missing) == 1 with input as machine(4, [{"address": a, "vendor": "nvidia", "nvlinks": null}])
