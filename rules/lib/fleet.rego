# Traits of the nodes of a fleet (input.fleet), for rules of the profile "fleet".
package gpudoctor.lib.fleet

differing contains t if {
	some t in input.fleet.traits
	count(t.values) > 1
}

# The nodes that have another value than most; all of them if no value is that of more than half.
odd(t) := [node | some v in t.values; some node in v.nodes]

# What most nodes have; undefined if there is no such value.
usual(t) := t.values[0].value if not t.values[0].nodes

# Each value with its number of nodes and the names of some, for a message.
said(t) := array.concat(
	[sprintf("%s on %d%s", [v.value, v.count, named(v)]) | some v in array.slice(t.values, 0, 4)],
	[sprintf("and %d more values", [count(t.values) - 4]) | count(t.values) > 4],
)

named(v) := "" if not v.nodes
named(v) := sprintf(" (%s%s)", [concat(", ", array.slice(v.nodes, 0, 3)), more(count(v.nodes) - 3)]) if v.nodes

more(n) := "" if n <= 0
more(n) := sprintf(" and %d more", [n]) if n > 0

evidence(t) := {
	"fact": sprintf("fleet.traits[%s].values", [t.name]),
	"value": [sprintf("%s (%d)", [v.value, v.count]) | some v in array.slice(t.values, 0, 20)],
	"source": "the reports of the nodes",
}
