package gpudoctor.rules.p2p_broken_platform_test

import data.gpudoctor.rules.p2p_broken_platform

gpus := ["0000:01:00.0", "0000:02:00.0", "0000:03:00.0"]

a := gpus[0]

b := gpus[1]

transfer(test, source, destination, outcome) := {"test": test, "source": source, "destination": destination, "outcome": outcome}

corrupt(test, source, destination) := object.union(
	transfer(test, source, destination, "corrupt"),
	{"bad_bytes": 67108864, "first_bad": 0, "found": "zeros"},
)

peers(access) := [{"source": s, "destination": d, "access": access} | some s in gpus; some d in gpus; s != d]

machine(transfers) := {
	"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in gpus]},
	"transfers": {"outcome": "ok", "peers": peers(true), "transfers": transfers},
}

everywhere(test) := [corrupt(test, s, d) | some s in gpus; some d in gpus; s != d]

both_ways(test, outcome) := [transfer(test, a, b, outcome), transfer(test, b, a, outcome)]

subjects(found) := {f.subject | some f in found}

test_fires_once_for_a_whole_machine if {
	found := p2p_broken_platform.findings with input as machine(everywhere("copy"))
	subjects(found) == {"host"}
	some f in found
	f.severity == "critical"
	f.affects == gpus
	contains(f.message, "6 of 6")
	contains(f.message, "zeros arrived")
	contains(f.message, "64 MiB wrong, from offset 0")
	count(f.evidence) == 12
}

test_a_handshake_has_no_direction if {
	silent := object.union(transfer("handshake", a, b, "hang"), {"reason": "b did not see the store of a"})
	some f in p2p_broken_platform.findings with input as machine(array.concat(both_ways("copy", "ok"), [silent]))
	contains(f.message, "in both directions")
	contains(f.message, ": b did not see the store of a.")
	not contains(f.message, "one direction only")
	not contains(f.message, "loads and stores of the SMs fail")
}

test_between_processes_is_another_matter if {
	failing := [object.union(t, {"reason": "pidfd_getfd: operation not permitted"}) | some t in both_ways("between-processes", "error")]
	found := p2p_broken_platform.findings with input as machine(array.concat(both_ways("copy", "ok"), failing))
	some f in found
	f.severity == "high"
	f.remedies == ["nccl-p2p-disable", "upgrade-driver"]
	contains(f.message, "pidfd_getfd")
}

test_silent_without_peer_access if {
	refused := object.union(machine([transfer("copy", a, b, "error")]), {"transfers": {"peers": peers(false)}})
	count(p2p_broken_platform.findings) == 0 with input as refused
	count(p2p_broken_platform.not_applicable) == 1 with input as refused
}

test_unresolvable if {
	unprobed := {"gpus": {"devices": [{"address": x, "vendor": "nvidia"} | some x in gpus]}}
	count(p2p_broken_platform.findings) == 0 with input as unprobed
	count(p2p_broken_platform.missing) == 1 with input as unprobed
	count(p2p_broken_platform.missing) == 1 with input as {}
}

# The texts that people send.

by_hand := {"benchmarks": [{
	"tool": "pytorch", "test": "a tensor copied by hand", "what": "copy", "wrong": 2, "complete": true,
	"points": [{"a": "GPU0", "b": "GPU1", "line": 7}], "source": "app.log", "line": 7,
}]}

test_a_guest_cannot_change_the_platform if {
	some f in p2p_broken_platform.findings with input as object.union(by_hand, {"host": {"virtualization": {"guest": true}}})
	f.remedies == ["nccl-p2p-disable", "upgrade-driver"]
}

broken_table := {"benchmarks": [{"tool": "p2pBandwidthLatencyTest", "test": "unidirectional, P2P enabled", "what": "copy", "complete": false, "source": "p2p.txt", "line": 20}]}

test_a_table_that_breaks_off_is_possible if {
	some f in p2p_broken_platform.findings with input as broken_table
	[f.severity, f.confidence] == ["high", "possible"]
	unnamed := {"benchmarks": [{"tool": "simpleP2P", "test": "copy", "what": "copy", "wrong": 1, "complete": true, "source": "p2p.txt", "line": 20}]}
	some g in p2p_broken_platform.findings with input as unnamed
	contains(g.message, "(simpleP2P)")
}

