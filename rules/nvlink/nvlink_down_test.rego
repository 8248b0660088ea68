package gpudoctor.rules.nvlink_down_test

import data.gpudoctor.rules.nvlink_down

a := "0000:01:00.0"
b := "0000:02:00.0"
c := "0000:03:00.0"

# links are n NVLinks of which the first k are active.
links(n, k) := [{"link": i, "active": i < k} | some i in numbers.range(0, n - 1)]
gpu(address, name, nvlinks) := {"address": address, "vendor": "nvidia", "name": name, "mig": false, "nvlinks": nvlinks}
machine(switches, gpus) := {"gpus": {"nvml": "ok", "nvswitches": switches, "devices": gpus}}
h200(address, k) := gpu(address, "NVIDIA H200", links(18, k))
graded(found) := {[f.subject, f.severity] | some f in found}

test_bridges if {
	found := nvlink_down.findings with input as machine(0, [gpu(x, "NVIDIA GeForce RTX 3090", links(4, 3)) | some x in [a, b]])
	graded(found) == {[a, "medium"], [b, "medium"]}
}

test_unhealthy_fabric if {
	found := nvlink_down.findings with input as machine(4, [object.union(h200(x, 18), {"fabric": {"state": "completed", "unhealthy": ["degraded-bandwidth"]}}) | some x in [a, b]])
	graded(found) == {["host", "high"]}
	one := nvlink_down.findings with input as machine(4, [object.union(h200(a, 18), {"fabric": {"state": "completed", "unhealthy": ["route-recovery"]}}), h200(b, 18)])
	graded(one) == {[a, "medium"]}
}

counting(replays, recoveries) := gpu(a, "NVIDIA H200", [object.union(l, {"replay_errors": replays, "recovery_errors": recoveries, "crc_errors": 12}) | some l in links(18, 18)])

test_counters_are_low_at_most if {
	graded(nvlink_down.findings) == {[a, "low"]} with input as machine(4, [counting(0, 1)])
	graded(nvlink_down.findings) == {[a, "info"]} with input as machine(4, [counting(3, 0)])
}

test_nvml_contradicts_the_links if {
	pair := {"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 18, "p2p": {"nvlink": "not-supported"}}
	contradicted := object.union(machine(4, [h200(a, 18), h200(b, 18)]), {"links": {"pairs": [pair]}})
	graded(nvlink_down.findings) == {[sprintf("%s -> %s", [a, b]), "medium"]} with input as contradicted
	# MIG has that effect, and may be on where nobody could ask.
}

test_silent_without_a_bridge if {
	some_bridged := [gpu(a, "NVIDIA GeForce RTX 3090", links(4, 4)), gpu(b, "NVIDIA GeForce RTX 3090", links(4, 4)), gpu(c, "NVIDIA GeForce RTX 3090", links(4, 0))]
	count(nvlink_down.findings) == 0 with input as machine(0, some_bridged)
}

test_unresolvable if {
	dumb := machine(4, [{"address": a, "vendor": "nvidia", "nvlinks": null}])
	count(nvlink_down.findings) == 0 with input as dumb
}

said(id, text) := {"logs": {"messages": [{"id": id, "program": "x", "role": "cause", "text": text, "source": "app.log", "line": 9, "order": 4}]}}
pair(a, b, n) := {"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": n, "nvswitch": true}

test_a_matrix_shows_a_gpu_with_fewer_links if {
	all := [{"address": x, "vendor": "nvidia"} | some x in ["GPU0", "GPU1", "GPU2"]]
	document := {"gpus": {"devices": all}, "links": {"pairs": [pair("GPU0", "GPU1", 18), pair("GPU0", "GPU2", 16), pair("GPU1", "GPU2", 16)]}}
	{f.subject | some f in nvlink_down.findings} == {"GPU2"} with input as document
}

test_dark_modules if {
	dark := said("nvlink-all-inactive", "all links are inActive")
	modules := {"gpus": {"devices": [{"address": x, "vendor": "nvidia", "name": "NVIDIA H100 80GB HBM3"} | some x in ["GPU0", "GPU1"]]}}
	some f in nvlink_down.findings with input as object.union(dark, modules)
	f.severity == "high"
	quiet := {"logs": {"messages": [object.union(dark.logs.messages[0], {"role": "setting"})]}}
	some g in nvlink_down.findings with input as object.union(quiet, modules)
	g.severity == "low"
	cards := {"gpus": {"devices": [{"address": x, "vendor": "nvidia", "name": "NVIDIA GeForce RTX 3090"} | some x in ["GPU0", "GPU1"]]}}
	count(nvlink_down.findings) == 0 with input as object.union(quiet, cards)
}

xid_event(code, address, message) := {"kind": "xid", "code": code, "address": address, "message": message, "count": 1}

test_nvlink_xids if {
	log := {"kernel_log": {"source": "dmesg", "events": [xid_event(145, a, "NVRM: Xid (PCI:0000:01:00): 145, RLW_CTRL Fatal")]}}
	some f in nvlink_down.findings with input as log
	f.subject == a
	f.severity == "high"
	after := {"kernel_log": {"source": "dmesg", "events": [
		object.union(xid_event(45, a, "x"), {"id": "kernel-xid-after", "fields": {"previous": "149"}}),
		object.union(xid_event(45, b, "x"), {"id": "kernel-xid-after", "fields": {"previous": "145"}}),
	]}}
	some g in nvlink_down.findings with input as after
	g.subject == "host"
	other := {"kernel_log": {"source": "dmesg", "events": [object.union(xid_event(45, a, "x"), {"id": "kernel-xid-after", "fields": {"previous": "31"}}), xid_event(31, a, "x")]}}
	count(nvlink_down.findings) == 0 with input as other
}

test_a_module_that_was_shown_alone if {
	graded(nvlink_down.findings) == {[a, "medium"]} with input as machine(0, [gpu(a, "Tesla V100-SXM2-32GB", links(6, 4))])
	count(nvlink_down.findings) == 0 with input as machine(0, [gpu(a, "Tesla V100-SXM2-32GB", links(6, 0))])
	count(nvlink_down.findings) == 0 with input as machine(0, [gpu(a, "NVIDIA A100 80GB PCIe", links(12, 8))])
}

nvlinks_links(total, active) := [{"link": i, "active": i < active} | some i in numbers.range(0, total - 1)]
nvlinks_gpu(address, name, total, active) := {"address": address, "vendor": "nvidia", "name": name, "nvlinks": nvlinks_links(total, active)}

short(devices, switches) := found if {
	found := nvlink_down.short with input as {"gpus": {"nvswitches": switches, "devices": devices}}
}

nvlinks_a := "0000:01:00.0"
nvlinks_b := "0000:02:00.0"

test_links_behind_switches if {
	short([nvlinks_gpu(nvlinks_a, "NVIDIA H800", 18, 8), nvlinks_gpu(nvlinks_b, "NVIDIA H800", 18, 7)], 4) == {nvlinks_b: 8}
}

test_links_of_a_bridge if {
	short([nvlinks_gpu(nvlinks_a, "NVIDIA A100", 12, 12), nvlinks_gpu(nvlinks_b, "NVIDIA A100", 12, 8)], 0) == {nvlinks_b: 12}
	short([nvlinks_gpu(nvlinks_a, "NVIDIA A40", 4, 0), nvlinks_gpu(nvlinks_b, "NVIDIA A40", 4, 0)], 0) == {}
}
