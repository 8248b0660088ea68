package gpudoctor.rules.p2p_unsupported_gpu_test

import data.gpudoctor.rules.p2p_unsupported_gpu

a := "0000:01:00.0"
b := "0000:02:00.0"

pair(status) := {"a": a, "b": b, "kind": "gpu-gpu", "nvlinks": 0, "p2p": {"read": status, "write": status}}

machine(name, status) := {
	"host": {"virtualization": {"guest": false}},
	"gpus": {"devices": [{"address": x, "vendor": "nvidia", "name": name, "mig": false} | some x in [a, b]]},
	"links": {"pairs": [pair(status)]},
}

cuda(answer) := {"transfers": {"peers": [
	{"source": a, "destination": b, "access": answer},
	{"source": b, "destination": a, "access": answer},
]}}

severities(found) := {f.severity | some f in found}

test_nvlink_should_be_offered if {
	joined := object.union(machine("NVIDIA H100", "not-supported"), {"links": {"pairs": [object.union(pair("not-supported"), {"nvlinks": 18})]}})
	severities(p2p_unsupported_gpu.findings) == {"high"} with input as joined
}

test_cuda_contradicts_nvml if {
	some f in p2p_unsupported_gpu.findings with input as object.union(machine("NVIDIA L40S", "ok"), cuda(false))
	contains(f.message, "although NVML says OK")
}

test_cuda_alone if {
	unasked := object.union(machine("NVIDIA L40S", "ok"), {"links": {"pairs": [object.remove(pair("ok"), ["p2p"])]}})
	some f in p2p_unsupported_gpu.findings with input as object.union(unasked, cuda(false))
	f.severity == "low"
}

test_unresolvable if {
	unasked := object.union(machine("NVIDIA L40S", "ok"), {"links": {"pairs": [object.remove(pair("ok"), ["p2p"])]}})
	count(p2p_unsupported_gpu.findings) == 0 with input as unasked
}

# Who does not know the cards, or whether MIG splits them, cannot call it unexpected.
test_unresolvable_cards if {
	bare := machine("NVIDIA L40S", "not-supported")
	unnamed := object.union(bare, {"gpus": {"devices": [{"address": x, "vendor": "nvidia", "mig": false} | some x in [a, b]]}})
	severities(p2p_unsupported_gpu.findings) == {"low"} with input as unnamed
	unasked := object.union(bare, {"gpus": {"devices": [{"address": x, "vendor": "nvidia", "name": "NVIDIA H100 PCIe", "compute_capability": "9.0"} | some x in [a, b]]}})
	severities(p2p_unsupported_gpu.findings) == {"low"} with input as unasked
	ada := object.union(bare, {"gpus": {"devices": [{"address": x, "vendor": "nvidia", "name": "NVIDIA L40S", "compute_capability": "8.9"} | some x in [a, b]]}})
	severities(p2p_unsupported_gpu.findings) == {"medium"} with input as ada
}

# What programs say when they give up.

stop(id, fields) := {"logs": {"messages": [{
	"id": id, "program": "x", "role": "cause", "text": "x", "fields": fields, "source": "app.log", "line": 3, "order": 1, "count": 1, "ranks": 1,
}]}}

test_fires_where_a_program_gives_up if {
	found := p2p_unsupported_gpu.findings with input as stop("accelerate-peer-access-unsupported", {"model": "RTX 4000"})
	some f in found
	f.severity == "critical"
	f.remedies == ["nccl-p2p-disable"]
	contains(f.message, "accelerate launch")
	named := object.union(stop("cuda-peer-unsupported", {}), {"gpus": {"devices": [{"address": "GPU0", "name": "Tesla P40"}]}})
	some g in p2p_unsupported_gpu.findings with input as named
	contains(g.message, "(Tesla P40)")
	contains(g.message, "without checking")
}

test_silent_on_other_complaints if {
	count(p2p_unsupported_gpu.findings) == 0 with input as stop("vllm-custom-all-reduce-failed", {"error": "invalid argument"})
}

# What a program was told, where nobody tells how the GPUs are joined.
told_by_cuda(first, second) := {"gpus": {"devices": [], "p2p": [
	{"a": "GPU0", "b": "GPU1", "read": first, "write": first},
	{"a": "GPU1", "b": "GPU0", "read": second, "write": second},
]}}

test_takes_the_word_of_a_program if {
	some f in p2p_unsupported_gpu.findings with input as told_by_cuda("not-supported", "not-supported")
	f.severity == "low"
	f.remedies == ["nccl-p2p-disable"]
	count(f.evidence) == 2
}

test_leaves_a_program_with_some_access_alone if {
	count(p2p_unsupported_gpu.findings) == 0 with input as told_by_cuda("not-supported", "ok")
}

# What AMD's tools show.
shown_by_amd(accessible, link_type) := {
	"gpus": {"devices": [{"address": address, "vendor": "amd"} | some address in ["0000:05:00.0", "0000:85:00.0"]]},
	"links": {"pairs": [{"a": "0000:05:00.0", "b": "0000:85:00.0", "kind": "gpu-gpu", "accessible": accessible, "link_type": link_type}]},
}

test_tells_of_amd_gpus_that_do_not_reach_each_other if {
	count(p2p_unsupported_gpu.missing) == 0 with input as shown_by_amd(false, "pcie")
	count(p2p_unsupported_gpu.findings) == 0 with input as shown_by_amd(true, "pcie")
	count(p2p_unsupported_gpu.findings) == 0 with input as shown_by_amd(false, "xgmi")
}

# A server's own all-reduce heeds no variable of NCCL.
test_names_the_all_reduce_that_stops if {
	every m in [stop("trtllm-no-peer-access", {"a": "0", "b": "1"}), stop("vllm-custom-all-reduce-failed", {"error": "peer access is not supported between these two devices"})] {
		some f in p2p_unsupported_gpu.findings with input as m
		f.remedies == ["disable-custom-all-reduce", "nccl-p2p-disable"]
	}
}