complaint(text, role) := {"id": "x-y", "program": "cuda", "role": role, "text": text, "source": "p2p.txt", "line": 21, "order": 0, "count": 1, "ranks": 1}

test_silent_where_the_driver_refused_the_mapping if {
	refused := object.union(broken_table, {"logs": {"messages": [object.union(complaint("mapping of buffer object failed", "cause"), {"id": "cuda-map-failed"})]}})
	count(p2p_broken_platform.findings) == 0 with input as refused
}

llama := {
	"env": {"variables": [{"name": "GGML_CUDA_P2P", "value": "0", "source": "env.txt", "line": 1, "effective": true}]},
	"gpus": {"devices": [{"address": "GPU0", "vendor": "nvidia", "nvlinks": []}, {"address": "GPU1", "vendor": "nvidia", "nvlinks": []}]},
}

test_a_test_of_peer_access_that_was_left_out if {
	some f in p2p_broken_platform.findings with input as left_out("1")
	f.subject == "VLLM_SKIP_P2P_CHECK"
	count(p2p_broken_platform.findings) == 0 with input as left_out("0")
}

left_out(value) := {"gpus": llama.gpus, "env": {"variables": [{"name": "VLLM_SKIP_P2P_CHECK", "value": value, "source": "environment", "effective": true}]}}

geforce := {
	"gpus": {"devices": [{"address": sprintf("GPU%d", [n]), "vendor": "nvidia", "name": "NVIDIA GeForce RTX 4090"} | some n in [0, 1]]},
	"logs": {"messages": [], "communicators": [{"library": "nccl", "ranks": 2, "source": "nccl.log", "line": 10}]},
}

test_a_log_that_ends_between_geforce_cards_is_possible if {
	some f in p2p_broken_platform.findings with input as geforce
	[f.severity, f.confidence] == ["low", "possible"]
	timed_out := object.union(geforce, {"logs": object.union(geforce.logs, {"messages": [complaint("timed out", "category")]})})
	some g in p2p_broken_platform.findings with input as timed_out
	[g.severity, g.confidence] == ["high", "possible"]
	f.remedies[0] == "nccl-p2p-disable"
}

