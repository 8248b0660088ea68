# Traits of the nodes of a fleet (input.fleet), for rules of the profile "fleet".
package gpudoctor.lib.fleet

differing := {t | some t in input.fleet.traits; count(t.values) > 1}

# The nodes that have another value than most; all of them if no value is that of more than half.
odd(t) := [node | some v in t.values; some node in v.nodes]

# What most nodes have; undefined if there is no such value.
usual(t) := t.values[0].value if not t.values[0].nodes

# The most frequent values, each with its number of nodes and the names of some, for a message.
said(t) := [sprintf("%s on %d%s", [v.value, v.count, named(object.get(v, "nodes", []))]) | some v in array.slice(t.values, 0, 4)]

named([]) := ""
named(nodes) := sprintf(" (%s%s)", [concat(", ", array.slice(nodes, 0, 3)), concat("", [", ..." | count(nodes) > 3])]) if count(nodes) > 0

evidence(t) := {
	"fact": sprintf("fleet.traits[%s].values", [t.name]),
	"value": [sprintf("%s (%d)", [v.value, v.count]) | some v in array.slice(t.values, 0, 20)],
	"source": "the reports of the nodes",
}
