# METADATA
# title: One of two runs with a single difference fails
# description: >-
#   The input has several runs of a program. If two runs differ in exactly one thing and only one works, that thing, or
#   what it disables, is at fault. Nothing in a log is stronger evidence.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html, description: What each NCCL variable disables}
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html, description: A test without P2P first}
# custom:
#   severity: critical
#   confidence: likely
#   cause: other
#   texts_only: true
#   needs: [[comparisons, job-told], [runs, job-told]]
#   remedies: [unset-env, nccl-p2p-disable, disable-custom-all-reduce, iommu-pt, iommu-off, disable-acs, update-bios, upgrade-driver, increase-shm, nccl-shm-disable, share-ipc, set-gid-index, fix-mtu-pfc, nccl-ib-disable, bring-port-up, set-ib-hca, set-net-gdr-level, load-nvidia-peermem, nccl-nvls-disable, start-fabric-manager, nccl-cumem-host-disable, nccl-cumem-disable, nccl-mnnvl-disable, start-imex, pass-imex-channel, set-socket-ifname, upgrade-nccl, downgrade-nccl, nccl-algo, nccl-proto, upgrade-rocm, replace-hardware, reset-gpu, open-firewall, fix-ofi-plugin, fix-visible-devices, hsa-env, pass-device-nodes, raise-memlock, enable-rebar, other]
#   explains: [iommu-translation > p2p-broken-platform/wrong, oom, app-failure, app-mismatch/waited, app-mismatch/behind, app-mismatch/missing, collective-hang, nccl-bug, rccl-bug, gdr-module-missing/unsaid, failure-area, job-failed]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     runs: "A run {better} {condition} and {worse}[ ({why})] {otherwise}: {conclusion}."
package gpudoctor.rules.control_experiment

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.trials

# experiments are two runs that differ in one thing, with what they show. A message of the failing run is a finding of
# its own, and the experiment then proves less.
findings contains object.union(
	{
		"id": e.causes[0],
		"grade": "runs",
		"subject": "job",
		"about": object.union(object.filter(e, ["condition", "otherwise", "conclusion"]), {
			"better": {true: "is at least twice as fast", false: "works"}[e.slow],
			"worse": {"hung": "hangs", "failed": "fails", "ok": "slower"}[e.fails.outcome],
			"why": [e.fails.why | not e.slow],
		}),
		"candidates": [{"cause": cause, "for": "the two runs differ in nothing else"} | some cause in e.causes],
		"evidence": [evidence(e.fails), evidence(e.works)],
		"confidence": confidence(e.works, e.fails),
		"severity": severity(e),
		"remedies": e.remedies,
	},
	object.get(e, "more", {}),
) if some e in experiments

# What a switch turns off is at fault where a run works only with it off.
experiments contains {
	"works": s.off, "fails": s.on, "slow": s.slow,
	"condition": sprintf("with %s", [trials.setting(s.off, s.name)]), "otherwise": "without it",
	"conclusion": sprintf("%s is at fault", [s.row.words]),
	"causes": [of_library(cause) | some cause in s.row.causes],
	"remedies": [of_library(remedy) | some remedy in s.row.remedies],
	"more": {"params": object.union({"variable": s.name}, {"gdr_level": level | level := s.off.variables.NCCL_NET_GDR_LEVEL})},
} if {
	some s in trials.blamed
	count([o | some o in trials.blamed; o.name in object.get(s.row, "includes", [])]) == 0
}

# of_library says RCCL's fault for NCCL's, and where it is cured, where the GPUs are AMD's.
of_library(id) := {"nccl-bug": "rccl-bug", "upgrade-nccl": "upgrade-rocm"}[id] if on_amd

else := id

on_amd if amd.present
on_amd if "rccl" in {r.library | some r in input.runs}

# A variable with which a run fails that works without it.
experiments contains {
	"works": h.without, "fails": h["with"], "slow": false,
	"condition": sprintf("without %s", [trials.setting(h["with"], h.name)]), "otherwise": "with it",
	"conclusion": "unset it",
	"causes": [h.cause],
	"remedies": ["unset-env"],
	"more": {"subject": h.name, "severity": "high", "params": {"variable": h.name, "source": "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"}},
} if {
	some h in trials.harmful
	count([s | some s in trials.blamed; s.name == h.name; s.on == h["with"]]) == 0 # Or the other choice of an interface is right.
}

# change is how to get from versions that fail to one that works.
change("rccl", _, _) := "upgrade-rocm"

change("nccl", better, others) := "downgrade-nccl" if {
	some other in others
	surroundings.version(better) < surroundings.version(other)
} else := "upgrade-nccl"

