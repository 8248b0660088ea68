# Names that look like NCCL variables but are not, and the variable that each stands for.
package gpudoctor.lib.variable_names

import data.tables.variables

# unknown is true of a name that begins like those of NCCL and that nothing reads.
unknown(name) if {
	startswith(name, "NCCL_")
	not variables.known[name]
	not name in {judged | some row in variables.rows; some judged in row.names}
}

# meaning is the variable that a wrong name stands for: one of the table of misspellings, one with the same words in
# another order, or one that differs by one letter.
meaning(name) := variables.misspelt[name] if {
	true
} else := min(same_words(name)) if {
	count(same_words(name)) > 0
} else := min(one_letter_off(name)) if count(one_letter_off(name)) > 0

same_words(name) := object.get(by_words, [sorted_words(name)], set())

by_words[sorted_words(k)] contains k if some k, _ in variables.known

sorted_words(name) := sort(split(name, "_"))

# Two names differ by one letter that is missing, added or wrong, when they share what is left after leaving out one
# letter, or one is what is left of the other. All words but one or, where the letter is "_", two are the same.
one_letter_off(name) := {k |
	some length in numbers.range(count(name) - 1, count(name) + 1)
	some k in by_length[length]
	count({word | some word in split(name, "_")} - {word | some word in split(k, "_")}) < 3
	count((shortened(k) | {k}) & (shortened(name) | {name})) > 0
}

by_length[count(k)] contains k if some k, _ in variables.known

shortened(name) := {concat("", [substring(name, 0, i), substring(name, i + 1, -1)]) |
	some i in numbers.range(5, count(name) - 1)
}
