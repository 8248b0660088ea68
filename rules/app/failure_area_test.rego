package gpudoctor.rules.failure_area_test

import data.gpudoctor.rules.failure_area

said(id, role, order, place) := {
	"id": id, "program": "nccl", "role": role, "text": sprintf("%s %d", [role, order]), "place": place,
	"source": "a.log", "line": order + 1, "order": order, "count": 1, "ranks": 1,
}

log(messages) := {"logs": {"messages": messages}}

shm := {"library": "nccl", "file": "misc/shmutils.cc", "area": "shm"}

of(causes) := [c.cause | some c in causes]

# A code with one meaning stands alone; one with several comes before the area's.
test_fires_code if {
	full := object.union(shm, {"codes": [{"space": "errno", "number": 24, "name": "EMFILE"}]})
	some f in failure_area.findings with input as log([said("x", "category", 0, full)])
	of(f.candidates) == ["process-limits"]
	f.confidence == "likely"
	f.about.codes == ["EMFILE"]
	unwritable := object.union(shm, {"codes": [{"space": "errno", "number": 30, "name": "EROFS"}]})
	some g in failure_area.findings with input as log([said("x", "category", 0, unwritable)])
	of(g.candidates) == ["shm-too-small", "ipc-namespace"]
	g.candidates[0].for == "the error is EROFS"
}

test_fires_code_without_area if {
	some f in failure_area.findings with input as log([said("x", "category", 0, {"codes": [{"space": "cuda", "number": 101, "name": "INVALID_DEVICE"}]})])
	of(f.candidates) == ["gpu-visibility"]
	[f.about.program, f.about.codes] == [[], ["INVALID_DEVICE"]]
}

test_fires_component_before_vague_code if {
	place := {"library": "nccl", "file": "transport/nvls.cc", "area": "nvls", "codes": [{"space": "cuda", "number": 401, "name": "ILLEGAL_STATE"}]}
	some f in failure_area.findings with input as log([said("x", "category", 0, place)])
	of(f.candidates) == ["nvls-multicast", "fabric-manager"]
	f.confidence == "possible"
}

test_fires_variable if {
	some f in failure_area.findings with input as log([said("nccl-warning", "warning", 0, {"library": "nccl", "file": "init.cc", "area": "general", "variables": ["NCCL_ALGO"]})])
	of(f.candidates) == ["env-misconfig"]
	f.params.variable == "NCCL_ALGO"
	f.severity == "medium"
	[f.about.file, f.about.variables] == ["init.cc", ["NCCL_ALGO"]]
}

test_fires_setting if {
	place := {"library": "nccl", "file": "graph/xml.cc", "area": "topology"}
	facts := object.union(log([said("nccl-warning", "warning", 0, place)]), {"env": {"variables": [{"name": "NCCL_TOPO_FILE", "value": "/a.xml"}, {"name": "NCCL_ALGO", "value": "Ring"}]}})
	some f in failure_area.findings with input as facts
	f.candidates[0] == {"cause": "env-misconfig", "for": "NCCL_TOPO_FILE=/a.xml is set, and that code uses it"}
	f.params.variable == "NCCL_TOPO_FILE"
	count(f.candidates) == 2
}

test_fires_names if {
	some library, program in {"ucx": "UCX", "ofi": "The plugin for libfabric", "container-toolkit": "The NVIDIA container toolkit"}
	some f in failure_area.findings with input as log([said("x", "category", 0, {"library": library, "file": "x", "area": "socket"})])
	f.about.program == [program]
	rccl := object.union(said("x", "category", 0, {"library": "nccl", "area": "socket"}), {"program": "rccl"})
	some g in failure_area.findings with input as log([rccl])
	[g.about.program, g.about.area] == [["RCCL"], ["TCP connections between ranks"]]
}

speaks := {"texts": [{"name": "issue.md", "topics": [{"cause": "mig-mode", "words": "MIG", "line": 3, "count": 6}, {"cause": "oom", "words": "OOM", "line": 9, "count": 1}]}]}

# What somebody writes about is listed where nothing else is, and is a note unless something failed.
test_fires_topic if {
	some f in failure_area.findings with input as speaks
	of(f.candidates) == ["mig-mode", "oom"]
	[f.id, f.severity, f.evidence[0].source] == ["topic", "low", "issue.md:3"]
	some g in failure_area.findings with input as object.union(speaks, log([said("x", "category", 0, {})]))
	[g.id, g.severity] == ["topic", "high"]
	some h in failure_area.findings with input as object.union(speaks, log([said("x", "category", 0, {"library": "nccl", "file": "transport/nvls.cc", "area": "nvls"})]))
	h.candidates[0].cause == "nvls-multicast"
}
