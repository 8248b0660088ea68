# METADATA
# title: What a file says of one job
# description: >-
#   Readings of one unit of a file: a container, whose command is a part of it, a stage of a
#   Dockerfile, or a script with its header, its limits and the commands that it starts. What
#   uses no GPU is not among them, and a value that the file does not show is undefined.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.job

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.tables.launch_files as words

# boxes are the kinds of a unit that one description makes up: what runs in it is a part of it.
boxes := launches.isolating | {"ecs", "dockerfile"}

boxed if {
	some l in input.launches
	l.kind in boxes
}

# parts are the descriptions to judge.
parts contains l if {
	some l in input.launches
	l.kind in boxes
	not l.cpu_only
}

parts contains l if {
	not boxed
	some l in input.launches
	not l.kind == "slurm-node"
	not without_gpus(l)
}

# without_gpus is true of a program that is told to use no GPU, and of the header of a script
# that starts no other.
without_gpus(l) if l.cpu_only

without_gpus(l) if {
	not l.command
	some other in input.launches
	other.cpu_only
	every run in input.launches {
		idle(run)
	}
}

idle(l) if l.cpu_only

idle(l) if not l.command

# containers have namespaces, limits and numbers of devices of their own.
containers := {l | some l in parts; l.kind in launches.isolating}

# fact is a part of a description as evidence.
fact(l, part, value) := {"fact": sprintf("launches[%s].%s", [object.get(l, "name", l.kind), part]), "value": value, "source": launches.place_of(l, part)}

# title names a description: "the pod train", "the Dockerfile".
title(l) := launches.title(l) if {
	launches.words[l.kind]
	l.kind != "slurm"
} else := sprintf("%s %s", [kinds[l.kind], l.name]) if {
	kinds[l.kind]
	l.name
} else := object.get(kinds, l.kind, "the command")

# opening is the title at the beginning of a sentence.
opening(l) := sprintf("%s%s", [upper(substring(name, 0, 1)), substring(name, 1, -1)]) if name := title(l)

kinds := {"slurm": "the batch job", "dockerfile": "the Dockerfile", "mpirun": "the mpirun command", "shell": "the script", "ecs": "the task"}

# settings are the variables in force for a description, each with its value and place: its own,
# and what the script around it exports.
settings(l) := object.union(around(l), {name: {"value": value, "place": launches.place_of(l, sprintf("variables[%s]", [name]))} |
	some name, value in object.get(l, "variables", {})
})

around(l) := exported if not l.kind in boxes

around(l) := {} if l.kind in boxes

exported[name] := {"value": v.value, "place": sprintf("%s:%d", [v.source, v.line])} if {
	some name, all in by_name
	count({v.value | some v in all}) == 1
	not sprintf("variables[%s]", [name]) in unclear
	v := sort(all)[0]
}

by_name[v.name] contains v if some v in input.env.variables

# unclear are variables that a script also sets to values that it does not show, or that are one
# command's alone.
unclear contains part if {
	some l in input.launches
	l.kind == "shell"
	some part, _ in l.unknown
}

unclear contains sprintf("variables[%s]", [name]) if {
	some l in input.launches
	l.command
	some name, _ in l.variables
}

# judged are the settings to judge: those of each container and each command, and, once, what a
# script exports. Its first description stands for it.
judged[l][name] := s if {
	some l in parts
	some name, s in settings(l)
	its(l, name)
}

its(l, name) if {
	l.variables[name]
	l.kind != "shell"
}

its(l, _) if {
	not boxed
	l == sort(parts)[0]
}

# setting_fact is a variable in force as evidence.
setting_fact(l, name) := {"fact": sprintf("launches[%s].variables[%s]", [object.get(l, "name", l.kind), name]), "value": s.value, "source": s.place} if {
	s := settings(l)[name]
}

# gpus counts the GPUs of a node that a description gets: those that it states, all of the
# target's where it asks for all, or those of the batch script around it.
gpus(l) := l.gpus if {
	l.gpus > 0
} else := count(facts.gpus) if {
	l.gpus == -1
	count(facts.gpus) > 0
} else := n if {
	count(granted) == 1
	some n in granted
	not l.kind in boxes
	not l.gpus
	launches.shows(l, {"gpus"})
} else := count(facts.gpus) if {
	count(granted | open_grants) == 0
	not l.kind in boxes
	not l.gpus
	launches.shows(l, {"gpus"})
	count(facts.gpus) > 0
}

