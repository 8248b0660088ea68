# Results of control experiments. Two runs that differ in one thing, and their results: which of them fails, what the
# difference disables, and therefore what is at fault and what is not.
package gpudoctor.lib.trials

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.rdma
import data.tables.experiments

# bad is true of a run that did not finish.
bad(run) if run.outcome in {"failed", "hung"}

# beats is true where one run works and the other does not, and slower where both work
# and one of them takes at least twice as long.
beats(better, worse) if {
	better.outcome == "ok"
	bad(worse)
}

slower(better, worse) if {
	better.outcome == "ok"
	worse.outcome == "ok"
	better.gbps >= experiments.faster * worse.gbps
}

# pairs are the two runs of each comparison, in both orders.
pairs[i] contains {"one": input.runs[c.a], "other": input.runs[c.b]} if some i, c in input.comparisons
pairs[i] contains {"one": input.runs[c.b], "other": input.runs[c.a]} if some i, c in input.comparisons

# value is what a run has a variable set to; empty where it is not set.
value(run, name) := object.get(object.get(run, "variables", {}), name, "")

# switch is the first row of the table that fits, by the name of what it switches.
switch[name] := experiments.switches[min(rows)] if {
	some c in input.comparisons
	c.kind == "variable"
	name := c.name
	rows := {i |
		some i, row in experiments.switches
		name in row.names
		fits(row)
	}
	count(rows) > 0
}

fits(row) if not row.when
fits(row) if row.when == rdma.link

# off is true of a run in which the switch is off.
off(run, name) if regex.match(switch[name].off, value(run, name))

# switched are the comparisons in which a switch is off in the one run and not in the other.
switched[i] := {"row": switch[c.name], "name": c.name, "off": p.one, "on": p.other} if {
	some i, c in input.comparisons
	c.kind == "variable"
	some p in pairs[i]
	off(p.one, c.name)
	not off(p.other, c.name)
}

# blamed are those that show what is at fault: the run with the switch off is better.
blamed contains object.union(s, {"slow": slow}) if {
	some s in switched
	some slow in verdicts({"one": s.off, "other": s.on})
}

# Of two choices of an interface, a device or an algorithm one works.
blamed contains {"row": switch[c.name], "name": c.name, "off": p.one, "on": p.other, "slow": false} if {
	some i, c in input.comparisons
	c.kind == "variable"
	some p in pairs[i]
	off(p.one, c.name)
	off(p.other, c.name)
	switch[c.name].off == "."
	beats(p.one, p.other)
}

# harmful are the variables with which a run fails that works without them.
harmful contains {"name": c.name, "with": p.one, "without": p.other} if {
	some i, c in input.comparisons
	c.kind == "variable"
	upper(c.name) == c.name # No setting of the platform.
	some p in pairs[i]
	value(p.one, c.name) != ""
	value(p.other, c.name) == ""
	beats(p.other, p.one)
}

# cleared are the causes that an experiment rules out: the run fails alike with and without
# what they are about, and no other experiment supports them.
cleared := {cause |
	some s in switched
	bad(s.off)
	alike(s.off, s.on)
	some cause in s.row.causes
} - {cause |
	some s in blamed
	some cause in s.row.causes
}

alike(a, b) if {
	a.outcome == b.outcome
	object.get(a, "message", "") == object.get(b, "message", "")
}

# causes are those of a row on this machine: AMD's GPUs have rules of their own.
causes(row) := [object.get(of_amd, cause, cause) | some cause in row.causes] if {
	facts.only_amd
} else := row.causes

of_amd := {"iommu-translation": "amd-iommu", "nccl-bug": "rccl-bug"}

# sets are the runs on chosen GPUs that some other run on others is compared to.
sets contains run if {
	some i, c in input.comparisons
	c.kind == "devices"
	some p in pairs[i]
	run := p.one
}

failing contains {d | some d in run.devices} if {
	some run in sets
	bad(run)
}

working contains {d | some d in run.devices} if {
	some run in sets
	run.outcome == "ok"
}

# suspects are the GPUs that all failing runs have in common and no working run uses.
suspects := intersection(failing) - union(working) if {
	count(failing) > 0
	count(working) > 0
}

# grown are the comparisons in which a run on more GPUs or nodes fails.
grown contains {"kind": c.kind, "few": p.one, "many": p.other} if {
	some i, c in input.comparisons
	c.kind in {"gpus", "nodes"}
	some p in pairs[i]
	p.one[c.kind] < p.other[c.kind]
	not alone(p.one)
	beats(p.one, p.other)
}

# alone is true of a run on one GPU, which moves nothing to another.
alone(run) if run.gpus == 1

# releases are the comparisons in which one version of the library works.
releases contains {"library": c.name, "better": p.one, "worse": p.other, "slow": slow} if {
	some i, c in input.comparisons
	c.kind == "version"
	some p in pairs[i]
	some slow in verdicts(p)
}

verdicts(p) := {slow |
	some slow in [true, false]
	better(slow, p)
}

better(false, p) if beats(p.one, p.other)
better(true, p) if slower(p.one, p.other)
