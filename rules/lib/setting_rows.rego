# METADATA
# title: The row of the table that applies to a setting
# description: >-
#   The first row of the table of variables that matches the setting in force,
#   and its severity on this machine.
package gpudoctor.lib.setting_rows

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.circumstances
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.nccl_values
import data.gpudoctor.lib.peer_access
import data.tables.variables

# decisive is the first row that fits a variable.
decisive(name) := variables.rows[min(fitting[name])]

fitting[name] contains i if {
	some i, row in variables.rows
	some name in row.names
	value := trim_space(facts.variable[name].value)
	value != ""
	fits(row, value)
	every circumstance in object.get(row, "when", []) {
		circumstances.holds(circumstance, value)
	}
	not excepted(row, value)
	not unsaid(row)
}

# decisive_for is the first row that fits another value of a variable than the one in force,
# which one of several containers sets. Rows that need a message do not fit it.
decisive_for(name, value) := variables.rows[min({i |
	some i, row in variables.rows
	name in row.names
	not row.said
	fits(row, value)
	every circumstance in object.get(row, "when", []) {
		circumstances.holds(circumstance, value)
	}
	not excepted(row, value)
})]

unsaid(row) if {
	row.said
	count(logs.messages(row.said)) == 0
}

excepted(row, value) if {
	some circumstance in row.unless
	circumstances.holds(circumstance, value)
}

# fits compares the value.
fits(row, value) if nccl_values.number(value) in row.is

fits(row, value) if nccl_values.number(value) <= row.at_most

fits(row, value) if lower(value) in row.text

fits(row, value) if regex.match(row.like, value)

fits(row, value) if {
	row.lacks
	not startswith(value, "^")
	words := {trim_space(w) | some w in split(lower(value), ",")}
	count(words & {w | some w in row.lacks}) == 0
}

fits(row, _) if count(object.keys(row) & {"is", "at_most", "text", "like", "lacks"}) == 0

# weighed is a row's severity, except for a setting that a log or a listing shows without
# any complaint: it was chosen for that run, which succeeded, and its cost there is not
# known.
weighed(row, v) := "low" if {
	severity(row) in {"critical", "high", "medium"}
	chosen(row, v)
} else := severity(row)

chosen(row, v) if {
	not input.profile == "launch"
	not row.said
	some t in input.texts
	t.name == v.source
	count(logs.complaints) == 0
	count(benchmarks.low) == 0
}

# severity of a row; one that goes by loss is high where more than half of the
# bandwidth is lost, or what is lost was not measured.
severity(row) := row.severity if {
	row.severity != "by-loss"
} else := "medium" if {
	peer_access.share_lost <= 0.5
} else := "high"

# word_remark explains why a word counts as 0.
word_remark(row, value) := " (NCCL reads a number here, and treats a word as 0)" if {
	row.is
	regex.match(`^[a-zA-Z]`, value)
} else := ""
