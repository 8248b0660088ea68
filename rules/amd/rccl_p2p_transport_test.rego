package gpudoctor.rules.rccl_p2p_transport_test

import data.gpudoctor.rules.rccl_p2p_transport

a := "0000:03:00.0"

b := "0000:06:00.0"

cards := [{"address": a, "vendor": "amd"}, {"address": b, "vendor": "amd"}]

sentence := {
	"id": "prose-p2p-off-needed", "program": "people", "role": "category", "fields": {"gpu": "R9700"},
	"text": "our R9700 need NCCL_P2P_DISABLE=1", "source": "notes.md", "line": 3, "order": 0,
}

matrix := [{"a": a, "b": b, "read": "ok", "write": "ok"}, {"a": b, "b": a, "read": "ok", "write": "ok"}]

pair := {"a": a, "b": b, "kind": "gpu-gpu", "bridges": null, "link_type": "pcie", "accessible": true, "dma": true}

copy := {"tool": "own program", "test": "a copy between GPUs", "what": "copy", "complete": true, "points": [], "source": "notes.md", "line": 40}

# story is what the notes of one machine tell.
story := {
	"gpus": {"devices": cards, "p2p": matrix},
	"links": {"pairs": [pair]},
	"benchmarks": [copy],
	"logs": {"messages": [sentence]},
}

found(document) := {[f.severity, f.confidence, f.remedies[0]] | some f in rccl_p2p_transport.findings with input as document}

message(document) := concat("", {f.message | some f in rccl_p2p_transport.findings with input as document})

cures(document) := [r | some f in rccl_p2p_transport.findings with input as document; some r in f.remedies]

test_fires_with_less_known if {
	found(object.remove(story, ["benchmarks"])) == {["critical", "possible", "nccl-p2p-disable"]}
	found({"gpus": {"devices": cards, "p2p": null}, "benchmarks": [copy], "logs": {"messages": [sentence]}}) == {["critical", "possible", "nccl-p2p-disable"]}
	alone := {"gpus": {"devices": cards, "p2p": null}, "logs": {"messages": [sentence]}}
	found(alone) == {["high", "possible", "nccl-p2p-disable"]}
	contains(message(alone), "is not known")
}

test_silent_on_nvidia if {
	nvidia := [object.union(g, {"vendor": "nvidia"}) | some g in cards]
	found(object.union(object.remove(story, ["gpus"]), {"gpus": {"devices": nvidia, "p2p": matrix}, "logs": {"messages": [object.union(sentence, {"fields": {"gpu": ""}})]}})) == set()
}

test_silent_where_copies_fail if found(object.union(story, {"benchmarks": [object.union(copy, {"wrong": 1})]})) == set()

transfer(source, destination, outcome) := {"test": "copy", "source": source, "destination": destination, "outcome": outcome}

# seen is a machine that was probed through HIP, and a log of RCCL on it.
seen(outcome, logs) := {
	"gpus": {"devices": cards, "p2p": null, "amd": {
		"kfd": "ok", "rocm": "6.4.1", "parameters": {"pcie_p2p": "Y"},
		"kernel_config": {"CONFIG_HSA_AMD_P2P": "y", "CONFIG_PCI_P2PDMA": "y"},
	}},
	"transfers": {
		"mode": "quick", "api": "hip", "outcome": "ok",
		"peers": [{"source": a, "destination": b, "access": true}, {"source": b, "destination": a, "access": true}],
		"transfers": [transfer(a, b, outcome), transfer(b, a, outcome)],
	},
	"logs": logs,
}

channel := {"kind": "p2p-ipc", "channels": 4, "a": 0, "b": 1, "source": "rccl.log", "line": 9}

started := {"library": "rccl", "ranks": 2, "started": 2, "completed": 0, "source": "rccl.log", "line": 2}

unmapped := {
	"id": "hip-ipc-failed", "program": "hip", "role": "category", "fields": {}, "order": 2,
	"text": "hipIpcOpenMemHandle failed: invalid argument", "source": "rccl.log", "line": 12,
}

stuck := seen("ok", {"messages": [], "communicators": [started], "transports": [channel]})

test_fires_on_a_log_that_breaks if {
	log := {"messages": [unmapped], "communicators": [object.union(started, {"completed": 2})], "transports": [channel]}
	found(seen("ok", log)) == {["critical", "likely", "nccl-p2p-disable"]}
	some f in rccl_p2p_transport.findings with input as seen("ok", log)
	{m.order | some m in f.messages} == {2}
	faulted := {"messages": [object.union(unmapped, {"id": "rocr-memory-fault"})], "communicators": [object.union(started, {"completed": 2})], "transports": [channel]}
	found(seen("ok", faulted)) == {["critical", "possible", "nccl-p2p-disable"]}
}

test_silent_where_rccl_runs if {
	log := {"messages": [], "communicators": [object.union(started, {"completed": 2})], "transports": [channel]}
	found(seen("ok", log)) == set()
	found(seen("ok", {"messages": [], "communicators": [started], "transports": [object.union(channel, {"kind": "shm"})]})) == set()
	found(seen("corrupt", {"messages": [], "communicators": [started], "transports": [channel]})) == set()
	found(object.union(stuck, {"env": {"variables": [{"name": "NCCL_P2P_DISABLE", "value": "1", "source": "environment", "effective": true}]}})) == set()
	told := {"id": "oom", "program": "hip", "role": "cause", "text": "out of memory", "source": "rccl.log", "line": 12, "order": 1, "fields": {}}
	found(seen("ok", {"messages": [told], "communicators": [started], "transports": [channel]})) == set()
}

