package gpudoctor.rules.p2p_broken_platform_test

import data.gpudoctor.rules.p2p_broken_platform as rule

a := "0000:01:00.0"
b := "0000:02:00.0"
c := "0000:03:00.0"

graded(document) := {[object.get(f, "grade", object.get(f, "id", "")), object.get(f, "severity", ""), object.get(f, "confidence", "")] |
	some f in rule.findings with input as document
}

only(document) := f if {
	found := rule.findings with input as document
	count(found) == 1
	some f in found
}

# What the probe shows.
gpus(vendor, name) := {"gpus": {"devices": [{"address": address, "vendor": vendor, "name": name} | some address in [a, b]]}}
transfer(test, source, destination, outcome) := {"test": test, "source": source, "destination": destination, "outcome": outcome}
both_ways(test, outcome) := [transfer(test, a, b, outcome), transfer(test, b, a, outcome)]

probed(transfers) := {"transfers": {
	"outcome": "ok",
	"peers": [{"source": s, "destination": d, "access": true} | some s in [a, b, c]; some d in [a, b, c]; s != d],
	"transfers": transfers,
}}

test_fires_once_for_a_whole_machine if {
	f := only(probed([transfer("copy", s, d, "corrupt") | some s in [a, b, c]; some d in [a, b, c]; s != d]))
	[f.subject, f.affects, count(f.evidence), f.about.pairs, f.about.tried] == ["host", [a, b, c], 6, 6, 6]
}

one(test, outcome, fields) := object.union(transfer(test, a, b, outcome), fields)

test_accounts_for_slow_transfers if {
	slow := one("sm-load", "slow", {})
	accounted := only(probed([one("copy", "corrupt", {}), slow, transfer("copy", b, a, "slow")])).accounts_for
	{t.test | some t in accounted} == {"copy", "sm-load"}
}

exported(way, outcome) := one("between-processes", outcome, {"way": way, "reason": "pidfd_getfd: operation not permitted"})

radeon_gpus := gpus("amd", "AMD Radeon AI PRO R9700")

