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

only(document) := f if {
	fs := rccl_p2p_transport.findings with input as document
	count(fs) == 1
	some f in fs
}

test_needed if {
	alone := {"gpus": {"devices": cards, "p2p": null}, "logs": {"messages": [sentence]}}
	nvidia := {"devices": [object.union(g, {"vendor": "nvidia"}) | some g in cards], "p2p": matrix}
	f := only(object.remove(story, ["benchmarks"]))
	[f.severity, f.confidence, f.remedies[0]] == ["critical", "possible", "nccl-p2p-disable"]
	only(alone).severity == "high"
	every document in [
		object.union(object.remove(story, ["gpus"]), {"gpus": nvidia, "logs": {"messages": [object.union(sentence, {"fields": {"gpu": ""}})]}}),
		object.union(story, {"benchmarks": [object.union(copy, {"wrong": 1})]}),
	] {
		count(rccl_p2p_transport.findings) == 0 with input as document
	}
}

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
ended := {"messages": [unmapped], "communicators": [object.union(started, {"completed": 2})], "transports": [channel]}

test_seen if {
	only(seen("ok", ended)).confidence == "likely"
	other := {"id": "oom", "program": "hip", "role": "cause", "text": "out of memory", "source": "rccl.log", "line": 12, "order": 1, "fields": {}}
	every document in [
		seen("ok", object.union(stuck.logs, {"transports": [object.union(channel, {"kind": "shm"})]})),
		object.union(stuck, {"env": {"variables": [{"name": "NCCL_P2P_DISABLE", "value": "1", "source": "environment", "effective": true}]}}),
		seen("ok", object.union(stuck.logs, {"messages": [other]})),
	] {
		count(rccl_p2p_transport.findings) == 0 with input as document
	}
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
	f := only(document)
	startswith(f.steps[0].look, "The versions of ROCm")
	count([s | some s in f.steps; endswith(s.look, "The facts support this")]) == 6
	healthy := object.union(document, {
		"iommu": {"mode": "translated"},
		"gpus": {"devices": [object.union(g, {"visible_memory_bytes": 34342961152}) | some g in r9700], "p2p": matrix, "amd": {"kfd": "ok", "kernel_config": {"CONFIG_HSA_AMD_P2P": "y"}, "parameters": {"pcie_p2p": "Y"}}},
		"pci": {"devices": [{"address": bridge, "kind": "bridge", "vendor": "0x1022", "extended": true}]},
		"software": [{"name": "rocm", "version": "6.4.0", "manager": "log", "source": "v", "line": 1}],
		"env": {"variables": []},
	})
	only(healthy).about.ruled_out == ["the IOMMU", "ACS", "the BAR", "the kernel's options"]
}

test_instinct_wants_pass_through if {
	mi := [object.union(g, {"name": "AMD Instinct MI210", "architecture": "gfx90a"}) | some g in cards]
	base := {"gpus": {"devices": mi, "p2p": matrix}, "benchmarks": [copy], "logs": {"messages": [object.union(sentence, {"fields": {"gpu": "MI210"}})]}}
	only(object.union(base, {"iommu": {"mode": "translated"}})).remedies[1] == "iommu-pt"
	not "iommu-pt" in only(object.union(base, {"iommu": {"mode": "off"}})).remedies
	only(object.union(base, {"gpus": {"amd": {"kfd": "ok", "parameters": {"pcie_p2p": "N"}}}})).remedies[1] == "enable-amd-p2p"
}

test_unresolvable if {
	count(rccl_p2p_transport.missing) == 1 with input as {}
	count(rccl_p2p_transport.missing) == 1 with input as object.remove(stuck, ["transfers"])
}

test_fires_on_access_in_one_direction if {
	refused := {"a": b, "b": a, "read": "not-supported", "write": "not-supported"}
	probed := {"api": "hip", "outcome": "ok", "peers": [{"source": a, "destination": b, "access": false}, {"source": b, "destination": a, "access": true}]}
	only({"gpus": {"devices": cards, "p2p": [matrix[0], refused]}}).about.pairs == "0000:03:00.0 -> 0000:06:00.0"
	only({"gpus": {"devices": cards, "p2p": null}, "transfers": probed}).grade == "lopsided"
	both := {"gpus": {"devices": cards, "p2p": [object.union(refused, {"a": a, "b": b}), refused]}, "links": {"pairs": [pair]}}
	count(rccl_p2p_transport.findings) == 0 with input as both
}
