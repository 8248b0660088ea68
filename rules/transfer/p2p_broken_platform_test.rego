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

test_one_direction if {
	found := p2p_broken_platform.findings with input as machine([corrupt("copy", a, b), transfer("copy", b, a, "ok")])
	subjects(found) == {sprintf("%s -> %s", [a, b])}
	some f in found
	contains(f.message, "one direction only")
}

test_different_faults_stay_apart if {
	found := p2p_broken_platform.findings with input as machine([corrupt("copy", a, b), transfer("copy", a, gpus[2], "hang")])
	count(found) == 2
}

test_hang if {
	some f in p2p_broken_platform.findings with input as machine(both_ways("copy", "hang"))
	contains(f.message, " hang (")
	f.affects == [a, b]
}

test_each_outcome_is_told if {
	mixed := array.concat([object.union(corrupt("sm-store", a, b), {"found": "poison"})], [transfer("handshake", a, b, "hang")])
	some f in p2p_broken_platform.findings with input as machine(mixed)
	contains(f.message, "hang (handshake); others report success and deliver wrong data (sm-store: nothing arrived;")
}

test_error_is_named if {
	failing := object.union(transfer("copy", a, b, "error"), {"error_code": 700, "error_name": "CUDA_ERROR_ILLEGAL_ADDRESS"})
	some f in p2p_broken_platform.findings with input as machine([failing])
	contains(f.message, "CUDA_ERROR_ILLEGAL_ADDRESS")
}

test_a_handshake_has_no_direction if {
	silent := object.union(transfer("handshake", a, b, "hang"), {"reason": "b did not see the store of a"})
	some f in p2p_broken_platform.findings with input as machine(array.concat(both_ways("copy", "ok"), [silent]))
	contains(f.message, "in both directions")
	contains(f.message, ": b did not see the store of a.")
	not contains(f.message, "one direction only")
	not contains(f.message, "loads and stores of the SMs fail")
}

test_a_crash_is_named if {
	crash := object.union(transfer("copy", a, b, "error"), {"reason": "the driver crashed: SIGSEGV"})
	some f in p2p_broken_platform.findings with input as machine([crash])
	contains(f.message, "SIGSEGV")
}

test_between_processes_is_another_matter if {
	failing := [object.union(t, {"reason": "pidfd_getfd: operation not permitted"}) | some t in both_ways("between-processes", "error")]
	found := p2p_broken_platform.findings with input as machine(array.concat(both_ways("copy", "ok"), failing))
	some f in found
	f.severity == "high"
	f.remedies == ["nccl-p2p-disable", "upgrade-driver"]
	contains(f.message, "pidfd_getfd")
}

test_control_arm if {
	good := array.concat([corrupt("copy", a, b), corrupt("copy", b, a)], both_ways("host-staged", "ok"))
	some f in p2p_broken_platform.findings with input as machine(good)
	f.params.staged_good == true
	contains(f.message, "arrived correctly through host memory")
	bad := array.concat([corrupt("copy", a, b), corrupt("copy", b, a)], both_ways("host-staged", "corrupt"))
	count(p2p_broken_platform.findings) == 0 with input as machine(bad)
}

test_silent if {
	healthy := machine([transfer("copy", s, d, "ok") | some s in gpus; some d in gpus; s != d])
	count(p2p_broken_platform.findings) == 0 with input as healthy
	count(p2p_broken_platform.missing) == 0 with input as healthy
}

test_silent_for_slow_and_unsupported if {
	count(p2p_broken_platform.findings) == 0 with input as machine(array.concat(both_ways("copy", "slow"), both_ways("atomics", "unsupported")))
}

