# Names that look like NCCL variables but are not, and the variable that each stands for.
package gpudoctor.lib.variable_names

import data.tables.variables

# unknown is true of a name that begins like those of NCCL and that nothing reads.
unknown(name) if {
	startswith(name, "NCCL_")
	not variables.known[name]
	not name in {judged | some row in variables.rows; some judged in row.names}
}

# meaning is the variable that a wrong name stands for: one of the table of misspellings, else one with the same words in
# another order, or one that differs by one letter.
meaning(name) := variables.misspelt[name] if {
	true
} else := min({k | some k, _ in variables.known; true in {regex.match(pattern, k), sort(split(k, "_")) == words}}) if {
	words := sort(split(name, "_"))
	pattern := one_letter_off(name)
}

# one_letter_off matches the names that differ from one by a letter that is missing, added or wrong.
one_letter_off(name) := sprintf("^(%s)$", [concat("|", [sprintf("%s.?%s", [substring(name, 0, i), substring(name, i + skipped, -1)]) |
	some i in numbers.range(5, count(name))
	some skipped in [0, 1]
])])
