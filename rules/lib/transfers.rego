# Transfers between GPUs and their results. Groups the probe's transfers by ordered pair and shows them. A group maps
# ordered pairs, the directions, to their transfers.
package gpudoctor.lib.transfers

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peers

tried := {[t.source, t.destination] | some t in facts.peer_transfers}

all(group) := {t | some ts in group; some t in ts}

gpus(group) := sort({address | some direction, _ in group; some address in direction})

# subject names a group: the host where each pair that was tried is in it.
subject(group) := "host" if {
	count(group) > 2
	object.keys(group) == tried
} else := first(group) if {
	count({peers.key(d[0], d[1]) | some d, _ in group}) == 1
} else := sprintf("%s and %d more", [first(group), count(group) - 1])

first(group) := min({facts.pair_name(d[0], d[1]) | some d, _ in group})

# evidence shows the transfers of a group, each transfers one by one, with some of their fields.
evidence(group, fields) := [shown(facts.pair_name(d[0], d[1]), [object.filter(t, fields) | some t in sort(group[d])]) |
	some d in sort(object.keys(group))
]

each(ts, fields) := [shown(facts.pair_name(t.source, t.destination), object.filter(t, fields)) | some t in sort(ts)]

shown(place, value) := fact(sprintf("transfers[%s]", [place]), value)

# device_evidence shows what became of some GPUs, report_evidence fields of the probe as a whole.
device_evidence(addresses) := [fact(sprintf("devices[%s]", [d.address]), shown_fields) |
	some d in input.transfers.devices
	d.address in addresses
	shown_fields := object.filter(d, ["outcome", "reason", "error_code", "error_name", "call"])
]

report_evidence(fields) := [fact(field, input.transfers[field]) | some field in fields]

fact(place, value) := {"fact": sprintf("transfers.%s", [place]), "value": value, "source": "probe"}

# accounted names transfers for a finding's accounts_for.
accounted(ts) := sort({peers.named(t) | some t in ts})

tests(ts) := {t.test | some t in ts}
