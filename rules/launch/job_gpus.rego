# METADATA
# title: A job's GPUs, lists of GPUs and ranks disagree
# description: A file asks for a number of GPUs, its variables choose among them, and its command starts a rank for each. Where
#   these disagree, GPUs stay idle, ranks find no GPU, or two ranks meet on one, which NCCL refuses.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
#     description: CUDA_VISIBLE_DEVICES and the effect of an invalid entry
# custom:
#   severity: high
#   areas: [gpus, environment]
#   remedies: [fix-visible-devices, correct-launch]
#   cause: gpu-visibility
#   since: "0.4"
package gpudoctor.rules.job_gpus

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.visible_devices as visible

# lists are the entries that count of each list of GPUs: those before the first that names none.
lists[l][name] := array.slice(all, 0, min({i | some i, e in all; names_none(l, e)} | {count(all)})) if {
	some l in job.parts
	l.kind != "shell"
	some name in visible.choosers
	all := visible.list_of(job.settings(l)[name].value)
	all != ["all"]
}

names_none(_, entry) if lower(entry) in (visible.none | {"none", "void"})

# A container numbers its own GPUs from 0.
names_none(l, entry) if {
	l in job.containers
	regex.match(`^\d{1,4}$`, entry)
	to_number(entry) >= job.gpus(l)
}

setting(l, name) := sprintf("%s=%s", [name, job.settings(l)[name].value])
gpus_fact(l) := [job.fact(l, "gpus", l.gpus) | l.gpus]
ranks_fact(l) := job.fact(l, "processes", job.ranks(l))

findings contains job.of_setting(l, name, {
	"severity": told[0], "remedies": ["fix-visible-devices"], "evidence": array.concat([job.setting_fact(l, name)], gpus_fact(l)),
	"message": sprintf("%s %s%s", [setting(l, name), told[1], concat("", [" (a container numbers its own GPUs from 0)" | l in job.containers])]),
}) if {
	some l, of in lists
	some name, entries in of
	told := leaves(l, count(entries))
}

leaves(l, 0) := ["critical", sprintf("hides all GPUs that %s requests", [launches.title(l)])] if job.asks(l)

leaves(l, n) := ["high", sprintf("leaves %d of the %d GPUs that %s requests: the others stay idle", [n, job.gpus(l), launches.title(l)])] if {
	n > 0
	n < job.stated(l)
	not crowded(l, n)
}

# offered counts the GPUs that the ranks of a description can use; they are crowded where there are more of them. short are
# the lists that leave too few.
crowded(l, n) if job.ranks(l) > n
offered(l) := min({count(entries) | some entries in lists[l]} | {n | n := job.gpus(l)})
short(l) := sort([name | some name, entries in lists[l]; count(entries) < job.ranks(l)])

# More ranks than GPUs: two ranks on one GPU, which NCCL refuses, or none for some. Tasks of a batch job may also be
# programs without a GPU.
findings contains of_number(l, [ranks_fact(l)], object.union(blamed(l), {
	"severity": {true: "medium", false: "high"}[l in job.headers], "params": {"too_many": job.ranks(l)},
	"message": sprintf(
		"%s starts %d ranks on each node with %s%s: each rank needs a GPU of its own, and NCCL rejects two ranks on one",
		[job.opening(l), job.ranks(l), facts.counted(offered(l), "GPU"), concat("", [sprintf(" (%s)", [setting(l, name)]) | some name in short(l)])],
	),
})) if {
	some l in job.parts
	offered(l) > 0
	crowded(l, offered(l))
	count({run | l in job.headers; some run in job.runs; starts(run)}) == 0
}

# blamed is the list that leaves too few GPUs, if one does.
blamed(l) := job.of_setting(l, name, {"remedies": ["fix-visible-devices", "correct-launch"], "evidence": [ranks_fact(l), job.setting_fact(l, name)]}) if {
	name := short(l)[0]
} else := {}

of_number(l, evidence, more) := object.union(found, more) if found := {
	"subject": "GPUs", "remedies": ["correct-launch"], "params": {"variable": "CUDA_VISIBLE_DEVICES"},
	"evidence": array.concat(evidence, gpus_fact(l)),
}

# starts is true of a command that starts ranks, or may: the header of its batch script is not judged.
starts(run) if job.ranks(run)
starts(run) if not launches.shows(run, {"processes", "tensor_parallel"})

findings contains of_number(l, [], {
	"params": {"too_many": l.gpus}, "evidence": array.concat(gpus_fact(l), [{"fact": "gpus.devices", "value": job.target_gpus, "source": "--target"}]),
	"message": sprintf("%s requests %d GPUs on each node, but the target has %d: the job does not start there", [job.opening(l), l.gpus, job.target_gpus]),
}) if {
	some l in job.parts
	l.gpus > job.target_gpus
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"gpus", "processes", "tasks", "tensor_parallel", "nodes"} | {sprintf("variables[%s]", [name]) | some name in visible.choosers})
