package gpudoctor.rules.p2p_unsupported_gpu_test

import data.gpudoctor.rules.p2p_unsupported_gpu

a := "0000:01:00.0"
b := "0000:02:00.0"

pair(more) := {"links": {"pairs": [object.union({"a": a, "b": b, "kind": "gpu-gpu"}, more)]}}
nvml(status) := pair({"nvlinks": 0, "p2p": {"read": status, "write": status}})
gpus(more) := {"gpus": {"devices": [object.union({"address": x, "vendor": "nvidia"}, more) | some x in [a, b]]}}
machine(more) := object.union({"host": {"virtualization": {"guest": false}}}, gpus(more))
l40s := machine({"name": "NVIDIA L40S", "mig": false})
unasked := object.union(l40s, pair({"nvlinks": 0}))
refused_by_cuda := {"transfers": {"peers": [{"source": x, "destination": y, "access": false} | some [x, y] in [[a, b], [b, a]]]}}

# What programs say when they give up.
stop(id, fields) := {"logs": {"messages": [{
	"id": id, "program": "x", "role": "cause", "text": "x", "fields": fields, "source": "app.log", "line": 3, "order": 1, "count": 1, "ranks": 1,
}]}}

no_peers := {"error": "peer access is not supported between these two devices"}

# What a program was told, where nobody tells how the GPUs are joined.
told_by_cuda(first, second) := {"gpus": {"devices": [], "p2p": [
	{"a": "GPU0", "b": "GPU1", "read": first, "write": first},
	{"a": "GPU1", "b": "GPU0", "read": second, "write": second},
]}}

shown_by_amd(accessible, link_type) := object.union(gpus({"vendor": "amd"}), pair({"accessible": accessible, "link_type": link_type}))

test_findings if {
	every row in [
		[
			[machine({"name": "NVIDIA H100", "mig": false}), nvml("not-supported"), pair({"nvlinks": 18, "p2p": {"read": "not-supported", "write": "not-supported"}})],
			{"high"},
		],
		[[unasked, refused_by_cuda], {"low"}],
		[[unasked], set()],
		# Who does not know the cards, or whether MIG splits them, cannot call it unexpected.
		[[machine({"mig": false}), nvml("not-supported")], {"low"}],
		[[machine({"name": "NVIDIA H100 PCIe", "compute_capability": "9.0"}), nvml("not-supported")], {"low"}],
		[[machine({"name": "NVIDIA L40S", "compute_capability": "8.9"}), nvml("not-supported")], {"medium"}],
		[[stop("vllm-custom-all-reduce-failed", {"error": "invalid argument"})], set()],
		[[stop("accelerate-peer-access-unsupported", {"model": "RTX 4000"})], {"stopped"}],
		[[told_by_cuda("not-supported", "not-supported")], {"low"}],
		[[told_by_cuda("not-supported", "ok")], set()],
		[[shown_by_amd(true, "pcie")], set()],
		[[shown_by_amd(false, "xgmi")], set()],
	] {
		found := p2p_unsupported_gpu.findings with input as object.union_n(row[0])
		{object.get(f, "severity", f.grade) | some f in found} == row[1]
	}
}

# A server's own all-reduce heeds no variable of NCCL.
test_advice if {
	every row in [
		[stop("accelerate-peer-access-unsupported", {"model": "RTX 4000"}), ["nccl-p2p-disable"], 0],
		[stop("trtllm-no-peer-access", {"a": "0", "b": "1"}), ["disable-custom-all-reduce", "nccl-p2p-disable"], 0],
		[stop("vllm-custom-all-reduce-failed", no_peers), ["disable-custom-all-reduce", "nccl-p2p-disable"], 0],
		[told_by_cuda("not-supported", "not-supported"), ["plan-without-peer-access"], 2],
	] {
		found := p2p_unsupported_gpu.findings with input as row[0]
		{[f.remedies, count(object.get(f, "evidence", []))] | some f in found} == {[row[1], row[2]]}
	}
}

test_unresolvable if {
	count(p2p_unsupported_gpu.findings) == 0 with input as unasked
	count(p2p_unsupported_gpu.missing) == 0 with input as shown_by_amd(false, "pcie")
}
