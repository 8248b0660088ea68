# Results of control experiments. Two runs that differ in one thing, and their results: which of them fails, what the
# difference disables, and therefore what is at fault and what is not.
package gpudoctor.lib.trials

import data.gpudoctor.lib.rdma
import data.tables.experiments

bad(run) if run.outcome in {"failed", "hung"}

beats(better, worse) if {
	better.outcome == "ok"
	bad(worse)
}

# pairs are the two runs of each comparison of a kind, in both orders.
pairs[c.kind] contains {"name": object.get(c, "name", ""), "one": input.runs[one], "other": input.runs[other]} if {
	some c in input.comparisons
	some [one, other] in [[c.a, c.b], [c.b, c.a]]
}

value(run, name) := object.get(object.get(run, "variables", {}), name, "")

# setting is how a run sets a variable; what it is set to is not always told.
setting(run, name) := name if value(run, name) == "set"

else := sprintf("%s=%s", [name, value(run, name)])

# row is the first of the table that fits a setting: its name, and a value that turns off what it is about.
row(name, value) := experiments.switches[min(rows)] if {
	rows := {i |
		some i, r in experiments.switches
		some known in r.names
		covers(known, name)
		regex.match(r.off, value)
		fits(r)
	}
	count(rows) > 0
}

covers(known, name) if known == name

covers(known, name) if {
	endswith(known, "_")
	startswith(name, known)
	not name in named
}

# named are those that a row is about, or that change nothing.
named := {name | some r in experiments.switches; some name in r.names} | {name | some name in experiments.ignored}

fits(r) if not r.when
fits(r) if r.when == rdma.link

# switched are the comparisons in which a switch is off in the one run and not in the other.
switched contains object.union(p, {"row": r}) if {
	some p in pairs.variable
	r := row(p.name, value(p.one, p.name))
	not regex.match(r.off, value(p.other, p.name))
}

# blamed are those that show what is at fault: the run with the switch off is better.
blamed contains {"row": p.row, "name": p.name, "off": p.one, "on": p.other, "slow": slow} if {
	some p in switched
	some slow in verdicts(p)
}

# Of two choices of an interface, a device or an algorithm one works.
blamed contains {"row": r, "name": p.name, "off": p.one, "on": p.other, "slow": false} if {
	some p in pairs.variable
	r := row(p.name, value(p.one, p.name))
	r.off == "."
	value(p.other, p.name) != ""
	beats(p.one, p.other)
}

# harmful are the variables with which a run fails that works without them, each with what is at fault then.
harmful contains {"name": p.name, "with": p.other, "without": p.one, "cause": object.get(reverse, p.name, "env-misconfig")} if {
	some p in pairs.variable
	upper(p.name) == p.name # No setting of the platform.
	value(p.one, p.name) == ""
	value(p.other, p.name) != ""
	beats(p.one, p.other)
}

reverse[name] := r.reverse if {
	some r in experiments.switches
	some name in r.names
}

# cleared are the causes that an experiment rules out: the run fails alike with and without
# what they are about, and no other experiment supports them.
cleared := {cause |
	some p in switched
	bad(p.one)
	p.one.outcome == p.other.outcome
	object.get(p.one, "message", "") == object.get(p.other, "message", "")
	some cause in p.row.causes
} - {cause | some s in blamed; some cause in s.row.causes}

# sets are the runs on chosen GPUs that some other run on others is compared to.
sets contains p.one if some p in pairs.devices

failing := {{d | some d in run.devices} | some run in sets; bad(run)}

working := {{d | some d in run.devices} | some run in sets; run.outcome == "ok"}

# suspects are the GPUs that all failing runs have in common and no working run uses.
suspects := intersection(failing) - union(working) if {
	count(failing) > 0
	count(working) > 0
}

# verdicts say whether the other run of a pair is worse (false), or works and takes at least twice as long (true): its
# bandwidth is low, or its small messages are late.
verdicts(p) := {false | beats(p.one, p.other)} | {true |
	[p.one.outcome, p.other.outcome] == ["ok", "ok"]
	faster(p.one, p.other)
}

faster(one, other) if one.gbps >= experiments.faster * other.gbps
faster(one, other) if other.microseconds >= experiments.faster * one.microseconds
