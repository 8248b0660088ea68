# Transfers between GPUs and their results. Groups the probe's transfers by ordered pair and describes their results. A
# group maps ordered pairs, the directions, to their transfers.
package gpudoctor.lib.transfers

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peers

# tried are the ordered pairs between which anything was tried.
tried := {[t.source, t.destination] | some t in facts.peer_transfers}

# all are the transfers of a group.
all(group) := {t | some ts in group; some t in ts}

# gpus and pairs name what a group is about.
gpus(group) := sort({address | some direction, _ in group; some address in direction})

pairs(group) := sort({facts.pair_name(d[0], d[1]) | some d, _ in group})

# subject names a group: the host where each pair that was tried is in it.
subject(group) := "host" if {
	count(group) > 2
	object.keys(group) == tried
} else := pairs(group)[0] if {
	count({peers.key(d[0], d[1]) | some d, _ in group}) == 1
} else := sprintf("%s and %d more", [pairs(group)[0], count(group) - 1])

# evidence shows the transfers of a group, with some of their fields.
evidence(group, fields) := [{
	"fact": sprintf("transfers.transfers[%s]", [facts.pair_name(d[0], d[1])]),
	"value": [object.filter(t, fields) | some t in sort(group[d])],
	"source": "probe",
} |
	some d in sort(object.keys(group))
]

# each shows transfers one by one, with some of their fields.
each(ts, fields) := [{
	"fact": sprintf("transfers.transfers[%s]", [facts.pair_name(t.source, t.destination)]),
	"value": object.filter(t, fields),
	"source": "probe",
} |
	some t in sort(ts)
]

# device_evidence shows what became of some GPUs, report_evidence fields of the probe as a whole.
device_evidence(addresses) := [{
	"fact": sprintf("transfers.devices[%s]", [d.address]),
	"value": object.filter(d, ["outcome", "reason", "error_code", "error_name", "call"]),
	"source": "probe",
} |
	some d in input.transfers.devices
	d.address in addresses
]

report_evidence(fields) := [{"fact": sprintf("transfers.%s", [field]), "value": value, "source": "probe"} |
	some field in fields
	value := input.transfers[field]
]

# accounted names transfers for a finding's accounts_for.
accounted(ts) := sort({peers.named(t) | some t in ts})

tests(ts) := {t.test | some t in ts}

# path is the way within a GPU that a test takes: its copy engine or its SMs,
# in one process, or memory that another process exported.
path := {
	"copy": "copy engine", "copy-read": "copy engine", "bidirectional": "copy engine", "all-at-once": "copy engine",
	"sm-store": "SM", "sm-load": "SM", "handshake": "SM", "atomics": "SM", "latency": "SM",
	"between-processes": "between processes",
}

paths(ts) := {path[t.test] | some t in ts}

# reasons are what the probe says of transfers.
reasons(ts) := {t.reason | some t in ts; t.reason != ""}

reasons_text(ts) := concat("; ", sort(reasons(ts))) if count(reasons(ts)) > 0

# what names the transfers of a group, became says what became of them, each outcome with its tests, the worst first.
what(group) := sprintf("Transfers from GPU %s to %s", [d[0], d[1]]) if {
	count(group) == 1
	some d, ts in group
	not only_mutual(ts)
} else := sprintf("Transfers between GPUs %s and %s, in both directions,", gpus(group)) if {
	count(gpus(group)) == 2
} else := sprintf("Transfers over %d of %d ordered pairs of GPUs", [count(group), count(tried)])

became(ts) := concat("; others ", [words |
	some outcome in ["hang", "corrupt", "error"]
	alike := {t | some t in ts; t.outcome == outcome}
	count(alike) > 0
	words := outcome_words(outcome, alike)
])

outcome_words("hang", ts) := sprintf("hang (%s)", [tests_text(ts)])

outcome_words("corrupt", ts) := sprintf("report success and deliver wrong data (%s: %s)", [tests_text(ts), found(ts)])

outcome_words("error", ts) := sprintf("fail with %s (%s)", [errors_text(ts), tests_text(ts)])

tests_text(ts) := concat(", ", sort({name(t) | some t in ts}))

name(t) := sprintf("%s by %s", [t.test, t.way]) if {
	t.way != ""
} else := t.test

errors_text(ts) := concat(", ", sort(names)) if {
	names := {t.error_name | some t in ts; t.error_name != ""}
	count(names) > 0
} else := sprintf("an error (%s)", [reasons_text(ts)]) if {
	reasons_text(ts)
} else := "an error"

stood := {
	"poison": "nothing arrived",
	"zeros": "zeros arrived",
	"foreign": "the data of another transfer arrived",
	"other": "other bytes arrived",
	"source": "the source was changed",
	"overrun": "bytes beside the destination were changed",
}

# in_part is what stands there of a transfer that arrived in part.
in_part := {"poison": "a part did not arrive", "zeros": "a part arrived as zeros"}

now_holds(t) := in_part[t.found] if {
	t.bad_bytes < t.bytes
} else := stood[t.found]

found(ts) := concat("; ", array.concat(sort({now_holds(t) | some t in ts}), [amount(ts)]))

amount(ts) := sprintf("up to %s wrong", [facts.bytes(max(bad))]) if {
	bad := {t.bad_bytes | some t in ts; t.bad_bytes > 0}
	count(bad) > 0
} else := reasons_text(ts) if {
	reasons_text(ts)
} else := "bytes differ"

# mutual are the tests that concern both directions of a pair at once.
mutual := {"handshake", "bidirectional"}

only_mutual(ts) if tests(ts) - mutual == set()
