# METADATA
# title: A job's GPUs, lists of GPUs and ranks disagree
# description: Where requested GPUs, variables that choose among them and ranks disagree, GPUs stay idle or ranks find none.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables
# custom:
#   severity: high
#   areas: [gpus, environment]
#   remedies: [fix-visible-devices, correct-launch]
#   cause: gpu-visibility
#   since: "0.4"
#   grades:
#     none: {severity: critical, text: "{subject}={value|} hides all GPUs that {title} requests; a container numbers its own from 0"}
#     few: "{subject}={value} leaves {n:GPU}, and {title} starts more ranks: NCCL rejects two ranks on one GPU"
#     idle: "{subject}={value} leaves {n:GPU} of those that {title} requests: the others stay idle"
#     ranks: {remedies: [correct-launch], text: "{opening} starts {ranks} ranks on each node with {n:GPU}, and NCCL rejects two on one"}
#     target: {remedies: [correct-launch], text: "{opening} requests {gpus:GPU} on each node, but the target has {n}"}
package gpudoctor.rules.job_gpus

import data.gpudoctor.lib.job
import data.gpudoctor.lib.visible_devices as visible

# left counts the entries of each list of GPUs before the first that names none.
left[l][name] := min({i | some i, entry in list; names_none(l, entry)} | {count(list)}) if {
	some l in job.parts
	l.kind != "shell"
	some name in visible.choosers
	list := visible.list_of(job.settings(l)[name].value)
	list != ["all"]
}

names_none(_, entry) if lower(entry) in (visible.none | {"none", "void"})

# A container numbers its own GPUs from 0.
names_none(l, entry) if {
	l in job.containers
	regex.match(`^\d{1,4}$`, entry)
	to_number(entry) >= job.gpus(l)
}

findings contains job.of_setting(l, grade, name, [job.fact(l, "processes", starting[l]) | grade == "few"], {"n": n}) if {
	some l, lists in left
	some name, n in lists
	grade := leaves(l, n)
}

leaves(l, 0) := "none" if job.asks(l)

leaves(l, n) := "few" if {
	n > 0
	starting[l] > n
} else := "idle" if {
	n > 0
	job.stated(l) > n
}

# The header of a batch script counts tasks, which may also be programs without a GPU.
starting := {l: job.ranks(l) | some l in (job.parts - job.headers)}

findings contains job.finding(l, "ranks", "GPUs", [job.fact(l, "processes", n)], {"too_many": n}, {"n": job.gpus(l), "ranks": n}) if {
	some l, n in starting
	n > job.gpus(l)
}

findings contains job.finding(l, "target", "GPUs", [job.fact(l, "gpus", l.gpus)], {"too_many": l.gpus}, {"n": job.target_gpus}) if {
	some l in job.parts
	l.gpus > job.target_gpus
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"gpus", "processes", "tasks", "tensor_parallel", "nodes"} | {sprintf("variables[%s]", [name]) | some name in visible.choosers})
