package gpudoctor.rules.control_experiment_test

import data.gpudoctor.rules.control_experiment

run(variables, outcome, more) := object.union(
	{
		"by": "command", "source": "a.txt", "line": 1, "shown": 9, "variables": variables, "outcome": outcome,
		"why": "it did so", "told": true,
	},
	more,
)

pair(kind, name, a, b) := {"runs": [a, b], "comparisons": [object.union({"kind": kind, "a": 0, "b": 1}, {true: {"name": name}, false: {}}[name != ""])]}

with_and_without(name, value, without, with_it) := pair("variable", name, run({}, without, {}), run({name: value}, with_it, {}))

causes(found) := {f.candidates[0].cause | some f in found}

found(facts) := fs if fs := control_experiment.findings with input as facts

test_fires_for_each_switch if {
	every t in [
		["NCCL_P2P_DISABLE", "1", "p2p-broken-platform"], ["NCCL_P2P_LEVEL", "PHB", "p2p-broken-platform"],
		["NCCL_SHM_DISABLE", "1", "shm-too-small"], ["NCCL_IB_DISABLE", "1", "ib-port-down"],
		["NCCL_NET_GDR_LEVEL", "0", "gdr-topology"], ["NCCL_NET_GDR_READ", "0", "gdr-topology"],
		["NCCL_NVLS_ENABLE", "0", "nvls-multicast"], ["NCCL_CUMEM_ENABLE", "0", "cumem-host"],
		["NCCL_CUMEM_HOST_ENABLE", "0", "cumem-host"], ["NCCL_SOCKET_IFNAME", "eth0", "wrong-nic"],
		["NCCL_ALGO", "Ring", "nccl-bug"], ["NCCL_PROTO", "Simple", "nccl-bug"],
		["iommu", "pt", "iommu-translation"], ["acs", "off", "acs-redirect"],
	] {
		every bad in ["hung", "failed"] {
			fs := found(with_and_without(t[0], t[1], bad, "ok"))
			causes(fs) == {t[2]}
			{f.confidence | some f in fs} == {"confirmed"}
			{f.severity | some f in fs} == {"critical"}
		}
	}
}

# told is a text that says how two runs ended.
told(kind, name, a, b) := pair(kind, name, object.union(a, {"by": "text", "told": false}), object.union(b, {"by": "text", "told": false}))

test_fires_for_what_somebody_writes if {
	every t in [["NCCL_P2P_DISABLE", "1", "p2p-broken-platform"], ["acs", "off", "acs-redirect"], ["ipc", "host", "shm-too-small"]] {
		fs := found(told("variable", t[0], run({}, "hung", {}), run({t[0]: t[1]}, "ok", {})))
		causes(fs) == {t[2]}
		{[f.severity, f.confidence] | some f in fs} == {["high", "possible"]}
	}
	every t in [["NCCL_DEBUG", "INFO"], ["NCCL_P2P_DISABLE", "0"]] {
		count(found(told("variable", t[0], run({}, "hung", {}), run({t[0]: t[1]}, "ok", {})))) == 0
	}
}

test_fires_for_another_version_that_works if {
	every t in [
		["nccl", "2.21.5", "2.20.5", "nccl-bug", "upgrade-nccl", "likely"], ["nccl", "2.19.3", "2.20.5", "nccl-bug", "downgrade-nccl", "likely"],
		["nccl", "2.19.3", "another", "nccl-bug", "upgrade-nccl", "possible"], ["rccl", "2.22.3", "another", "rccl-bug", "upgrade-rocm", "possible"],
	] {
		facts := told("version", t[0], run({}, "failed", {"library": t[0], "version": t[2]}), run({}, "ok", {"library": t[0], "version": t[1]}))
		logged := run({}, "failed", {"library": t[0], "version": "2.20.5"}) # A log shows which one failed.
		fs := found(object.union(facts, {"runs": array.concat(facts.runs, [logged])}))
		causes(fs) == {t[3]}
		{[f.remedies, f.confidence] | some f in fs} == {[[t[4]], t[5]]}
	}
}

test_says_rccl_for_amd if {
	facts := pair("variable", "NCCL_PROTO", run({}, "hung", {"library": "rccl"}), run({"NCCL_PROTO": "Simple"}, "ok", {"library": "rccl"}))
	causes(found(facts)) == {"rccl-bug"}
	{f.remedies[0] | some f in found(facts)} == {"upgrade-rocm"}
}

test_fires_for_roce if {
	facts := object.union(with_and_without("NCCL_IB_DISABLE", "1", "hung", "ok"), {"nics": {"rdma": [{"device": "mlx5_0", "link_layer": "Ethernet"}]}})
	causes(found(facts)) == {"roce-gid"}
}

test_fires_for_twice_the_bandwidth if {
	fs := found(pair("variable", "iommu", run({}, "ok", {"gbps": 6}), run({"iommu": "pt"}, "ok", {"gbps": 12})))
	causes(fs) == {"iommu-translation"}
	{f.severity | some f in fs} == {"medium"}
}