# Neither firmware nor IOMMU has a part in NVLink, and both are the host's in a virtual machine.
test_advice_fits_the_platform if {
	wrong := [one("copy", "corrupt", {})]
	every row in [
		[wrong, radeon_gpus, ["nccl-p2p-disable", "update-bios", "upgrade-driver"]],
		[wrong, {"host": {"virtualization": {"guest": true}}}, ["nccl-p2p-disable", "upgrade-driver"]],
		[
			wrong, {"links": {"pairs": [{"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 18, "bridges": []}]}},
			["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "upgrade-driver"],
		],
		[[one("copy", "error", {"error_code": 214, "error_name": "CUDA_ERROR_ECC_UNCORRECTABLE"})], {}, ["reset-gpu", "reboot-or-reload-driver", "replace-hardware"]],
		[[exported("cudaIpc", "error"), exported("cuMem", "error")], {}, ["nccl-p2p-disable", "upgrade-driver"]],
		[[exported("cuMem", "error")], {}, ["nccl-p2p-disable", "upgrade-driver"]],
		[[exported("cuMem", "error"), exported("cudaIpc", "ok")], {}, ["nccl-cumem-disable", "upgrade-driver"]],
		[[exported("cuMem", "ok"), exported("cudaIpc", "error")], {}, ["upgrade-driver"]],
	] {
		only(object.union(probed(row[0]), row[1])).remedies == row[2]
	}
}

# Access that CUDA refuses is p2p-unsupported-gpu's.
test_silent_where_access_is_refused if {
	peers := [{"source": s, "destination": d, "access": false} | some [s, d] in [[a, b], [b, a]]]
	document := object.union(gpus("nvidia", "x"), {"transfers": {"outcome": "ok", "transfers": [one("copy", "error", {})], "peers": peers}})
	count(rule.findings) == 0 with input as document
}

# What the texts show that people send.
benchmark(fields) := {"benchmarks": [object.union({"tool": "simpleP2P", "test": "copy", "what": "copy", "complete": true, "source": "p2p.txt", "line": 20}, fields)]}
latency(us, p2p) := benchmark({"what": "latency", "p2p": p2p, "points": [{"a": "GPU0", "b": "GPU1", "microseconds": us}]})
message(id, fields) := object.union({"id": id, "program": "x", "role": "category", "text": "x", "source": "a.log", "line": 9, "order": 3, "count": 1, "ranks": 1}, fields)
log(messages) := {"logs": {"messages": messages}}

variable(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "b.txt", "line": 3, "effective": true}]}}
run(points, complete) := {"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "ranks": 2, "complete": complete, "points": points, "source": "a", "line": 1}

# standing is a table of nccl-tests that stops before its first row, on GPUs of a model, over a transport.
standing(model, kind) := {
	"logs": {"messages": [], "transports": [{"kind": kind, "channels": 2, "source": "a.log", "line": 2}]},
	"benchmarks": [object.union(run([], false), {"gpu_names": [model]})],
}

# busy are two cards of which one computes, and the other as much as that.
busy(load) := {"gpus": {"devices": [
	{"vendor": "nvidia", "address": a, "name": "NVIDIA L4", "utilization_percent": load},
	{"vendor": "nvidia", "address": b, "name": "NVIDIA L4", "utilization_percent": 100},
]}}

# unmoved is a job of which the watchdog gave up a collective.
unmoved(seq) := log([message("torch-watchdog-timeout", {"fields": {"seq": seq}})])

cards := {"gpus": {"devices": [{"address": sprintf("GPU%d", [i]), "vendor": "nvidia", "nvlinks": []} | some i in [0, 1]]}}

radeons(numbers, name) := log([message("ggml-rocm-device", {"role": "setting", "fields": {"index": i, "name": name}}) | some i in numbers])

off := variable("NCCL_P2P_DISABLE", "1")

test_signs if {
	every row in [
		[[benchmark({"wrong": 1})], ["wrong", "", ""]],
		[[latency(49206.88, true)], ["sign", "", ""]],
		[[benchmark({"complete": false})], ["sign", "", ""]],
		[[standing("x", "p2p-ipc"), {"links": {"pairs": [{"a": "GPU0", "b": "GPU1", "kind": "gpu-gpu", "nvlinks": 0}]}}], ["no-progress", "low", "possible"]],
		[[variable("GGML_CUDA_P2P", "0"), cards], ["forced", "low", "possible"]],
		[[variable("VLLM_SKIP_P2P_CHECK", "1"), cards], ["forced", "low", "possible"]],
		# The first collective never ends.
		[[log([message("torch-work-status", {"fields": {"completed": "-1"}})]), busy(3)], ["no-progress", "high", "possible"]],
		[[log([message("vllm-workers-stuck", {})]), busy(100)], ["no-progress", "high", "likely"]],
	] {
		graded(object.union_n(row[0])) == {row[1]}
	}
}

test_silent if {
	every row in [
		[benchmark({"wrong": 0})],
		[benchmark({"wrong": 1, "p2p": false})],
		[benchmark({"wrong": 1, "what": "collective"})],
		[latency(17.2, true)],
		[latency(49206.88, false)],
		# The driver refused the mapping, so that a table breaks off.
		[benchmark({"complete": false}), log([message("cuda-map-failed", {"role": "cause"})])],
		[variable("VLLM_SKIP_P2P_CHECK", "0"), cards],
		[variable("GGML_CUDA_P2P", "1"), radeons(["0", "1"], "AMD Instinct MI210")],
		[variable("GGML_CUDA_P2P", "1"), radeons(["0"], "AMD Radeon RX 7900 XTX")],
		[unmoved("77"), busy(100)],
		[log([message("vllm-workers-stuck", {})]), busy(40)],
		# Something else explains the first collective.
		[unmoved("1"), busy(3), off],
		[unmoved("1"), busy(3), variable("NCCL_P2P_LEVEL", "LOC")],
		[unmoved("1"), busy(3), {"logs": {"transports": [{"kind": "shm", "channels": 2, "source": "a.log", "line": 2}]}}],
		[unmoved("1"), busy(3), {"launches": [{"kind": "slurm", "nodes": 2, "source": "b.txt", "line": 1}]}],
		[unmoved("1"), busy(3), {"benchmarks": [run([{"bytes": 8}], true)]}],
	] {
		graded(object.union_n(row)) == set()
	}
}

test_cures_in_a_guest if {
	document := object.union(benchmark({"wrong": 1}), {"host": {"virtualization": {"guest": true}}})
	only(document).remedies == ["nccl-p2p-disable", "upgrade-driver"]
}
