# METADATA
# title: GPUs in files that describe a job
# description: >-
#   Where the GPUs that a file asks for, the lists that choose among them, and
#   the ranks that it starts disagree. Each element of found is a finding of rule
#   gpu-visibility, without the fields that all of them share.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.launch_gpus

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launch_files as lf
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.visible_devices as visible

# listed are the entries of each list of GPUs that counts: those before the first that
# names none. A container numbers its own GPUs from 0.
listed[l][name] := entries if {
	some l in lf.files
	some name in visible.choosers
	value := lf.settings(l)[name].value
	value != "all"
	all := visible.list_of(value)
	entries := array.slice(all, 0, min({i | some i, e in all; names_none(l, e)} | {count(all)}))
}

names_none(_, entry) if entry in visible.none

names_none(_, entry) if lower(entry) in {"none", "void"}

names_none(l, entry) if {
	l.kind in launches.isolating
	regex.match(`^\d{1,4}$`, entry)
	to_number(entry) >= lf.asked(l)
}

shown(l, name) := sprintf("%s=%s", [name, lf.settings(l)[name].value]) if {
	lf.settings(l)[name].value != ""
} else := sprintf("%s, which is empty,", [name])

about(l, name) := {
	"subject": name,
	"params": {"variable": name},
	"remedies": ["fix-visible-devices"],
	"evidence": array.concat([lf.setting_fact(l, name)], gpus_fact(l)),
}

gpus_fact(l) := [lf.fact(l, "gpus", l.gpus) | l.gpus]

# All of the GPUs are hidden.
found contains object.union(about(l, name), {
	"message": sprintf("%s hides all GPUs that %s requests%s", [shown(l, name), lf.title(l), numbered(l, name)]),
	"severity": "critical",
}) if {
	some l, lists in listed
	some name, entries in lists
	count(entries) == 0
	requests(l)
}

requests(l) if l.gpus > 0

requests(l) if l.gpus == -1

requests(l) if lf.asked(l) > 0

numbered(l, name) := sprintf(": inside, they have the indices 0 to %d", [lf.asked(l) - 1]) if {
	regex.match(`^\d`, lf.settings(l)[name].value)
} else := ""

# Some are: paid for, and idle.
found contains object.union(about(l, name), {
	"message": sprintf("%s leaves %d of the %s that %s requests: the others stay idle%s", [
		shown(l, name), count(entries), facts.counted(lf.asked(l), "GPU"), lf.title(l), dropped(l, name, entries),
	]),
	"severity": "high",
}) if {
	some l, lists in listed
	some name, entries in lists
	count(entries) > 0
	count(entries) < lf.asked(l)
	stated(l)
	not crowded(l, count(entries))
}

crowded(l, n) if lf.ranks(l) > n

# stated is true where the file itself says how many GPUs it needs.
stated(l) if l.gpus > 0

stated(l) if {
	l.kind in lf.scripted
	count(lf.granted[l.source]) == 1
}

dropped(l, name, entries) := sprintf(". Inside, they have the indices 0 to %d, so the list ends at its first other entry", [lf.asked(l) - 1]) if {
	count(visible.list_of(lf.settings(l)[name].value)) > count(entries)
} else := ""

# visible_to counts the GPUs that the ranks of a description can use.
visible_to(l) := min({count(entries) | some entries in listed[l]} | {n | n := lf.asked(l)})

# More ranks than GPUs: two ranks on one GPU, which NCCL refuses, or none for some.
found contains {
	"subject": first(chooser(l), "GPUs"),
	"message": sprintf("%s starts %d ranks on each node with %s%s: each rank needs a GPU of its own, and NCCL rejects two ranks on one", [
		lf.opening(l), lf.ranks(l), facts.counted(visible_to(l), "GPU"), because(l),
	]),
	"severity": crowded_severity(l),
	"confidence": crowded_confidence(l),
	"params": {"variable": first(chooser(l), "CUDA_VISIBLE_DEVICES"), "too_many": lf.ranks(l)},
	"remedies": crowded_remedies(l),
	"evidence": array.concat(array.concat([lf.fact(l, "processes", lf.ranks(l))], gpus_fact(l)), [lf.setting_fact(l, name) | some name in chooser(l)]),
} if {
	some l in lf.files
	visible_to(l) > 0
	lf.ranks(l) > visible_to(l)
	not started_otherwise(l)
}

# started_otherwise is true of a batch job whose script starts the ranks by a command of its
# own, which is judged instead.
started_otherwise(l) if {
	task_only(l)
	some run in of_source[l.source]
	not task_only(run)
	lf.ranks(run) > 0
}

started_otherwise(l) if {
	task_only(l)
	some run in of_source[l.source]
	not launches.shows(run, {"processes", "tensor_parallel"})
}

of_source[l.source] contains l if {
	some l in lf.files
	l.kind in lf.scripted
}

# chooser is the list that leaves too few, if one does.
chooser(l) := sort([name | some name, entries in listed[l]; count(entries) < lf.ranks(l)])

first(list, _) := list[0]

first([], otherwise) := otherwise

because(l) := sprintf(" (%s)", [shown(l, chooser(l)[0])]) if {
	count(chooser(l)) > 0
} else := ""

# Tasks of a batch job may also be programs without a GPU, or share one.
task_only(l) if {
	l.kind == "slurm"
	l.tasks == l.processes
	count(object.get(l, "command", [])) == 0
}

# The list is at fault where there is one: the numbers may be right without it.
crowded_remedies(l) := ["fix-visible-devices", "correct-launch"] if {
	count(chooser(l)) > 0
} else := ["correct-launch"]

