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
		[[told_by_cuda("not-supported", "not-supported")], {"low"}],
		[[told_by_cuda("not-supported", "ok")], set()],
		[[shown_by_amd(true, "pcie")], set()],
		[[shown_by_amd(false, "xgmi")], set()],
	] {
		found := p2p_unsupported_gpu.findings with input as object.union_n(row[0])
		{f.severity | some f in found} == row[1]
	}
}

test_unresolvable if {
	count(p2p_unsupported_gpu.findings) == 0 with input as unasked
}
