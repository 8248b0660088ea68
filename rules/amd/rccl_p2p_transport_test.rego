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
	f.confidence == "possible"
	only(alone).confidence == "possible"
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

test_unresolvable if {
	rccl_p2p_transport.asks == {"transfers.transfers"} with input as object.remove(stuck, ["transfers"])
}

test_fires_on_access_in_one_direction if {
	refused := {"a": b, "b": a, "read": "not-supported", "write": "not-supported"}
	probed := {"api": "hip", "outcome": "ok", "peers": [{"source": a, "destination": b, "access": false}, {"source": b, "destination": a, "access": true}]}
	only({"gpus": {"devices": cards, "p2p": [matrix[0], refused]}}).about.pairs == {"0000:03:00.0 -> 0000:06:00.0"}
	only({"gpus": {"devices": cards, "p2p": null}, "transfers": probed}).grade == "lopsided"
	both := {"gpus": {"devices": cards, "p2p": [object.union(refused, {"a": a, "b": b}), refused]}, "links": {"pairs": [pair]}}
	count(rccl_p2p_transport.findings) == 0 with input as both
}
