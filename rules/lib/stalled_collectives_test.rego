package gpudoctor.lib.stalled_collectives_test

import data.gpudoctor.lib.stalled_collectives

cards(model, load) := {"gpus": {"devices": [{"vendor": "nvidia", "address": address, "name": model, "utilization_percent": load} | some address in ["0000:17:00.0", "0000:65:00.0"]]}}

message(id, extra) := object.union({"id": id, "program": "x", "role": "category", "text": "x", "source": "a.log", "line": 9, "order": 3, "count": 1, "ranks": 1}, extra)

table(points, complete) := {"tool": "nccl-tests", "test": "all_reduce", "what": "collective", "ranks": 2, "complete": complete, "points": points, "source": "a", "line": 1}

off(name, value) := {"env": {"variables": [{"name": name, "value": value, "source": "b.txt", "line": 3, "effective": true}]}}

test_compared if {
	both := {"benchmarks": [table([], false), table([{"gbps": 12}], true)]}
	stalled_collectives.compared == {table([], false)} with input as object.union(both, off("NCCL_P2P_DISABLE", "1"))
	count(stalled_collectives.compared) == 0 with input as both
	count(stalled_collectives.compared) == 0 with input as object.union({"benchmarks": [table([], false)]}, off("NCCL_P2P_DISABLE", "1"))
}

test_on_pcie if {
	stalled_collectives.on_pcie with input as cards("NVIDIA L4", 0)
	stalled_collectives.on_pcie with input as {"links": {"pairs": [{"a": "GPU0", "b": "GPU1", "kind": "gpu-gpu", "nvlinks": 0}]}}
	not stalled_collectives.on_pcie with input as cards("NVIDIA A100-SXM4-80GB", 0)
	not stalled_collectives.on_pcie with input as {}
}

test_not_on_pcie_alone if {
	every extra in [
		{"links": {"pairs": [{"a": "GPU0", "b": "GPU1", "kind": "gpu-gpu", "nvlinks": 4}]}},
		{"gpus": {"devices": [{"vendor": "nvidia", "address": "0000:17:00.0", "name": "NVIDIA L4", "nvlinks": [{"active": true}]}]}},
		{"gpus": {"devices": [{"vendor": "amd", "address": "0000:17:00.0", "name": "NVIDIA L4"}]}},
		{"launches": [{"kind": "slurm", "nodes": 2, "source": "b.txt", "line": 1}]},
	] {
		not stalled_collectives.on_pcie with input as object.union(cards("NVIDIA L4", 0), extra)
	}
}

geforce := object.union(cards("NVIDIA GeForce RTX 4090", 0), {"logs": {"messages": [], "communicators": [{"library": "nccl", "ranks": 2, "source": "nccl.log", "line": 10}]}})

test_ended_early if {
	count(stalled_collectives.ended_early) == 1 with input as geforce
	count(stalled_collectives.ended_early) == 0 with input as object.union(geforce, cards("NVIDIA GeForce RTX 3090", 0))
	count(stalled_collectives.ended_early) == 0 with input as object.union(geforce, off("NCCL_P2P_DISABLE", "1"))
	count(stalled_collectives.ended_early) == 0 with input as object.union(geforce, {"logs": {"messages": [message("x", {"role": "cause"})]}})
}

test_excluded if {
	stalled_collectives.excluded with input as {"logs": {"messages": [message("x", {"role": "cause"})]}}
	stalled_collectives.excluded with input as {"logs": {"transports": [{"kind": "shm"}]}}
	stalled_collectives.excluded with input as {"benchmarks": [table([{"gbps": 12}], true)]}
	not stalled_collectives.excluded with input as {"logs": {"messages": [message("x", {})], "transports": [{"kind": "p2p-direct"}]}}
}

said(id, fields) := {"logs": {"messages": [message(id, {"fields": fields})]}}

test_unmoved if {
	count(stalled_collectives.unmoved) == 1 with input as said("torch-watchdog-timeout", {"seq": "1"})
	count(stalled_collectives.unmoved) == 0 with input as said("torch-watchdog-timeout", {"seq": "77"})
	count(stalled_collectives.unmoved) == 1 with input as said("torch-work-status", {"completed": "-1"})
	workers := said("vllm-workers-stuck", {})
	count(stalled_collectives.unmoved) == 1 with input as object.union(workers, cards("NVIDIA L4", 100))
	count(stalled_collectives.unmoved) == 0 with input as object.union(workers, cards("NVIDIA L4", 40))
}

test_spinning if {
	stalled_collectives.spinning with input as cards("NVIDIA L4", 100)
	not stalled_collectives.spinning with input as {"gpus": {"devices": [{"utilization_percent": 100}]}}
}

launch := {"launches": [{"kind": "command", "variables": {"NCCL_P2P_DISABLE": "1"}, "source": "b.txt", "line": 3}]}

log(messages) := {"logs": {"messages": messages}}

test_served_then if {
	ready := message("server-ready", {"role": "setting", "source": "b.txt", "line": 5})
	stalled_collectives.served_then with input as object.union(launch, log([ready]))
	not stalled_collectives.served_then with input as object.union(launch, log([object.union(ready, {"source": "a.log"})]))
	failed := message("x", {"source": "b.txt", "line": 7})
	not stalled_collectives.served_then with input as object.union(launch, log([ready, failed]))
}

test_kept_off if {
	stalled_collectives.kept_off with input as off("NCCL_P2P_LEVEL", "LOC")
	stalled_collectives.kept_off with input as off("NCCL_P2P_DISABLE", "1")
	not stalled_collectives.kept_off with input as off("NCCL_P2P_DISABLE", "0")
	not stalled_collectives.kept_off with input as object.union(off("NCCL_P2P_DISABLE", "1"), launch)
}