run(points, complete) := {"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "ranks": 2, "complete": complete, "points": points, "source": "a", "line": 1}

test_two_runs_of_which_one_ends if {
	both := {
		"benchmarks": [run([], false), run([{"gbps": 12}], true)],
		"env": {"variables": [{"name": "NCCL_P2P_DISABLE", "value": "1", "source": "b", "line": 1}]},
	}
	some f in p2p_broken_platform.findings with input as both
	[f.severity, f.confidence] == ["critical", "likely"]
	count(p2p_broken_platform.findings) == 0 with input as object.remove(both, ["env"])
}

# diagnosed is what NCCL's own check says of a pair of GPUs.
diagnosed(id, what, path, handle) := {"logs": {"messages": [{
	"id": id, "program": "nccl", "role": "cause", "text": "x", "source": "a.log", "line": 1, "order": 4, "count": 1, "ranks": 1,
	"fields": {"what": what, "rank": "0", "from": "0", "to": "1", "path": path, "handle": handle},
}]}}

test_fires_own_check_of_nccl if {
	some f in p2p_broken_platform.findings with input as diagnosed("nccl-diag-p2p-mismatch", "write", "PHB", "DIRECT")
	f.severity == "critical"
	f.remedies[1] == "iommu-pt"
	contains(f.message, "GPU 0 to 1 over PHB (write)")
	some g in p2p_broken_platform.findings with input as diagnosed("nccl-diag-p2p-mismatch", "read", "NVL", "DIRECT")
	g.remedies[1] == "reset-gpu"
	some i in p2p_broken_platform.findings with input as object.union(diagnosed("nccl-diag-p2p-mismatch", "read", "NVL", "DIRECT"), {"gpus": {"devices": [{"vendor": "nvidia", "address": "0000:3b:00.0"}]}})
	i.params.gpus == ["0000:3b:00.0"]
}

latencies(us, p2p) := {"benchmarks": [{
	"tool": "p2pBandwidthLatencyTest", "test": "x", "what": "latency", "p2p": p2p, "complete": true, "source": "a", "line": 1,
	"points": [{"a": "GPU0", "b": "GPU1", "microseconds": us}],
}]}

test_latency_of_a_wait_in_vain if {
	some f in p2p_broken_platform.findings with input as latencies(49206.88, true)
	[f.severity, f.confidence] == ["critical", "likely"]
	contains(f.message, "49207 us")
	count(p2p_broken_platform.findings) == 0 with input as latencies(17.2, true)
	count(p2p_broken_platform.findings) == 0 with input as latencies(49206.88, false)
}

# standing is a table of nccl-tests that stops before its first row, on GPUs of a model, over a transport.
standing(model, kind) := {
	"logs": {"messages": [], "transports": [{"kind": kind, "channels": 2, "source": "a.log", "line": 2}]},
	"benchmarks": [{"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "ranks": 2, "complete": false, "gpu_names": [model], "source": "a.log", "line": 9}],
}

test_fires_on_a_collective_that_stands_still_over_pcie if {
	some f in p2p_broken_platform.findings with input as standing("NVIDIA A100 80GB PCIe", "p2p-direct")
	[f.severity, f.confidence, f.remedies[0]] == ["medium", "possible", "nccl-p2p-disable"]
	matrix := object.union(standing("x", "p2p-ipc"), {"links": {"pairs": [{"a": "GPU0", "b": "GPU1", "kind": "gpu-gpu", "nvlinks": 0}]}})
	count(p2p_broken_platform.findings) == 1 with input as matrix
}

# Radeon cards are not to be passed through the IOMMU.
test_radeon_wants_remapping if {
	cards := [{"address": address, "vendor": "amd", "name": "AMD Radeon AI PRO R9700"} | some address in ["0000:03:00.0", "0000:06:00.0"]]
	copied := {"gpus": {"devices": cards}, "benchmarks": [{"tool": "own program", "test": "a copy between GPUs", "what": "copy", "wrong": 1, "complete": true, "points": [{"a": "GPU0", "b": "GPU1", "line": 1}], "source": "a", "line": 1}]}
	some f in p2p_broken_platform.findings with input as copied
	f.remedies == ["nccl-p2p-disable", "disable-acs", "iommu-remap", "update-bios", "upgrade-driver"]
	broken := {"gpus": {"devices": cards}, "transfers": {"outcome": "ok", "api": "hip", "transfers": [{"test": "copy", "source": "0000:03:00.0", "destination": "0000:06:00.0", "outcome": "hang"}]}}
	some g in p2p_broken_platform.findings with input as broken
	not "iommu-pt" in g.remedies
	not "iommu-remap" in g.remedies
	some h in p2p_broken_platform.findings with input as object.union(broken, {"iommu": {"mode": "passthrough"}})
	"iommu-remap" in h.remedies
}

# unmoved is a job whose first collective the watchdog gave up, on two cards.
unmoved(seq, load) := {
	"logs": {"messages": [{
		"id": "torch-watchdog-timeout", "program": "pytorch", "role": "category", "text": "WorkNCCL(...)", "source": "a.log", "line": 9, "order": 3,
		"count": 1, "ranks": 1, "fields": {"seq": seq, "op": "ALLREDUCE", "numel_in": "1", "timeout_ms": "600000"},
	}]},
	"gpus": {"devices": [
		{"vendor": "nvidia", "address": "0000:17:00.0", "name": "NVIDIA L4", "utilization_percent": load},
		{"vendor": "nvidia", "address": "0000:65:00.0", "name": "NVIDIA L4", "utilization_percent": 100},
	]},
}

off(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "b.txt", "line": 3, "effective": true}]}}

test_fires_where_the_first_collective_never_ends if {
	some f in p2p_broken_platform.findings with input as unmoved("1", 3)
	[f.severity, f.confidence, count(f.messages), f.remedies[0]] == ["high", "possible", 1, "nccl-p2p-disable"]
	some g in p2p_broken_platform.findings with input as unmoved("1", 100)
	g.confidence == "likely"
	contains(g.message, "permanently busy")
}

