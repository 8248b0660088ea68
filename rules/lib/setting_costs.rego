# METADATA
# title: What settings cost, as it was measured
# description: >-
#   Findings about variables without which collectives are clearly faster on this machine,
#   for rule env-misconfig.
package gpudoctor.lib.setting_costs

import data.gpudoctor.lib.collective_cost
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peer_access
import data.gpudoctor.lib.setting_rows
import data.gpudoctor.lib.surroundings
import data.tables.variables

# told is true of a variable that the measurement speaks about, where the table does not weigh it
# by what transfers lose.
told(name) if {
	name in collective_cost.slower.variables
	not by_loss(name)
}

by_loss(name) if setting_rows.decisive(name).severity == "by-loss"

# What is set for a reason costs what it costs.
meant(name) if setting_rows.decisive(name).silent

measured contains {
	"id": "restricts",
	"subject": facts.list({name | some name in slower.variables}),
	"message": sprintf("%s: all-reduce runs at %v GB/s as the environment is configured, and at %v GB/s without, measured here", [
		concat(", ", [sprintf("%s=%s, set %s", [name, shown(v.value), surroundings.where(v)]) |
			some name in slower.variables
			v := facts.variable[name]
		]),
		peer_access.rate(slower.gbps), peer_access.rate(slower.without_gbps),
	]),
	"evidence": array.concat(
		[surroundings.variable_evidence(facts.variable[name]) | some name in slower.variables],
		[{"fact": "collectives.arms", "value": object.remove(slower, ["lost"]), "source": "probe"}],
	),
	"severity": {true: "high", false: "medium"}[slower.lost > 0.5],
	"confidence": "confirmed",
	"remedies": ["unset-env"],
	"params": {"variables": slower.variables, "source": variables.guide},
} if {
	slower := collective_cost.slower
	every name in slower.variables {
		facts.variable[name]
		not by_loss(name)
		not meant(name)
	}
}

# shown is a value in a message; an empty or long one is made readable.
shown(value) := sprintf("%s...", [substring(value, 0, 60)]) if {
	count(value) > 60
} else := value
