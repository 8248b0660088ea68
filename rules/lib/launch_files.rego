# METADATA
# title: Files that describe a job
# description: >-
#   Readings of pods, compose files, command lines and batch scripts that are
#   judged before the job runs (the profile launch): what each asks for and where
#   it says so. All are empty or undefined in other profiles.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.launch_files

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.tables.launch_files as words

judged if input.profile == "launch"

# files are the descriptions. What a manifest's container runs is a part of it, though its
# line also reads as a command.
files contains l if {
	judged
	some l in input.launches
	not inner(l)
}

inner(l) if {
	l.kind in scripted
	l.source in manifests
}

manifests contains l.source if {
	some l in input.launches
	l.kind in {"compose", "kubernetes", "ecs", "dockerfile", "docker-inspect"}
}

# scripted are those that take variables and GPUs from the script around them.
scripted := {"slurm", "mpirun", "torchrun", "command"}

# contained are those in a container with namespaces, limits and device numbers of its own.
contained contains l if {
	some l in files
	l.kind in launches.isolating
}

# fact is a part of a description as evidence.
fact(l, part, value) := {"fact": sprintf("launches[%s].%s", [object.get(l, "name", l.kind), part]), "value": value, "source": launches.place_of(l, part)}

# title names a description: "the pod train", "the Dockerfile".
title(l) := launches.title(l) if {
	launches.words[l.kind]
	l.kind != "slurm"
} else := sprintf("%s %s", [kind_words[l.kind], l.name]) if {
	kind_words[l.kind]
	l.name
} else := kind_words[l.kind] if {
	kind_words[l.kind]
} else := "the command"

# opening is the title at the beginning of a sentence.
opening(l) := sprintf("%s%s", [upper(substring(name, 0, 1)), substring(name, 1, -1)]) if {
	name := title(l)
}

kind_words := {"slurm": "the batch job", "dockerfile": "the Dockerfile", "slurm-node": "the node", "mpirun": "the mpirun command", "shell": "the script"}

# of_source are the variables that each text sets, by name.
of_source[v.source][v.name] contains v if some v in input.env.variables

# settings are the variables in force for a description, each with its value and place.
settings(l) := object.union(around(l), {name: {"value": value, "place": launches.place_of(l, sprintf("variables[%s]", [name]))} |
	some name, value in object.get(l, "variables", {})
})

# around are those that the script around it sets, without those that it sets more than once.
around(l) := {name: {"value": v.value, "place": sprintf("%s:%d", [v.source, v.line])} |
	some name, all in of_source[l.source]
	count(all) == 1
	not open_variables[l.source][sprintf("variables[%s]", [name])]
	some v in all
} if {
	l.kind in scripted
} else := {}

# open_variables are those that a script also sets to values that it does not show.
open_variables[l.source][part] if {
	some l in files
	l.kind == "shell"
	some part, _ in l.unknown
}

# setting_fact is a variable in force as evidence.
setting_fact(l, name) := {"fact": sprintf("launches[%s].variables[%s]", [object.get(l, "name", l.kind), name]), "value": s.value, "source": s.place} if {
	s := settings(l)[name]
}

# granted are the GPUs of a node that the batch script around a command asks for.
granted[l.source] contains l.gpus if {
	some l in files
	l.kind == "slurm"
	l.gpus > 0
}

# asked counts the GPUs that a description gets: those that it states, all of the target's
# where it asks for all, or those of the batch script around it.
asked(l) := l.gpus if {
	l.gpus > 0
} else := count(facts.gpus) if {
	l.gpus == -1
} else := n if {
	l.kind in scripted
	launches.shows(l, {"gpus"})
	count(granted[l.source]) == 1
	some n in granted[l.source]
} else := count(facts.gpus) if {
	l.kind in scripted
	launches.shows(l, {"gpus"})
	not granted[l.source]
	not grant_open[l.source]
	count(facts.gpus) > 0
}

# grant_open are the texts whose batch job asks for a number of GPUs that it does not show.
grant_open[l.source] := true if {
	some l in files
	l.kind == "slurm"
	not launches.shows(l, {"gpus"})
}

# ranks counts the processes with a GPU of their own that a description starts on one node.
ranks(l) := max(starts(l)) if {
	count(starts(l)) > 0
	launches.shows(l, {"processes", "tensor_parallel"})
	parted(l)
}

# parted is true where the nodes over which one model is spread are known.
parted(l) if launches.shows(l, {"nodes"})

parted(l) if not l.tensor_parallel

starts(l) := {n | n := l.processes} | {n |
	not "ray" in object.get(l, "command", [])
	n := ceil(l.tensor_parallel / object.get(l, "nodes", 1))
}

# several is true of a description that uses more than one GPU of a node. One that asks for
# none, as the launcher of an MPIJob, uses none.
several(l) if asked(l) > 1

several(l) if {
	l.gpus == -1
	not asked(l)
	not one_rank(l)
}

one_rank(l) if ranks(l) == 1

several(l) if {
	launches.shows(l, {"gpus"})
	not l.gpus
	not l.kind == "kubernetes"
	ranks(l) > 1
}

# multi_node is true of a description over several nodes.
multi_node(l) if l.nodes > 1

# rdma is how a description asks for an RDMA device: its part, and the value.
rdma[l] contains {"part": sprintf("resources[%s]", [name]), "value": name} if {
	some l in files
	some name, n in l.resources
	n != "0"
	matches(words.rdma_resources, name)
}

rdma[l] contains {"part": "devices", "value": device} if {
	some l in files
	some device in l.devices
	startswith(device, "/dev/infiniband")
}

rdma[l] contains {"part": "mounts", "value": mount} if {
	some l in files
	some mount in l.mounts
	regex.match(`^/dev(/infiniband[^:]*)?:/dev(/infiniband|$)`, mount)
}

rdma_facts(l) := [fact(l, r.part, r.value) | some r in sort(rdma[l])]

# undecided are values that the files do not show, of parts that a rule reads, in words.
undecided(parts) := {sentence |
	some l in files
	some part, text in l.unknown
	some read in parts
	covers(read, part)
	sentence := sprintf("%s of %s is %s (%s), whose value the file does not show", [part_words(part), title(l), text, launches.place_of(l, part)])
}

# covers is true of a part that a rule reads, or that stands for it. "variables[*]" is any
# variable.
covers(read, part) if read == part

covers("variables[*]", part) if startswith(part, "variables")

covers(read, "variables") if startswith(read, "variables[")

part_words(part) := words.parts[part] if {
	words.parts[part]
} else := trim_suffix(trim_prefix(part, "variables["), "]")

matches(patterns, word) if {
	some p in patterns
	regex.match(p, word)
}

# target_rdma is true where the machine that the files are for has RDMA NICs.
target_rdma if {
	some d in input.pci.devices
	startswith(d.class, "0x0207")
}

target_rdma if {
	some p in input.nics.rdma
	p.state == "active"
}
