# Readings of one unit of a file: a container, whose command is a part of it, a stage of a Dockerfile, or a script with
# its header, its limits and its commands. A value that the file does not show is undefined.
package gpudoctor.lib.job

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.tables.launch_files as words

# boxes are the kinds of a unit that one description makes up: what runs in it is a part of it. unboxed are the
# descriptions of a script, and of no node of Slurm's configuration.
boxes := launches.isolating | {"dockerfile"}
boxed := {l | some l in input.launches; l.kind in boxes}
unboxed := {l | count(boxed) == 0; some l in input.launches; not l.kind == "slurm-node"}

# parts are the descriptions to judge: those that use GPUs. idle is the rest of a script whose commands use none.
parts := {l | some l in (boxed | unboxed); not l.cpu_only} - idle
idle := {l | count(on_cpu) > 0; count(on_gpu) == 0; some l in unboxed; not l.command}
on_cpu := {run | some run in unboxed; run.cpu_only}
on_gpu := {run | some run in unboxed; run.command; not run.cpu_only}

# containers have namespaces, limits and devices of their own. The confined ones are not privileged.
containers := {l | some l in parts; l.kind in launches.isolating}
confined := {l | some l in containers; launches.lacks(l, {"privileged"})}

# headers are those of batch scripts, runs the programs that a file starts, and steps those of a batch job.
headers := {l | some l in parts; l.kind == "slurm"; not l.command}
header := min(headers)
runs := {l | some l in parts; l.command}
steps := {l | some l in runs; l.kind == "slurm"}

# finding is one with the text of a grade, whose slots the fields of a description and about fill.
finding(l, grade, subject, evidence, params, about) := {
	"grade": grade, "subject": subject, "evidence": evidence, "params": params,
	"about": object.union(l, object.union({"opening": opening(l), "title": launches.title(l)}, about)),
}

# of_setting is a finding about a variable in force.
of_setting(l, grade, name, evidence, about) := finding(
	l, grade, name, array.concat(evidence, [setting_fact(l, name)]), {"variable": name},
	object.union({"value": settings(l)[name].value}, about),
)

# fact is a part of a description as evidence, and setting_fact a variable in force.
fact(l, part, value) := placed(l, part, value, launches.place_of(l, part))
setting_fact(l, name) := placed(l, entry("variables", name), s.value, s.place) if s := settings(l)[name]
placed(l, part, value, place) := {"fact": sprintf("launches[%s].%s", [object.get(l, "name", l.kind), part]), "value": value, "source": place}
entry(part, name) := sprintf("%s[%s]", [part, name])

# opening begins a sentence with the name of a description.
opening(l) := concat("", ["The", trim_prefix(launches.title(l), "the")])

# settings are the variables in force for a description, each with its value and place: its own, and what the script
# around it exports.
settings(l) := object.union({name: s | not l.kind in boxes; some name, s in exported}, own(l))

own(l) := {name: {"value": value, "place": launches.place_of(l, entry("variables", name))} | some name, value in l.variables}

exported[name] := {"value": v.value, "place": launches.place(v)} if {
	some name, all in by_name
	count({v.value | some v in all}) == 1
	not entry("variables", name) in unclear
	v := min(all)
}

by_name[v.name] contains v if some v in input.env.variables

# unclear are variables that a script also sets to values that it does not show, or that are one command's alone.
unclear := union({
	{part | some l in input.launches; l.kind == "shell"; some part, _ in l.unknown},
	{entry("variables", name) | some l in input.launches; l.command; some name, _ in l.variables},
})

# judged are the settings to judge: those of each container and each command, and, once, what a script exports.
judged[l][name] := settings(l)[name] if {
	some l in parts
	l.kind != "shell"
	some name, _ in l.variables
}

judged[min(unboxed & parts)][name] := s if some name, s in settings(min(unboxed & parts))