crowded_severity(l) := "medium" if {
	task_only(l)
} else := "high"

crowded_confidence(l) := "possible" if {
	task_only(l)
} else := "likely"

# More GPUs than the machine has: the job is never scheduled, or does not start.
found contains {
	"subject": "GPUs",
	"message": sprintf("%s requests %d GPUs on each node, but the target has %d: the job does not start there", [lf.opening(l), l.gpus, count(facts.gpus)]),
	"severity": "high",
	"params": {"variable": "CUDA_VISIBLE_DEVICES", "too_many": l.gpus},
	"remedies": ["correct-launch"],
	"evidence": array.concat(gpus_fact(l), [{"fact": "gpus.devices", "value": count(facts.gpus), "source": "--target"}]),
} if {
	some l in lf.files
	l.kind != "slurm-node"
	count(facts.gpus) > 0
	l.gpus > count(facts.gpus)
}

# nodes are the GPUs that slurm.conf and gres.conf give each node.
nodes[l.name] contains l if {
	some l in lf.files
	l.kind == "slurm-node"
	l.name
}

found contains {
	"subject": name,
	"message": sprintf("The configuration of Slurm gives the node %s %d GPUs in %s and %d in %s: slurmd then registers the node with fewer GPUs than configured, and slurmctld drains it", [name, few.gpus, launches.place_of(few, "gpus"), many.gpus, launches.place_of(many, "gpus")]),
	"severity": "high",
	"params": {"variable": "CUDA_VISIBLE_DEVICES", "slurm_node": name},
	"remedies": ["correct-launch"],
	"evidence": [lf.fact(few, "gpus", few.gpus), lf.fact(many, "gpus", many.gpus)],
} if {
	some name, all in nodes
	some few in all
	few.gpus == min({l.gpus | some l in all})
	some many in all
	many.gpus == max({l.gpus | some l in all})
	few.gpus < many.gpus
	few.source != many.source
}

largest := max({l.gpus | some l in lf.files; l.kind == "slurm-node"})

found contains {
	"subject": "GPUs",
	"message": sprintf("%s requests %d GPUs on each node, but the largest node in the configuration of Slurm has %d: sbatch rejects the job", [lf.opening(l), l.gpus, largest]),
	"severity": "high",
	"params": {"variable": "CUDA_VISIBLE_DEVICES", "too_many": l.gpus},
	"remedies": ["correct-launch"],
	"evidence": gpus_fact(l),
} if {
	some l in lf.files
	l.kind == "slurm"
	l.gpus > largest
}

# A launcher that starts all ranks of a node, started once for each of them.
found contains {
	"subject": "ranks",
	"message": sprintf("%s starts %d tasks on each node, and each starts a launcher with %d ranks of its own (%s): %d ranks share the GPUs of a node. Use --ntasks-per-node=1 with torchrun", [
		lf.opening(batch), batch.tasks, run.processes, launches.place_of(run, "command"), batch.tasks * run.processes,
	]),
	"severity": "high",
	"params": {"variable": "CUDA_VISIBLE_DEVICES", "launcher": regex.replace(run.command[0], `^.*/`, "")},
	"remedies": ["correct-launch"],
	"evidence": [lf.fact(batch, "processes", batch.tasks), lf.fact(run, "processes", run.processes)],
} if {
	some source, batches in batch_of
	some batch in batches
	batch.tasks > 1
	some run in runs_of[source]
	run.processes > 1
	launches.shows(run, {"tasks"})
	not run.tasks == 1
}

batch_of[l.source] contains l if {
	some l in lf.files
	l.kind == "slurm"
	count(object.get(l, "command", [])) == 0
	l.tasks
}

runs_of[l.source] contains l if {
	some l in lf.files
	l.kind == "slurm"
	regex.match(`(^|/)(torchrun|accelerate|deepspeed)$`, l.command[0])
}

# The NVIDIA container runtime obeys a pod's own variable, not what the device plugin chose;
# Docker's --gpus overrides it.
found contains object.union(about(l, "NVIDIA_VISIBLE_DEVICES"), {
	"message": sprintf("NVIDIA_VISIBLE_DEVICES=%s hides all GPUs that %s requests: the container runtime then passes in none", [value, lf.title(l)]),
	"severity": "critical",
}) if {
	some l in lf.contained
	requests(l)
	by_variable(l)
	value := lf.settings(l).NVIDIA_VISIBLE_DEVICES.value
	lower(value) in {"none", "void"}
}

by_variable(l) if l.kind == "kubernetes"

by_variable(l) if l.runtime == "nvidia"

# Without compute there is no libcuda, without utility no NVML, and NCCL needs both.
found contains {
	"subject": "NVIDIA_DRIVER_CAPABILITIES",
	"message": sprintf("NVIDIA_DRIVER_CAPABILITIES=%s of %s omits %s: the container toolkit then does not mount %s, without which NCCL does not start", [value, lf.title(l), capability, library]),
	"severity": "high",
	"params": {"variable": "NVIDIA_DRIVER_CAPABILITIES"},
	"remedies": ["set-driver-capabilities"],
	"evidence": [lf.setting_fact(l, "NVIDIA_DRIVER_CAPABILITIES")],
} if {
	some l in lf.files
	l.kind in (launches.isolating | {"dockerfile"})
	value := lf.settings(l).NVIDIA_DRIVER_CAPABILITIES.value
	given := {trim_space(c) | some c in split(lower(value), ",")} - {""}
	count(given) > 0
	not "all" in given
	some capability, library in {"compute": "libcuda", "utility": "libnvidia-ml"}
	not capability in given
}