test_confidence if {
	every t in [[true, false, "confirmed"], [false, false, "likely"], [true, true, "possible"]] {
		bad := run({}, "failed", {"told": t[0], "stated": t[1]})
		{f.confidence | some f in found(pair("variable", "NCCL_P2P_DISABLE", bad, run({"NCCL_P2P_DISABLE": "1"}, "ok", {})))} == {t[2]}
	}
}

on(devices, outcome) := run({}, outcome, {"devices": devices, "line": to_number(devices[0])})

sets(runs) := {"runs": runs, "comparisons": [{"kind": "devices", "a": i, "b": j} | some i, _ in runs; some j, _ in runs; i < j]}

test_fires_for_a_gpu if {
	fs := found(sets([on(["0", "1"], "ok"), on(["0", "3"], "hung"), on(["1", "3"], "hung"), on(["1", "2"], "ok")]))
	causes(fs) == {"gpu-fault"}
	{f.subject | some f in fs} == {"GPU 3"}
	causes(found(sets([on(["0"], "ok"), on(["2"], "failed")]))) == {"gpu-fault"}
}

test_fires_for_a_pair if {
	facts := object.union(sets([on(["0", "1"], "ok"), on(["2", "3"], "hung")]), {"gpus": {"devices": [{"address": "0000:41:00.0", "index": 2}, {"address": "0000:61:00.0", "index": 0}]}})
	fs := found(facts)
	causes(fs) == {"p2p-broken-platform"}
	{f.subject | some f in fs} == {"GPUs 2, 3"}
	{a | some f in fs; some a in f.affects} == {"0000:41:00.0"}
}

test_fires_for_more if {
	fs := found(pair("gpus", "", run({}, "ok", {"gpus": 2}), run({}, "hung", {"gpus": 4})))
	causes(fs) == {"p2p-broken-platform"}
	more := found(pair("nodes", "", run({}, "ok", {"gpus": 8, "nodes": 1}), run({}, "failed", {"gpus": 16, "nodes": 2})))
	causes(more) == {"wrong-nic"}
}

test_fires_for_wrong_results_of_several if {
	fs := found(pair("gpus", "", run({}, "ok", {"gpus": 1}), run({}, "failed", {"gpus": 2, "wrong": true})))
	causes(fs) == {"p2p-broken-platform"}
}

# NVLink between hosts, and multicast, need what cuMem allocates: of two switches that help, the one that turns less off.
test_fires_for_the_narrower_switch if {
	ran := [run({}, "failed", {}), run({"NCCL_MNNVL_ENABLE": "0"}, "ok", {}), run({"NCCL_CUMEM_ENABLE": "0"}, "ok", {})]
	differ := [{"kind": "variable", "name": "NCCL_MNNVL_ENABLE", "a": 0, "b": 1}, {"kind": "variable", "name": "NCCL_CUMEM_ENABLE", "a": 0, "b": 2}]
	causes(found({"runs": ran, "comparisons": differ})) == {"imex"}
}

test_fires_for_a_version if {
	every t in [["2.18.3", "2.27.3", "downgrade-nccl"], ["2.27.3", "2.18.3", "upgrade-nccl"]] {
		fs := found(pair("version", "nccl", run({}, "ok", {"version": t[0]}), run({}, "hung", {"version": t[1]})))
		causes(fs) == {"nccl-bug"}
		{f.remedies | some f in fs} == {[t[2]]}
	}
	causes(found(pair("version", "rccl", run({}, "ok", {"version": "2.18.3"}), run({}, "hung", {"version": "2.20.5"})))) == {"rccl-bug"}
}

test_silent if {
	every outcomes in [["ok", "ok"], ["hung", "hung"], ["failed", "failed"], ["hung", "failed"], ["ok", "unknown"], ["unknown", "hung"]] {
		found(with_and_without("NCCL_P2P_DISABLE", "1", outcomes[0], outcomes[1])) == set()
	}

	# Slower without peer access, as it should be, or a little faster.
	found(pair("variable", "NCCL_P2P_DISABLE", run({}, "ok", {"gbps": 24}), run({"NCCL_P2P_DISABLE": "1"}, "ok", {"gbps": 9}))) == set()
	found(pair("variable", "NCCL_P2P_DISABLE", run({}, "ok", {"gbps": 10}), run({"NCCL_P2P_DISABLE": "1"}, "ok", {"gbps": 12}))) == set()

	# One GPU alone says nothing of several, and fewer that fail nothing of more.
	found(pair("gpus", "", run({}, "ok", {"gpus": 1}), run({}, "hung", {"gpus": 2}))) == set()
	found(pair("gpus", "", run({}, "hung", {"gpus": 2}), run({}, "ok", {"gpus": 4}))) == set()
	found(with_and_without("iommu", "pt", "ok", "hung")) == set()
	found(sets([on(["0", "1"], "ok"), on(["2", "3"], "ok")])) == set()
}

test_unresolvable if found({}) == set()