# granted are the GPUs of a node that batch scripts ask for, open_grants those whose number is not
# shown.
granted := {l.gpus | some l in parts; l.kind == "slurm"; l.gpus > 0}

open_grants := {l | some l in parts; l.kind == "slurm"; not launches.shows(l, {"gpus"})}

# ranks counts the processes with a GPU of their own that a description starts on one node. Ray
# spreads a server over nodes that its command does not name.
ranks(l) := l.processes if {
	l.processes
} else := ceil((l.tensor_parallel * object.get(l, "pipeline_parallel", 1)) / object.get(l, "nodes", 1)) if {
	launches.shows(l, {"processes", "tensor_parallel", "pipeline_parallel", "nodes"})
	l.tensor_parallel
	not ray(l)
}

ray(l) if startswith(l.object, "Ray")

ray(l) if {
	some word in l.command
	regex.match(`(^|[=_/-])ray\b`, word)
}

# several is true of a description that uses more than one GPU of a node. All GPUs of an unknown
# machine may be one.
several(l) if gpus(l) > 1

several(l) if {
	not gpus(l)
	not l.gpus == 0
	launches.shows(l, {"gpus"})
	not l.kind == "kubernetes"
	ranks(l) > 1
}

# asks is true of a description that gets a GPU.
asks(l) if gpus(l) > 0

asks(l) if l.gpus == -1

# own_network is true of a container with a network namespace of its own, and no other network
# than its engine's or its cluster's.
own_network(l) if {
	l in containers
	launches.shows(l, {"network", "networks"})
	not l.network == "host"
	not startswith(object.get(l, "network", ""), "container:")
	count(object.get(l, "networks", [])) == 0
}

# rdma is how a description asks for RDMA devices, as evidence.
rdma(l) := array.concat(
	[fact(l, sprintf("resources[%s]", [name]), name) | some name, n in l.resources; n != "0"; matches(words.rdma_resources, name)],
	[fact(l, part, value) | some part, pattern in rdma_paths; some value in l[part]; regex.match(pattern, value)],
)

rdma_paths := {"devices": "^/dev/infiniband", "mounts": `^/dev(/infiniband[^:]*)?:/dev(/infiniband|$)`}

rdma_words(l) := facts.list({f.value | some f in rdma(l)})

# target_rdma is true where the machine that the files are for has RDMA NICs.
target_rdma if {
	some d in input.pci.devices
	startswith(d.class, "0x0207")
}

target_rdma if {
	some p in input.nics.rdma
	p.state == "active"
}

# of_provider is true of a description for the network of a provider.
of_provider(l, provider) if matches(provider.image, l.image)

of_provider(l, provider) if {
	some name, _ in settings(l)
	matches(provider.beside, name)
}

of_provider(l, provider) if {
	some mount in l.mounts
	matches(provider.mounts, mount)
}

of_provider(l, provider) if {
	some name, _ in l.resources
	matches(provider.resources, name)
}

# option is the value of an option of a command, joined by = or the next word, by the pattern of
# its name.
option(l, name) := value if {
	some i, word in l.command
	regex.match(sprintf("^--(%s)(=|$)", [name]), word)
	value := array.concat(array.slice(split(word, "="), 1, 2), array.slice(l.command, i + 1, i + 2))[0]
}

# undecided are values that the file does not show, of parts that a rule reads, in words.
undecided(parts_) := {sentence |
	some l in parts
	some part, text in l.unknown
	some read in parts_
	covers(read, part)
	sentence := sprintf("%s of %s is %s (%s), whose value the file does not show", [part_words(part), title(l), text, launches.place_of(l, part)])
}

# covers is true of a part that a rule reads, or that stands for it. "variables[*]" is any
# variable.
covers(read, part) if read == part

covers("variables[*]", part) if startswith(part, "variables")

covers(read, "variables") if startswith(read, "variables[")

part_words(part) := object.get(words.parts, part, trim_suffix(trim_prefix(part, "variables["), "]"))

matches(patterns, word) if {
	some p in patterns
	regex.match(p, word)
}
