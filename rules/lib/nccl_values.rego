# METADATA
# title: How NCCL reads its variables
# description: >-
#   Numbers, distance levels and lists of words, as NCCL parses them from a
#   variable.
package gpudoctor.lib.nccl_values

import data.tables.variables

# number reads a value as strtoll does: as much of a number as it begins with,
# and 0 for a word (nccl src/misc/param.cc). Hexadecimal numbers are not
# compared.
number(value) := to_number(regex.replace(digits[0], `^\+?(-?)0*([0-9])`, "$1$2")) if {
	digits := regex.find_n(`^[+-]?[0-9]{1,15}`, value, 1)
	count(digits) == 1
	not regex.match(`^[+-]?0[xX]`, value)
} else := 0 if {
	regex.match(`^[^0-9+-]`, value)
}

# place is the position of a level in the order of distance.
place(value) := min([i | some i, level in variables.levels; level == value])

place(value) := place_of_number(value) if regex.match(`^[0-9]`, value)

place_of_number(value) := min([i |
	some i, level in variables.levels
	level == variables.old_levels[min([number(value), count(variables.old_levels) - 1])]
])

# words_known is true of a list as NCCL_ALGO takes it ("^tree", or
# "allreduce:ring,tree;broadcast:ring"), all of whose words are known.
words_known(value, known) if {
	every part in split(lower(value), ";") {
		list := regex.replace(part, `^[a-z]*:`, "")
		every word in split(trim_left(list, "^"), ",") {
			word in known
		}
	}
}
