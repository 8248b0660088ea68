# METADATA
# title: One of two runs with a single difference fails
# description: >-
#   The input has several runs of a program: with and without a variable, on different GPUs, or with different library
#   versions. If two runs differ in exactly one thing and only one works, that thing, or what it disables, is at fault.
#   Nothing in a log is stronger evidence.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: What each NCCL variable disables
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NVIDIA recommends a test without peer-to-peer transfers first
# custom:
#   severity: critical
#   confidence: likely
#   cause: other
#   texts_only: true
#   needs: [[comparisons, job-told], [runs, job-told]]
#   remedies: [unset-env, nccl-p2p-disable, disable-custom-all-reduce, iommu-pt, iommu-remap, disable-acs, update-bios, upgrade-driver, increase-shm, nccl-shm-disable, share-ipc, set-gid-index, fix-mtu-pfc, nccl-ib-disable, bring-port-up, set-ib-hca, set-net-gdr-level, load-nvidia-peermem, nccl-nvls-disable, start-fabric-manager, nccl-cumem-host-disable, nccl-cumem-disable, set-socket-ifname, upgrade-nccl, downgrade-nccl, nccl-algo, nccl-proto, upgrade-rocm, replace-hardware, reset-gpu, open-firewall, other]
#   explains: [app-failure, collective-hang, nccl-bug, rccl-bug, failure-area, job-failed]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.control_experiment

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.trials

# experiments are two runs that differ in one thing, with what they show. A message of the failing run is a finding of
# its own, and the experiment then proves less.
findings contains object.union_n([
	{
		"id": object.get(e, "id", e.causes[0]),
		"subject": "job",
		"message": sprintf("A run %s %s and %s %s: %s.", [
			{true: "is at least twice as fast", false: "works"}[e.slow], e.condition,
			verb(e.fails, e.slow), e.otherwise, e.conclusion,
		]),
		"candidates": [{"cause": cause, "for": "the two runs differ in nothing else"} | some cause in e.causes],
		"evidence": [evidence(e.fails), evidence(e.works)],
		"confidence": confidence(e.works, e.fails),
		"severity": {true: "medium", false: "critical"}[e.slow],
		"remedies": e.remedies,
	},
	placed(e.fails),
	object.get(e, "more", {}),
]) if some e in experiments

# What a switch turns off is at fault where a run works only with it off.
experiments contains {
	"works": s.off, "fails": s.on, "slow": s.slow,
	"condition": sprintf("with %s", [assignment(s.name, s.off)]), "otherwise": "without it",
	"conclusion": sprintf("%s is at fault", [s.row.words]),
	"causes": causes,
	"remedies": remedies(s.row, causes),
	"more": {"params": {"variable": s.name}},
} if {
	some s in trials.blamed
	causes := trials.causes(s.row)
}

# What somebody writes of such an experiment is weaker: more may have changed between the runs.
findings contains {
	"id": "told",
	"subject": "job",
	"message": sprintf("The text says that it works with %s=%s: %s is at fault.", [s.name, s.value, s.row.words]),
	"candidates": [{"cause": cause, "for": "the text says what helps"} | some cause in causes],
	"messages": {s.message},
	"severity": "high",
	"confidence": "possible",
	"remedies": remedies(s.row, causes),
	"params": {"variable": s.name},
} if {
	some s in trials.helping
	causes := trials.causes(s.row)
}

# What somebody writes of another version of the library: the log shows which one failed.
findings contains {
	"id": "told-version",
	"subject": "job",
	"message": sprintf("The text says that it works with %s %s%s: the library is at fault.", [
		upper(library), m.fields.version, concat("", [sprintf(", and the log is of %s", [concat(", ", sort(others))]) | count(others) > 0]),
	]),
	"candidates": [{"cause": {"nccl": "nccl-bug", "rccl": "rccl-bug"}[library], "for": "the text says which version helps"}],
	"messages": {m},
	"severity": "high",
	"confidence": {true: "likely", false: "possible"}[count(others) > 0],
	"remedies": [other_version(library, m.fields.version, others)],
} if {
	m := logs.first(logs.by_id["prose-version-helps"])
	library := {true: "rccl", false: "nccl"}[contains(lower(m.fields.library), "rccl")]
	others := object.get(logs.versions, library, set()) - {m.fields.version}
}