# What the facts speak for stands before what is open, and what they rule out is not advised.
test_weighs_the_candidates if {
	r9700 := [
		{"address": a, "vendor": "amd", "name": "AMD Radeon AI PRO R9700", "architecture": "gfx1201", "memory_bytes": 34342961152, "visible_memory_bytes": 268435456},
		{"address": b, "vendor": "amd", "name": "AMD Radeon AI PRO R9700", "architecture": "gfx1201", "memory_bytes": 34342961152, "visible_memory_bytes": 34342961152},
	]
	bridge := "0000:02:00.0"
	document := {
		"gpus": {"devices": r9700, "p2p": matrix, "amd": {"kfd": "ok", "kernel_config": {"CONFIG_HSA_AMD_P2P": "n"}}},
		"pci": {"devices": [{"address": bridge, "kind": "bridge", "vendor": "0x1022", "extended": true, "acs": {"capability": [], "control": ["ReqRedir"]}}]},
		"links": {"pairs": [object.union(pair, {"bridges": [bridge]})]},
		"iommu": {"mode": "passthrough"},
		"software": [{"name": "rocm", "version": "7.2.1", "manager": "log", "source": "v", "line": 1}],
		"env": {"variables": [{"name": "HSA_ENABLE_SDMA", "value": "0", "source": "environment", "effective": true}]},
		"benchmarks": [object.union(copy, {"wrong": 0})],
		"logs": {"messages": [sentence]},
	}
	cures(document) == ["nccl-p2p-disable", "upgrade-rocm", "iommu-remap", "disable-acs", "enable-rebar", "enable-amd-p2p", "hsa-env"]
	contains(looks(document)[0], "A known bug of ROCm 7.2.1")
	count([l | some l in looks(document); endswith(l, "The facts support this")]) == 6

	healthy := object.union(document, {
		"iommu": {"mode": "translated"},
		"gpus": {"devices": [object.union(g, {"visible_memory_bytes": 34342961152}) | some g in r9700], "p2p": matrix, "amd": {"kfd": "ok", "kernel_config": {"CONFIG_HSA_AMD_P2P": "y"}, "parameters": {"pcie_p2p": "Y"}}},
		"pci": {"devices": [{"address": bridge, "kind": "bridge", "vendor": "0x1022", "extended": true}]},
		"software": [{"name": "rocm", "version": "6.4.0", "manager": "log", "source": "v", "line": 1}],
		"env": {"variables": []},
	})
	cures(healthy) == ["nccl-p2p-disable", "upgrade-rocm", "hsa-env"]
	contains(message(healthy), "Ruled out here: the IOMMU, ACS, the BAR, the kernel's options")
}

test_instinct_wants_pass_through if {
	mi := [object.union(g, {"name": "AMD Instinct MI210", "architecture": "gfx90a"}) | some g in cards]
	base := {"gpus": {"devices": mi, "p2p": matrix}, "benchmarks": [copy], "logs": {"messages": [object.union(sentence, {"fields": {"gpu": "MI210"}})]}}
	"iommu-pt" in cures(base)
	not "iommu-remap" in cures(base)
	cures(object.union(base, {"iommu": {"mode": "translated"}}))[1] == "iommu-pt"
	not "iommu-pt" in cures(object.union(base, {"iommu": {"mode": "off"}}))
	off := object.union(base, {"gpus": {"devices": mi, "p2p": matrix, "amd": {"kfd": "ok", "parameters": {"pcie_p2p": "N"}}}})
	cures(off)[1] == "enable-amd-p2p"
}

test_unresolvable if {
	count(rccl_p2p_transport.missing) == 1 with input as {}
	count(rccl_p2p_transport.missing) == 0 with input as story
	count(rccl_p2p_transport.missing) == 1 with input as object.remove(stuck, ["transfers"])
	count(rccl_p2p_transport.not_applicable) == 1 with input as {"gpus": {"devices": [{"address": a, "vendor": "nvidia"}]}}
}

test_fires_on_access_in_one_direction if {
	one_way := {"gpus": {"devices": cards, "p2p": [{"a": a, "b": b, "read": "ok", "write": "ok"}, {"a": b, "b": a, "read": "not-supported", "write": "not-supported"}]}}
	found(one_way) == {["high", "likely", "nccl-p2p-disable"]}
	contains(message(one_way), "0000:03:00.0 -> 0000:06:00.0, and not back")
	probed := {"gpus": {"devices": cards, "p2p": null}, "transfers": {"api": "hip", "outcome": "ok", "peers": [{"source": a, "destination": b, "access": false}, {"source": b, "destination": a, "access": true}]}}
	found(probed) == {["high", "likely", "nccl-p2p-disable"]}
	found({"gpus": {"devices": cards, "p2p": matrix}}) == set()
	refused := [{"a": a, "b": b, "read": "not-supported", "write": "not-supported"}, {"a": b, "b": a, "read": "not-supported", "write": "not-supported"}]
	found({"gpus": {"devices": cards, "p2p": refused}, "links": {"pairs": [pair]}}) == set()
}

# looks are what a finding wants looked at.
looks(document) := [s.look |
	some f in rccl_p2p_transport.findings with input as document
	some s in f.steps
]
