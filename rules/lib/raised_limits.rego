# METADATA
# title: Soft limits that are too low
# description: >-
#   The limits of the process with which the collectives work once they are raised to the
#   hard ones, as an arm of the probe tried.
package gpudoctor.lib.raised_limits

import data.gpudoctor.lib.facts

# enough are the limits with which they work once they are raised: the fewest that were.
default enough := []

enough := sort([[count(limits), limits] |
	some a in input.collectives.arms
	a.name == "limits-raised"
	a.outcome == "ok"
	limits := sort(object.keys(a.raised))
])[0][1]

# words names them.
words := concat(" and ", [names[limit] | some limit in enough])

names := {"nofile": "open files, RLIMIT_NOFILE", "memlock": "locked memory, RLIMIT_MEMLOCK"}

# cures raise them for good.
cures := [id | some limit in enough; some id in remedies[limit]]

remedies := {"nofile": ["raise-process-limits"], "memlock": memlock}

memlock := ["raise-memlock"] if {
	facts.in_container
} else := ["raise-memlock-limits"]
