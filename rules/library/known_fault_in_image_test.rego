package gpudoctor.rules.known_fault_in_image_test

import data.gpudoctor.rules.known_fault_in_image as r

image(kind, version, gpus) := {
	"profile": "image",
	"libraries": {"files": [{"kind": kind, "path": "/usr/lib/lib", "version": version, "found_by": "ld_cache", "loads": true}]},
	"target": {"source": "target.json", "gpus": gpus},
}

found(document) := {f.params.fault | some f in r.findings with input as document}

test_fires if {
	"before-hopper" in found(image("libnccl", "2.10.3", ["NVIDIA H100 80GB HBM3"]))
	"blackwell-shared-memory" in found(image("libnccl", "2.25.1", ["NVIDIA RTX PRO 6000 Blackwell Server Edition"]))
	"before-spark" in found(image("libnccl", "2.20.5", ["NVIDIA GB10"]))
	"radeon-several-preview" in found(image("librccl", "2.17.1", ["AMD Radeon RX 7900 XTX"]))
}

test_rocm_unresolvable if {
	some m in r.missing with input as image("librccl", "2.27.7", ["AMD Instinct MI300X"])
	m.words == "the release of ROCm is not known"
}

test_silent_for_rocm if {
	found(image("libamdhip64", "6.3.60300", ["AMD Radeon RX 9070 XT"])) == set()
	found(image("libamdhip64", "6.2.60203", ["AMD Instinct MI300X"])) == set()
}

test_unresolvable if {
	count(r.missing) == 1 with input as {"libraries": {"files": [{"kind": "libnccl", "path": "/l"}]}, "target": {"source": "t", "gpus": ["NVIDIA B200"]}}
}