other_version("rccl", _, _) := "upgrade-rocm"

other_version("nccl", better, others) := "downgrade-nccl" if {
	some other in others
	surroundings.version(better) < surroundings.version(other)
} else := "upgrade-nccl"

# remedies are those of the row, and on AMD's GPUs those of the causes' own rules.
remedies(row, causes) := row.remedies if {
	causes == row.causes
} else := {
	"iommu-translation": ["iommu-pt", "update-bios"],
	"amd-iommu": ["iommu-pt", "iommu-remap"],
	"acs-redirect": ["disable-acs", "update-bios"],
	"rccl-bug": ["upgrade-rocm"],
}[causes[0]]

# A variable with which a run fails that works without it.
experiments contains {
	"works": h.without, "fails": h["with"], "slow": false,
	"condition": sprintf("without %s", [assignment(h.name, h["with"])]), "otherwise": "with it",
	"conclusion": "unset it",
	"causes": [object.get(trials.switch, [h.name, "reverse"], "env-misconfig")],
	"remedies": ["unset-env"],
	"more": {
		"subject": h.name,
		"severity": "high",
		"params": {"variable": h.name, "source": "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"},
	},
} if {
	some h in trials.harmful

	# The same two runs may show that the other choice of an interface is right.
	count([s | some s in trials.blamed; s.name == h.name; s.on == h["with"]]) == 0
}

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
	one_suspect
} else := {
	"causes": ["p2p-broken-platform"], "gpus": union(trials.failing),
	"conclusion": "the path between these, or one of them, is at fault",
	"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "update-bios", "reset-gpu"],
}

one_suspect if {
	count(trials.suspects) == 1
	count(trials.failing) > 1
}

one_suspect if 1 in {count(s) | some s in trials.failing}

shown(sets) := concat("; ", sort({concat(", ", sort(s)) | some s in sets}))

# More GPUs or more nodes, and nothing else, make it fail.
experiments contains object.union(by_size[g.kind], {
	"id": g.kind,
	"works": g.few, "fails": g.many, "slow": false,
	"condition": sprintf("on %d %s", [g.few[g.kind], by_size[g.kind].unit]),
	"otherwise": sprintf("on %d", [g.many[g.kind]]),
	"more": {"severity": "high", "confidence": "possible"},
}) if some g in trials.grown

by_size := {
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

# Another version of the library makes the difference.
experiments contains {
	"works": r.better, "fails": r.worse, "slow": r.slow,
	"condition": sprintf("with %s %s", [upper(r.library), r.better.version]),
	"otherwise": sprintf("with %s", [r.worse.version]),
	"conclusion": "the library is at fault",
	"causes": [{"nccl": "nccl-bug", "rccl": "rccl-bug"}[r.library]],
	"remedies": [change(r)],
} if {
	some library in {r.library | some r in trials.releases}

	# Of many, that with the newest version that works.
	ranked := sort([[surroundings.version(r.better.version), surroundings.version(r.worse.version), r] | some r in trials.releases; r.library == library])
	r := ranked[count(ranked) - 1][2]
}

change(r) := "upgrade-rocm" if {
	r.library == "rccl"
} else := "upgrade-nccl" if {
	surroundings.version(r.better.version) > surroundings.version(r.worse.version)
} else := "downgrade-nccl"

confidence(works, fails) := "possible" if {
	fails.stated
} else := "confirmed" if {
	works.told
	fails.told
} else := "likely"

# placed is where in the logs the failing run failed.
placed(fails) := {"order": logs.first(ms).order} if {
	ms := {m | some m in logs.by_id[fails.message]; m.source == fails.source; m.line == fails.shown}
} else := {}

evidence(run) := {
	"fact": "runs.outcome",
	"value": object.get(run, "text", run.outcome),
	"source": sprintf("%s:%d", [run.source, object.get(run, "shown", run.line)]),
}

assignment(name, run) := sprintf("%s=%s", [name, trials.value(run, name)])

verb(_, true) := "slower"

verb(run, false) := sprintf("%s%s", [{"hung": "hangs", "failed": "fails"}[run.outcome], why]) if {
	why := concat("", [sprintf(" (%s)", [run.why]) | run.why])
}

asks contains "runs[].variables" if "variable" in {c.kind | some c in input.comparisons}
asks contains "comparisons[].name" if "variable" in {c.kind | some c in input.comparisons}