test_silent_where_something_else_explains_the_first_collective if {
	every extra in [
		off("NCCL_P2P_DISABLE", "1"),
		off("NCCL_P2P_LEVEL", "LOC"),
		{"logs": {"transports": [{"kind": "shm", "channels": 2, "source": "a.log", "line": 2}]}},
		{"launches": [{"kind": "slurm", "nodes": 2, "source": "b.txt", "line": 1}]},
		{"gpus": {"devices": [{"vendor": "nvidia", "address": "0000:17:00.0", "name": "NVIDIA H100 80GB HBM3", "nvlinks": [{"active": true}]}]}},
		{"benchmarks": [{"tool": "nccl-tests", "what": "collective", "ranks": 2, "points": [{"bytes": 8}], "complete": true, "source": "c", "line": 1}]},
	] {
		count([f | some f in p2p_broken_platform.findings; contains(f.message, "first collective of the job")]) == 0 with input as object.union(unmoved("1", 3), extra)
	}
	count(p2p_broken_platform.findings) == 0 with input as unmoved("77", 100)
}

radeon(index, name) := object.union(complaint("Device", "setting"), {"id": "ggml-rocm-device", "program": "llama.cpp", "fields": {"index": index, "name": name, "architecture": "gfx1201"}})

test_fires_on_peer_access_asked_for_between_radeon_cards if {
	asked := {"env": llama.env, "logs": {"messages": [radeon(i, "AMD Radeon AI PRO R9700") | some i in ["0", "1"]]}}
	some f in p2p_broken_platform.findings with input as asked
	[f.severity, f.confidence, f.remedies] == ["low", "possible", ["unset-env", "nccl-p2p-disable", "iommu-pt"]]
	count(p2p_broken_platform.findings) == 0 with input as {"env": llama.env, "logs": {"messages": [radeon(i, "AMD Instinct MI210") | some i in ["0", "1"]]}}
	count(p2p_broken_platform.findings) == 0 with input as {"env": llama.env, "logs": {"messages": [radeon("0", "AMD Radeon RX 7900 XTX")]}}
}

broken_transfers_a := "0000:01:00.0"

broken_transfers_b := "0000:02:00.0"

broken_transfers_transfer(test, source, destination, outcome) := {"test": test, "source": source, "destination": destination, "outcome": outcome}

broken_transfers_both_ways(test, outcome) := [broken_transfers_transfer(test, broken_transfers_a, broken_transfers_b, outcome), broken_transfers_transfer(test, broken_transfers_b, broken_transfers_a, outcome)]

probed(transfers) := {"transfers": {
	"outcome": "ok",
	"peers": [{"source": s, "destination": d, "access": true} | some [s, d] in [[broken_transfers_a, broken_transfers_b], [broken_transfers_b, broken_transfers_a]]],
	"transfers": transfers,
}}

# said are the remarks on everything that failed.
said(transfers) := text if {
	group := p2p_broken_platform.failures with input as probed(transfers)
	count(group) > 0
	text := concat(" ", p2p_broken_platform.remarks(group)) with input as probed(transfers)
}

test_slow_ones_beside_the_failures if {
	mixed := [broken_transfers_transfer("copy", broken_transfers_a, broken_transfers_b, "corrupt"), broken_transfers_transfer("sm-load", broken_transfers_a, broken_transfers_b, "slow"), broken_transfers_transfer("copy", broken_transfers_b, broken_transfers_a, "slow")]
	group := p2p_broken_platform.failures with input as probed(mixed)
	p2p_broken_platform.slow_too(group) == {mixed[1]} with input as probed(mixed)
}

test_stores_fail_where_copies_work if {
	contains(said(array.concat(broken_transfers_both_ways("copy", "ok"), broken_transfers_both_ways("sm-store", "corrupt"))), "copy engines work")
	not contains(said(broken_transfers_both_ways("sm-store", "corrupt")), "copy engines work")
}

test_copies_fail_where_loads_work if {
	contains(said(array.concat(broken_transfers_both_ways("copy", "error"), broken_transfers_both_ways("sm-load", "ok"))), "only the copy engines fail")
}

