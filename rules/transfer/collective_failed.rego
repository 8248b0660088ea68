# METADATA
# title: Collectives of NCCL or RCCL fail
# description: >-
#   The probe ran all-reduce, messages and all-to-all with the library that a job would load, and they hung, failed or
#   delivered wrong data. The same was tried without single transports and without the library's variables: what works
#   then says which part fails.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: What NVIDIA checks first where collectives fail
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: The variables that turn transports off
# custom:
#   severity: critical
#   confidence: confirmed
#   symptom: true
#   own_log: true
#   cause: other
#   needs: [collectives.outcome]
#   remedies: [nccl-p2p-disable, nccl-shm-disable, nccl-cumem-disable, nccl-nvls-disable, increase-shm, unset-env, raise-process-limits, raise-memlock, raise-memlock-limits, set-socket-ifname, upgrade-nccl, upgrade-driver, reboot-or-reload-driver, other]
#   profiles: [training]
#   since: "0.4"
package gpudoctor.rules.collective_failed

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.collective_cost
import data.gpudoctor.lib.facts

bad := {"corrupt", "hang", "error"}

severity_of := {"corrupt": "critical", "hang": "critical", "error": "high"}

became := {"corrupt": "deliver wrong data", "hang": "hang", "error": "fail"}

# first is the environment as it is configured.
first := input.collectives.arms[0]

# arm are the other arms by name, the first of each, without those that search among the variables.
arm[name] := [a | some i, a in input.collectives.arms; i > 0; a.name == name][0] if {
	some name in ({a.name | some a in input.collectives.arms} - {"as-configured", "without"})
}

reason(a) := object.get(a, "reason", "the reason is not known")

# parts are the arms that work and say most of the part that fails, the one that decides most first: the id of the part,
# what it means, and what helps.
parts := [
	["cleaned", "variables", sprintf("Without %s they work: one of these variables causes it", [concat(", ", unset)]), variable_cures],
	["limits-raised", "limits", sprintf("With a higher soft limit (%s) they work: that limit of this process is too low", [words]), limit_cures],
	["nvls-off", "nvls", "Without NVLS they work: the multicast of the NVSwitches fails", ["nccl-nvls-disable", "upgrade-driver"]],
	["cumem-off", "cumem", "Without cuMem they work: sharing memory by cuMem fails", ["nccl-cumem-disable", "upgrade-nccl", "upgrade-driver"]],
	["p2p-off", "p2p", "Without peer-to-peer access they work: that path fails", ["nccl-p2p-disable", "upgrade-driver", "reboot-or-reload-driver"]],
	["shm-off", "shm", "Without shared memory they work: /dev/shm fails", ["increase-shm", "nccl-shm-disable"]],
	["p2p-shm-off", "both", "Over the network they work: both peer-to-peer access and shared memory fail", ["nccl-p2p-disable", "increase-shm"]],
	["in-process", "processes", "Inside one process they work: sharing memory between processes fails", ["nccl-p2p-disable", "upgrade-driver"]],
]

# works are the parts without which they work.
works := [p | some p in parts; good(p[0])]

good(name) if arm[name].outcome == "ok"

good("limits-raised") if count(enough) > 0

# verdict is the part that fails: its id, what that means, and what helps.
verdict := array.slice(works[0], 1, 4) if {
	count(works) > 0
} else := ["everywhere", everywhere, array.concat(rendezvous_cures, ["upgrade-nccl", "reboot-or-reload-driver", "other"])]

everywhere := sprintf("They fail with %s as well; what else might help was not tried to its end", [facts.list(alike)]) if {
	incomplete
	count(alike) > 0
} else := "They fail without any single transport and without the library's variables as well: the library, the driver or the rendezvous fails" if {
	not incomplete
	count(input.collectives.arms) > 1
} else := "Nothing else was tried"

# alike are the arms that fail as well.
alike := {name | some name, a in arm; a.outcome in bad}

# incomplete is true where the time ran out before all arms had said something.
incomplete if count(input.collectives.untried) > 0

incomplete if {
	some a in arm
	a.outcome == "unknown"
}

# unset are the variables without which they work: the fewest that were removed.
default unset := []

unset := found_culprits if {
	count(found_culprits) > 0
} else := arm.cleaned.unset

