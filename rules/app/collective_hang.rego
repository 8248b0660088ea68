# METADATA
# title: A collective hangs although all ranks joined it
# description: >-
#   Every rank of a process group began the same collective, and none finished it: no rank is late, none called another
#   operation, none died. The transport has stopped. What carries the data narrows it to a few causes.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html, description: What NVIDIA checks first}
#   - {ref: https://github.com/pytorch/pytorch/blob/v2.9.0/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, description: The watchdog}
# custom:
#   severity: high
#   confidence: likely
#   symptom: true
#   texts_only: true
#   needs: [job-told]
#   remedies: [other]
#   explains: [job-failed, failure-area]
#   profiles: [training]
#   since: "0.3"
#   grades:
#     stuck: >-
#       All {ranks} ranks wait in {op} number {number} of {group}. Each has begun it and none has finished it, so no rank is
#       late. NCCL_DEBUG=INFO shows what carries the data[: {ways}]
package gpudoctor.rules.collective_hang

import data.gpudoctor.lib.collectives
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.trials
import data.tables.areas

findings contains {
	"id": {true: "between-hosts", false: "on-one-host"}[between],
	"grade": "stuck",
	"subject": "job",
	"about": object.union(object.filter(stuck, ["ranks", "op", "number"]), {"group": collectives.named(stuck.group), "ways": {way.words | some way in used}}),
	"severity": weight[0],
	"confidence": weight[1],
	"evidence": array.concat([collectives.evidence(p) | some p in stuck.waiting], logs.all_evidence(object.get(stuck, "report", set()))),
	"candidates": [c | some i, c in candidates; not c.cause in {o.cause | some o in array.slice(candidates, 0, i)}],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
} if {
	not explained
	weight := {true: ["medium", "possible"], false: ["high", "likely"]}[collectives.interleaved(stuck)] # app-mismatch then comes first.
}

# explained: a process died, or a message states what the collective hangs of.
explained if logs.rank_failed
explained if logs.cause_said

stuck := sort(collectives.standing)[0]

default between := false

between if networks.multi_node
between if false in {t.same_host | some t in input.logs.transports}

# used are the ways that channels of the job took.
used := [way |
	some way in areas.hangs
	way.between in {false, between}
	count([t | some t in input.logs.transports; regex.match(way.kinds, sprintf("%s %s", [t.kind, object.get(t, "network", "")]))]) > 0
]

# ways are those used; where the log shows none, the usual one.
ways := used if {
	count(used) > 0
} else := [way | some way in areas.hangs; way.usual; way.between == between]

candidates := [{"cause": cause, "for": sprintf("it can stop %s", [way.words])} |
	some way in ways
	some cause in way.causes
	not cause in trials.cleared # An experiment shows that it makes no difference.
]

# The watchdog gave up, and the lines do not show that all ranks waited in one collective, nor that they did not.
missing contains {"fact": "logs.progress", "words": "the log does not show in which collective each rank waited"} if {
	some _ in logs.messages({"torch-watchdog-timeout", "torch-work-status"})
	count(collectives.standing) == 0
	count(collectives.apart) == 0
	not logs.went_on
	not explained
}