test_handshake_alone if {
	text := said(array.concat(broken_transfers_both_ways("copy", "ok"), broken_transfers_both_ways("handshake", "hang")))
	contains(text, "do not see each other's stores.")
	not contains(text, "loads and stores of the SMs fail")
	silent := object.union(broken_transfers_transfer("handshake", broken_transfers_a, broken_transfers_b, "hang"), {"reason": "b did not see the store of a"})
	told := said(array.concat(broken_transfers_both_ways("copy", "ok"), [silent]))
	contains(told, ": b did not see the store of a.")
	not contains(told, "one direction only")
}

test_atomics_alone if {
	text := said(array.concat(broken_transfers_both_ways("copy", "ok"), [broken_transfers_transfer("atomics", broken_transfers_a, broken_transfers_b, "corrupt")]))
	contains(text, "only atomic operations")
	not contains(text, "loads and stores of the SMs fail")
}

test_peer_access_that_cannot_be_switched_on if {
	late := object.union(broken_transfers_transfer("copy", broken_transfers_a, broken_transfers_b, "error"), {"call": "cuCtxEnablePeerAccess", "error_name": "X"})
	text := said([late, broken_transfers_transfer("copy", broken_transfers_b, broken_transfers_a, "ok"), broken_transfers_transfer("sm-load", broken_transfers_a, broken_transfers_b, "ok")])
	contains(text, "cannot even be enabled (cuCtxEnablePeerAccess)")
	not contains(text, "only the copy engines fail")
}

test_intermittent if {
	contains(said([object.union(broken_transfers_transfer("copy", broken_transfers_a, broken_transfers_b, "corrupt"), {"repeats": 1, "attempts": 3})]), "It is intermittent")
	not contains(said([object.union(broken_transfers_transfer("copy", broken_transfers_a, broken_transfers_b, "corrupt"), {"repeats": 3, "attempts": 3})]), "It is intermittent")
}

test_only_all_at_once if {
	contains(said(array.concat(broken_transfers_both_ways("copy", "ok"), broken_transfers_both_ways("all-at-once", "hang"))), "only while all GPUs write at once")
}

benchmark(extra) := {"benchmarks": [object.union({"tool": "simpleP2P", "test": "copy", "what": "copy", "complete": true, "source": "p2p.txt", "line": 20}, extra)]}

test_wrong if {
	count(p2p_broken_platform.wrong) == 1 with input as benchmark({"wrong": 1})
	count(p2p_broken_platform.wrong) == 0 with input as benchmark({"wrong": 0})
	count(p2p_broken_platform.wrong) == 0 with input as benchmark({"wrong": 1, "p2p": false})
	count(p2p_broken_platform.wrong) == 0 with input as benchmark({"wrong": 1, "what": "collective"})
}

latency(us, p2p) := benchmark({"what": "latency", "p2p": p2p, "points": [{"a": "GPU0", "b": "GPU1", "microseconds": us}]})

peer_cures_a := "0000:01:00.0"

peer_cures_b := "0000:02:00.0"

peer_cures_transfer(test, outcome, extra) := object.union({"test": test, "source": peer_cures_a, "destination": peer_cures_b, "outcome": outcome}, extra)

# advice is what helps where transfers from one GPU to the other failed.
advice(transfers, extra) := remedies if {
	document := object.union({"transfers": {"outcome": "ok", "transfers": transfers}}, extra)
	group := p2p_broken_platform.failures with input as document
	kind := p2p_broken_platform.kind(group[[peer_cures_a, peer_cures_b]]) with input as document
	remedies := p2p_broken_platform.remedies(kind, group) with input as document
}

wrong := [peer_cures_transfer("copy", "corrupt", {})]

guest := {"host": {"virtualization": {"guest": true}}}

peer_cures_radeon := {"gpus": {"devices": [{"address": address, "vendor": "amd", "name": "AMD Radeon AI PRO R9700"} | some address in [peer_cures_a, peer_cures_b]]}}

test_radeon if {
	advice(wrong, peer_cures_radeon) == ["nccl-p2p-disable", "update-bios", "upgrade-driver"]
	"iommu-remap" in advice(wrong, object.union(peer_cures_radeon, {"iommu": {"mode": "passthrough"}}))
}