# found_culprits are those that a search among the variables of the arm "cleaned" found.
found_culprits := sort([[count(a.unset), a.unset] |
	first.outcome in bad
	some a in input.collectives.arms
	a.name == "without"
	a.outcome == "ok"
])[0][1]

# at_fault is true of variables that are known to be at fault.
at_fault if count(unset) == 1
at_fault if count(found_culprits) > 1

default variable_cures := ["other"]

variable_cures := ["unset-env"] if at_fault

default rendezvous_cures := []

rendezvous_cures := ["set-socket-ifname"] if attempts.refused.connection

# An interface may explain what a single variable that names one causes, and nothing else.
id := "setting" if {
	verdict[0] == "variables"
	at_fault
	not endswith(concat(" ", unset), "_IFNAME")
} else := "setting" if {
	verdict[0] == "variables"
	count(found_culprits) > 1
} else := verdict[0]

# settings are the variables that the cures name.
default settings := {}

settings := {"variable": unset[0]} if {
	verdict[0] == "variables"
	count(unset) == 1
} else := {"variables": unset} if {
	verdict[0] == "variables"
	count(found_culprits) > 1
} else := {"variable": "NCCL_SOCKET_IFNAME"} if {
	verdict[0] == "everywhere"
	count(rendezvous_cures) > 0
}

findings contains {
	"id": id,
	"subject": "host",
	"affects": collective_cost.gpus,
	"message": sprintf("Collectives of %s %s: %s. %s", [collective_cost.library, became[first.outcome], reason(first), verdict[1]]),
	"evidence": array.concat([arm_evidence("as-configured", first)], [arm_evidence(name, a) | some [name, _, _, _] in parts; a := arm[name]]),
	"params": settings,
	"severity": severity_of[first.outcome],
	"remedies": verdict[2],
} if first.outcome in bad

arm_evidence(name, a) := {
	"fact": sprintf("collectives.arms[%s]", [name]),
	"value": object.filter(a, ["outcome", "reason", "stage", "set", "unset", "raised", "warnings"]),
	"source": "probe",
}

# A fallback of the library that fails: a job uses it where the transport that it prefers is not available. Without the
# variables that are set, it is they that avoid the fault.
findings contains {
	"id": "fallback",
	"subject": "host",
	"affects": collective_cost.gpus,
	"message": sprintf("Collectives of %s work as the environment is configured, and %s with %s%s: %s", [
		collective_cost.library, became[arm[name].outcome], name, concat("", [sprintf(" (without %s)", [facts.list({n | some n in gone})]) | count(gone) > 0]), reason(arm[name]),
	]),
	"evidence": [arm_evidence(other, arm[other]) | some other in alike],
	"severity": fallback_severity,
	"remedies": ["other"],
} if {
	first.outcome in {"ok", "slow"}
	failing := [n | some [n, _, _, _] in parts; n in alike]
	name := failing[count(failing) - 1]
	gone := object.get(arm[name], "unset", [])
}

fallback_severity := "low" if {
	alike == {"cleaned"}
} else := "critical" if {
	some name in alike
	name != "cleaned"
	arm[name].outcome == "corrupt"
} else := "medium"

# The probe as a whole failed before any arm.
findings contains {
	"id": "start",
	"subject": "host",
	"affects": [],
	"message": sprintf("The probe of collectives could not start (%s): %s", [input.collectives.outcome, object.get(input.collectives, "reason", "")]),
	"evidence": [{"fact": sprintf("collectives.%s", [field]), "value": value, "source": "probe"} |
		some field in ["outcome", "reason", "cause", "path", "version"]
		value := input.collectives[field]
	],
	"severity": severity_of[input.collectives.outcome],
	"remedies": ["upgrade-nccl", "reboot-or-reload-driver", "other"],
} if {
	input.collectives.outcome in bad
	count(input.collectives.arms) == 0
}

missing contains {"fact": "collectives", "words": sprintf("the outcome of the collectives is not known: %s", [object.get(input.collectives, "reason", "unknown")])} if {
	input.collectives.outcome == "unknown"
	count(collective_cost.idle) == 0
}

not_applicable contains why if some why in collective_cost.idle

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
limit_cures := [id | some limit in enough; some id in remedies[limit]]

remedies := {"nofile": ["raise-process-limits"], "memlock": memlock}

memlock := ["raise-memlock"] if {
	facts.in_container
} else := ["raise-memlock-limits"]