# stated counts the GPUs of a node that a description gets by its own words, or those of the batch script around it.
stated(l) := l.gpus if {
	l.gpus > 0
} else := max(granted) if {
	inherits(l)
	count(granted) == 1
}

# gpus counts them, or those of the target for what asks for all, or says nothing.
gpus(l) := stated(l)
gpus(l) := target_gpus if l.gpus == -1

gpus(l) := target_gpus if {
	inherits(l)
	count(granted) == 0
	count({h | some h in parts; h.kind == "slurm"; not launches.shows(h, {"gpus"})}) == 0
}

# target_gpus counts the GPUs of the target, and granted are those of a node that batch scripts ask for.
target_gpus := count(facts.gpus) if count(facts.gpus) > 0
granted := {l.gpus | some l in parts; l.kind == "slurm"; l.gpus > 0}

inherits(l) if {
	not l.kind in boxes
	launches.lacks(l, {"gpus"})
}

# ranks counts the processes with a GPU of their own that a description starts on one node. Ray spreads a server over
# nodes that its command does not name.
ranks(l) := l.processes if {
	l.processes
} else := ceil((l.tensor_parallel * object.get(l, "pipeline_parallel", 1)) / object.get(l, "nodes", 1)) if {
	launches.shows(l, {"processes", "tensor_parallel", "pipeline_parallel", "nodes"})
	not startswith(object.get(l, "object", ""), "Ray")
	not says(l, `(^|[=_/-])ray\b`)
}

says(l, pattern) if regex.match(pattern, l.command[_])

# several is true of a description that uses more than one GPU of a node. All GPUs of an unknown machine may be one.
several(l) if gpus(l) > 1

several(l) if {
	not gpus(l)
	not l.gpus == 0
	launches.shows(l, {"gpus"})
	not l.kind == "kubernetes"
	ranks(l) > 1
}

asks(l) if gpus(l) > 0
asks(l) if l.gpus == -1

# own_network is true of a container whose only network is one of its engine or cluster.
own_network(l) if {
	l in containers
	launches.shows(l, {"network"})
	launches.lacks(l, {"networks"})
	not regex.match("^(host$|container:)", object.get(l, "network", ""))
}

rdma(l) := array.concat(
	[fact(l, entry("resources", name), name) | some name, n in l.resources; n != "0"; matches(words.rdma_resources, name)],
	[fact(l, part, value) | some part, pattern in rdma_paths; some value in l[part]; regex.match(pattern, value)],
)

rdma_paths := {"devices": "^/dev/infiniband", "mounts": `^/dev(/infiniband[^:]*)?:/dev(/infiniband|$)`}

deviceless contains l if {
	some l in confined
	l.kind == "kubernetes"
	launches.lacks(l, {"gpus"})
	launches.shows(l, {"resources", "requests"})
	count({name | some part in ["resources", "requests"]; some name, _ in l[part]; regex.match(`/|^claims$`, name)}) == 0
}

# of_provider is true of a description for the network of a provider.
of_provider(l, provider) if {
	some list, found in {
		"image": {l.image | l.image}, "beside": object.keys(settings(l)),
		"mounts": {mount | some mount in l.mounts}, "resources": {name | some name, _ in l.resources},
	}
	matches(provider[list], found[_])
}

# undecided are values that the file does not show, of parts that a rule reads, in words. "variables[*]" is any variable.
undecided(reads) := {sprintf("%s of %s is %s (%s), whose value the file does not show", [part, launches.title(l), text, launches.place_of(l, name)]) |
	some l in parts
	some name, text in l.unknown
	count({name, regex.replace(name, `^variables\[.*`, "variables[*]")} & (reads | {"variables" | strings.any_prefix_match(reads, "variables[")})) > 0
	part := object.get(words.parts, name, trim_suffix(trim_prefix(name, "variables["), "]"))
}

matches(patterns, word) := count({p | some p in patterns; regex.match(p, word)}) > 0