# Neither firmware nor IOMMU has a part in NVLink, and both are the host's in a virtual machine.
test_advice_fits_the_platform if {
	advice(wrong, guest) == ["nccl-p2p-disable", "upgrade-driver"]
	joined := {"links": {"pairs": [{"a": peer_cures_a, "b": peer_cures_b, "kind": "gpu-gpu", "nvlinks": 18, "bridges": []}]}}
	advice(wrong, joined) == ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "upgrade-driver"]
}

test_memory_at_fault if {
	memory := [peer_cures_transfer("copy", "error", {"error_code": 214, "error_name": "CUDA_ERROR_ECC_UNCORRECTABLE"})]
	advice(memory, {}) == ["reset-gpu", "reboot-or-reload-driver", "replace-hardware"]
}

exported(way, outcome) := peer_cures_transfer("between-processes", outcome, {"way": way})

test_one_way_between_processes if {
	advice([exported("cuMem", "error"), exported("cudaIpc", "ok")], {}) == ["nccl-cumem-disable", "upgrade-driver"]
	advice([exported("cudaIpc", "error"), exported("cuMem", "ok")], {}) == ["upgrade-driver"]
	advice([exported("cudaIpc", "error"), exported("cuMem", "error")], {}) == ["nccl-p2p-disable", "upgrade-driver"]
}

cards(model, load) := {"gpus": {"devices": [{"vendor": "nvidia", "address": address, "name": model, "utilization_percent": load} | some address in ["0000:17:00.0", "0000:65:00.0"]]}}

message(id, extra) := object.union({"id": id, "program": "x", "role": "category", "text": "x", "source": "a.log", "line": 9, "order": 3, "count": 1, "ranks": 1}, extra)

stalled_collectives_off(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "b.txt", "line": 3, "effective": true}]}}

stalled_collectives_geforce := object.union(cards("NVIDIA GeForce RTX 4090", 0), {"logs": {"messages": [], "communicators": [{"library": "nccl", "ranks": 2, "source": "nccl.log", "line": 10}]}})

test_ended_early if {
	count(p2p_broken_platform.ended_early) == 1 with input as stalled_collectives_geforce
	count(p2p_broken_platform.ended_early) == 0 with input as object.union(stalled_collectives_geforce, cards("NVIDIA GeForce RTX 3090", 0))
	count(p2p_broken_platform.ended_early) == 0 with input as object.union(stalled_collectives_geforce, stalled_collectives_off("NCCL_P2P_DISABLE", "1"))
	count(p2p_broken_platform.ended_early) == 0 with input as object.union(stalled_collectives_geforce, {"logs": {"messages": [message("x", {"role": "cause"})]}})
}

stalled_collectives_said(id, fields) := {"logs": {"messages": [message(id, {"fields": fields})]}}

test_unmoved if {
	count(p2p_broken_platform.unmoved) == 1 with input as stalled_collectives_said("torch-watchdog-timeout", {"seq": "1"})
	count(p2p_broken_platform.unmoved) == 0 with input as stalled_collectives_said("torch-watchdog-timeout", {"seq": "77"})
	count(p2p_broken_platform.unmoved) == 1 with input as stalled_collectives_said("torch-work-status", {"completed": "-1"})
	workers := stalled_collectives_said("vllm-workers-stuck", {})
	count(p2p_broken_platform.unmoved) == 1 with input as object.union(workers, cards("NVIDIA L4", 100))
	count(p2p_broken_platform.unmoved) == 0 with input as object.union(workers, cards("NVIDIA L4", 40))
}

launch := {"launches": [{"kind": "command", "variables": {"NCCL_P2P_DISABLE": "1"}, "source": "b.txt", "line": 3}]}

log(messages) := {"logs": {"messages": messages}}

test_served_then if {
	ready := message("server-ready", {"role": "setting", "source": "b.txt", "line": 5})
	p2p_broken_platform.served_then with input as object.union(launch, log([ready]))
	not p2p_broken_platform.served_then with input as object.union(launch, log([object.union(ready, {"source": "a.log"})]))
	failed := message("x", {"source": "b.txt", "line": 7})
	not p2p_broken_platform.served_then with input as object.union(launch, log([ready, failed]))
}