# Runs on some GPUs fail: a GPU that all of these have in common is at fault, or else a path between them.
experiments contains object.union(blamed, {
	"works": sort({r | some r in trials.sets; r.outcome == "ok"})[0],
	"fails": sort({r | some r in trials.sets; trials.bad(r)})[0],
	"slow": false,
	"condition": sprintf("on the GPUs %s", [shown(trials.working)]),
	"otherwise": sprintf("on %s", [shown(trials.failing)]),
	"more": {
		"subject": sprintf("%s %s", [{true: "GPU", false: "GPUs"}[count(blamed.gpus) == 1], concat(", ", sort(blamed.gpus))]),
		"affects": [g.address | some g in facts.named; sprintf("%d", [g.index]) in blamed.gpus],
	},
})

blamed := {
	"causes": ["gpu-fault"], "gpus": trials.suspects,
	"conclusion": "the GPU of all failing runs, or its slot, is at fault",
	"remedies": ["reset-gpu", "replace-hardware"],
} if {
	count(trials.suspects) == 1
	true in {count(trials.failing) > 1, 1 in {count(s) | some s in trials.failing}}
} else := {
	"causes": ["p2p-broken-platform"], "gpus": union(trials.failing),
	"conclusion": "the path between these, or one of them, is at fault",
	"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "update-bios", "reset-gpu"],
}

shown(sets) := concat("; ", sort({concat(", ", sort(s)) | some s in sets}))

# More GPUs or more nodes, and nothing else, make it fail. One GPU moves nothing to another.
experiments contains object.union(size, {
	"works": p.one, "fails": p.other, "slow": false,
	"condition": sprintf("on %d %s", [p.one[kind], size.unit]),
	"otherwise": sprintf("on %d", [p.other[kind]]),
	"more": {"id": kind, "severity": "high", "confidence": "possible"},
}) if {
	some kind, size in sizes
	some p in trials.pairs[kind]
	p.one[kind] < p.other[kind]
	not p.one.gpus == 1
	trials.beats(p.one, p.other)
}

# What one GPU computes is right, and what several compute together is wrong: data is lost on its way between them.
experiments contains {
	"works": p.one, "fails": p.other, "slow": false,
	"condition": "on one GPU", "otherwise": "on several, whose results are wrong",
	"conclusion": "data is lost or altered on its way from one GPU to another",
	"causes": ["p2p-broken-platform"],
	"remedies": ["nccl-p2p-disable", "iommu-pt", "upgrade-driver", "disable-acs", "update-bios"],
} if {
	p := sort([p |
		some p in trials.pairs.gpus
		p.one.gpus == 1
		p.other.wrong
		trials.beats(p.one, p.other)
	])[0]
}

sizes := {
	"gpus": {
		"unit": "GPUs",
		"conclusion": "a GPU that only the larger run uses, or a path to it, is at fault",
		"causes": ["p2p-broken-platform", "gpu-fault", "acs-redirect"],
		"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "update-bios"],
	},
	"nodes": {
		"unit": "machines",
		"conclusion": "a single machine works, and the network between machines is at fault",
		"causes": ["wrong-nic", "firewall", "ib-port-down"],
		"remedies": ["set-socket-ifname", "open-firewall", "bring-port-up"],
	},
}

# Another version of the library makes the difference: of many, the newest that works.
experiments contains {
	"works": p.one, "fails": p.other, "slow": slow,
	"condition": sprintf("with %s %s", [upper(p.name), p.one.version]),
	"otherwise": sprintf("with %s", [p.other.version]),
	"conclusion": "the library is at fault",
	"causes": [sprintf("%s-bug", [p.name])],
	"remedies": [change(p.name, p.one.version, [p.other.version])],
} if {
	ranked := sort([[surroundings.version(p.one.version), object.get(p.other, "version", ""), p, slow] |
		some p in trials.pairs.version
		some slow in trials.verdicts(p)
	])
	[_, _, p, slow] := ranked[count(ranked) - 1]
}

logged_versions := {r.version | some r in input.runs; r.by != "text"; trials.bad(r)}

# weak is true of a failure whose message states a cause, or of which somebody tells without a log of the version that fails.
weak(fails) if fails.stated

weak(fails) if {
	fails.by == "text"
	not object.get(fails, "version", "") in logged_versions
}

severity(e) := "medium" if {
	e.slow
} else := "high" if {
	e.fails.by == "text" # More may have changed between the runs than the text says.
} else := "critical"

confidence(works, fails) := "possible" if {
	weak(fails)
} else := "confirmed" if {
	works.told
	fails.told
} else := "likely"

evidence(run) := {
	"fact": "runs.outcome",
	"value": object.get(run, "text", run.outcome),
	"source": sprintf("%s:%d", [run.source, object.get(run, "shown", run.line)]),
}

asks contains "runs[].variables" if "variable" in {c.kind | some c in input.comparisons}
asks contains "comparisons[].name" if "variable" in {c.kind | some c in input.comparisons}
