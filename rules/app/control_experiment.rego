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

# What a switch turns off is at fault where a run works only with it off.
findings contains object.union(compared(s.off, s.on, s.slow), {
	"id": causes[0],
	"subject": "job",
	"message": sprintf("%s with %s and %s without it: %s is at fault.", [
		better(s.slow), assignment(s.name, s.off), verb(s.on, s.slow), s.row.words,
	]),
	"candidates": [{"cause": cause, "for": sprintf("%s makes the difference", [s.name])} | some cause in causes],
	"params": {"variable": s.name},
	"remedies": remedies(s.row, causes),
}) if {
	some s in trials.blamed
	causes := trials.causes(s.row)
}

# remedies are those of the row, and on AMD's GPUs those of the causes' own rules.
remedies(row, causes) := row.remedies if {
	row.remedies
	causes == row.causes
} else := own[causes[0]]

own := {
	"iommu-translation": ["iommu-pt", "update-bios"],
	"amd-iommu": ["iommu-pt", "iommu-remap"],
	"acs-redirect": ["disable-acs", "update-bios"],
	"rccl-bug": ["upgrade-rocm"],
}

# A variable with which a run fails that works without it.
findings contains object.union(compared(h.without, h["with"], false), {
	"id": cause,
	"subject": h.name,
	"message": sprintf("%s without %s and %s with it: unset it.", [
		better(false), assignment(h.name, h["with"]), verb(h["with"], false),
	]),
	"candidates": [{"cause": cause, "for": sprintf("the run fails only with %s", [h.name])}],
	"params": {"variable": h.name, "source": "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"},
	"severity": "high",
	"remedies": ["unset-env"],
}) if {
	some h in trials.harmful
	not chosen_otherwise(h)
	cause := object.get(object.get(trials.switch, h.name, {}), "reverse", "env-misconfig")
}

# The same two runs may show that the other choice of an interface is right.
chosen_otherwise(h) if {
	some s in trials.blamed
	s.name == h.name
	s.on == h["with"]
}

# Runs on some GPUs fail: a GPU that all of these have in common is at fault, or else a path between them.
findings contains object.union(compared(first_good, first_bad, false), {
	"id": blamed.cause,
	"subject": sprintf("%s %s", [blamed.what, concat(", ", sort(blamed.gpus))]),
	"affects": [g.address | some g in facts.named; sprintf("%d", [g.index]) in blamed.gpus],
	"message": sprintf("Runs on some GPUs work (%s) and on others they do not (%s): %s.", [shown(trials.working), shown(trials.failing), blamed.words]),
	"candidates": [{"cause": blamed.cause, "for": blamed.words}],
	"remedies": blamed.remedies,
}) if {
	count(trials.working) > 0
	count(trials.failing) > 0
}

blamed := {
	"cause": "gpu-fault", "what": "GPU", "gpus": trials.suspects, "words": "the GPU of all failing runs, or its slot, is at fault",
	"remedies": ["reset-gpu", "replace-hardware"],
} if {
	one_suspect
} else := {
	"cause": "p2p-broken-platform", "what": "GPUs", "gpus": union(trials.failing), "words": "the path between these, or one of them, is at fault",
	"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "update-bios", "reset-gpu"],
}

one_suspect if {
	count(trials.suspects) == 1
	count(trials.failing) > 1
}

one_suspect if {
	some s in trials.failing
	count(s) == 1
}

shown(sets) := concat("; ", sort({concat(", ", sort(s)) | some s in sets}))

first_good := sort({r | some r in trials.sets; r.outcome == "ok"})[0]

first_bad := sort({r | some r in trials.sets; trials.bad(r)})[0]

# More GPUs or more nodes, and nothing else, make it fail.
findings contains object.union(compared(g.few, g.many, false), {
	"id": g.kind,
	"subject": "job",
	"message": sprintf("%s on %d %s and %s on %d: %s.", [
		better(false), g.few[g.kind], by_size[g.kind].unit, verb(g.many, false), g.many[g.kind], by_size[g.kind].words,
	]),
	"candidates": [{"cause": cause, "for": by_size[g.kind].reason} | some cause in by_size[g.kind].causes],
	"severity": "high",
	"confidence": "possible",
	"remedies": by_size[g.kind].remedies,
}) if some g in trials.grown

by_size := {
	"gpus": {
		"unit": "GPUs",
		"words": "a GPU that only the larger run uses, or a path to it, is at fault",
		"reason": "it fails once further GPUs take part",
		"causes": ["p2p-broken-platform", "gpu-fault", "acs-redirect"],
		"remedies": ["nccl-p2p-disable", "disable-acs", "iommu-pt", "update-bios"],
	},
	"nodes": {
		"unit": "machines",
		"words": "a single machine works, and the network between machines is at fault",
		"reason": "it fails once several machines take part",
		"causes": ["wrong-nic", "firewall", "ib-port-down"],
		"remedies": ["set-socket-ifname", "open-firewall", "bring-port-up"],
	},
}

# Another version of the library makes the difference.
findings contains object.union(compared(r.better, r.worse, r.slow), {
	"id": cause,
	"subject": "job",
	"message": sprintf("%s with %s %s and %s with %s, with no other difference: the library is at fault.", [
		better(r.slow), upper(r.library), r.better.version, verb(r.worse, r.slow), r.worse.version,
	]),
	"candidates": [{"cause": cause, "for": "another version of the library makes the difference"}],
	"remedies": [change],
}) if {
	some r in trials.releases
	cause := {"nccl": "nccl-bug", "rccl": "rccl-bug"}[r.library]
	change := upgrade(r)
}

upgrade(r) := "upgrade-rocm" if {
	r.library == "rccl"
} else := "upgrade-nccl" if {
	surroundings.version(r.better.version) > surroundings.version(r.worse.version)
} else := "downgrade-nccl"

# compared has the fields that all findings on two runs share. A message of the failing
# run is a finding of its own, and the experiment then proves less.
compared(works, fails, slow) := object.union(
	{"evidence": [evidence(fails), evidence(works)], "confidence": confidence(works, fails), "severity": {true: "medium", false: "critical"}[slow]},
	placed(fails),
)

confidence(works, fails) := "possible" if {
	fails.stated
} else := "confirmed" if {
	works.told
	fails.told
} else := "likely"

# placed is where in the logs the failing run failed.
placed(fails) := {"order": logs.first(ms).order} if {
	ms := {m | some m in logs.by_id[fails.message]; m.source == fails.source; m.line == fails.shown}
	count(ms) > 0
} else := {}

evidence(run) := {
	"fact": "runs.outcome",
	"value": object.get(run, "text", run.outcome),
	"source": sprintf("%s:%d", [run.source, object.get(run, "shown", run.line)]),
}

assignment(name, run) := sprintf("%s=%s", [name, trials.value(run, name)])

# better starts a message with the run that works better, and verb continues with the other.
better(slow) := {true: "A run is at least twice as fast", false: "A run works"}[slow]

verb(_, true) := "slower"

verb(run, false) := sprintf("%s%s", [{"hung": "hangs", "failed": "fails"}[run.outcome], reason(run)])

reason(run) := sprintf(" (%s)", [run.why]) if run.why

default reason(_) := ""

asks contains "runs[].variables" if by_variable
asks contains "comparisons[].name" if by_variable

by_variable if "variable" in {c.kind | some c in input.comparisons}