test_silent_when_the_probe_could_not_try if {
	full := object.union(transfer("copy", a, b, "error"), {"error_code": 2, "error_name": "CUDA_ERROR_OUT_OF_MEMORY"})
	count(p2p_broken_platform.findings) == 0 with input as machine([full])
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

test_not_applicable_to_one_gpu if {
	one := {"gpus": {"devices": [{"address": a, "vendor": "nvidia"}]}}
	count(p2p_broken_platform.missing) == 0 with input as one
	count(p2p_broken_platform.not_applicable) == 1 with input as one
}

# The texts that people send.

by_hand := {"benchmarks": [{
	"tool": "pytorch", "test": "a tensor copied by hand", "what": "copy", "wrong": 2, "complete": true,
	"points": [{"a": "GPU0", "b": "GPU1", "line": 7}], "source": "app.log", "line": 7,
}]}

test_fires_on_a_copy_that_somebody_found_wrong if {
	found := p2p_broken_platform.findings with input as by_hand
	some f in found
	[f.severity, f.confidence] == ["critical", "confirmed"]
	f.evidence[0].source == "app.log:7"
	object.get(f.params, "vendor", "unknown") == "unknown"
	contains(f.message, "GPU0 to GPU1")
	"iommu-off" in {r | some r in f.remedies}
}

test_names_the_iommu_of_the_processor if {
	some f in p2p_broken_platform.findings with input as object.union(by_hand, {"host": {"cpu": {"vendor": "AuthenticAMD"}}})
	f.params.vendor == "amd"
	some g in p2p_broken_platform.findings with input as object.union(by_hand, {"host": {"cpu": {"model": "AMD EPYC 7402P 24-Core Processor"}}})
	g.params.vendor == "amd"
	some h in p2p_broken_platform.findings with input as object.union(by_hand, {"iommu": {"vendor": "amd"}})
	h.params.vendor == "amd"
	some i in p2p_broken_platform.findings with input as object.union(by_hand, {"host": {"cpu": {"vendor": "GenuineIntel"}}})
	i.params.vendor == "intel"
	some j in p2p_broken_platform.findings with input as object.union(by_hand, {"host": {"cpu": {"model": "Intel(R) Xeon(R) Platinum 8480+"}}})
	j.params.vendor == "intel"
}

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

test_fires_on_peer_access_that_was_asked_for if {
	some f in p2p_broken_platform.findings with input as llama
	[f.severity, f.confidence] == ["low", "possible"]
	f.params.variable == "GGML_CUDA_P2P"
	garbage := object.union(llama, {"logs": {"messages": [object.union(complaint("{\"content\":\"!!!!!!!!\"}", "consequence"), {"id": "model-output-degenerate"})]}})
	some g in p2p_broken_platform.findings with input as garbage
	[g.severity, g.confidence] == ["critical", "likely"]
	g.remedies[0] == "unset-env"
	[count(g.evidence), count(g.messages)] == [1, 1]
	joined := {"env": {"variables": [{"name": "GGML_CUDA_P2P", "value": "1", "source": "environment", "effective": true}]}, "links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0}]}}
	some h in p2p_broken_platform.findings with input as joined
	h.evidence[0].source == "environment"
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

test_silent_where_geforce_cards_got_on if {
	table := {"benchmarks": [{"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "complete": true, "points": [{"bytes": 8, "line": 3}], "source": "t", "line": 1}]}
	count(p2p_broken_platform.findings) == 0 with input as object.union(geforce, table)
	staged := object.union(geforce, {"logs": {"messages": [], "communicators": geforce.logs.communicators, "transports": [{"kind": "shm", "channels": 4, "a": 0, "b": 1, "source": "t", "line": 1}]}})
	count(p2p_broken_platform.findings) == 0 with input as staged
	off := object.union(geforce, {"env": {"variables": [{"name": "NCCL_P2P_DISABLE", "value": "1", "source": "environment", "effective": true}]}})
	count(p2p_broken_platform.findings) == 0 with input as off
	explained := object.union(geforce, {"logs": {"messages": [complaint("no room in /dev/shm", "cause")], "communicators": geforce.logs.communicators}})
	count(p2p_broken_platform.findings) == 0 with input as explained
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

# standing is a table of nccl-tests that stops before its first row, on GPUs of a
# model, over a transport.
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

trial := {"launches": [{"kind": "command", "variables": {"NCCL_P2P_DISABLE": "1"}, "source": "b.txt", "line": 3}]}

test_fires_where_the_first_collective_never_ends if {
	some f in p2p_broken_platform.findings with input as unmoved("1", 3)
	[f.severity, f.confidence, count(f.messages), f.remedies[0]] == ["high", "possible", 1, "nccl-p2p-disable"]
	some g in p2p_broken_platform.findings with input as unmoved("1", 100)
	g.confidence == "likely"
	contains(g.message, "permanently busy")
}

test_fires_for_workers_that_spin if {
	workers := {"logs": {"messages": [{
		"id": "vllm-workers-stuck", "program": "vllm", "role": "category", "text": "No available shared memory broadcast block found", "source": "a.log", "line": 9,
		"order": 3, "count": 1, "ranks": 1,
	}]}}
	some f in p2p_broken_platform.findings with input as object.union(unmoved("7", 100), workers)
	f.remedies[1] == "disable-custom-all-reduce"
	count(p2p_broken_platform.findings) == 0 with input as object.union(unmoved("7", 40), workers)
}

test_fires_after_a_trial_that_came_through if {
	given := object.union(unmoved("1", 3), object.union(off("NCCL_P2P_DISABLE", "1"), trial))
	some f in p2p_broken_platform.findings with input as given
	f.confidence == "possible"
	ready := {"id": "server-ready", "program": "frameworks", "role": "setting", "text": "Application startup complete.", "source": "b.txt", "line": 5, "order": 9, "count": 1, "ranks": 1}
	some g in p2p_broken_platform.findings with input as object.union(given, {"logs": {"messages": array.concat(given.logs.messages, [ready])}})
	g.confidence == "likely"
	contains(g.message, "access disabled")
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
