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

# arm are the arms by name, but for the first.
arm[name] := found[0] if {
	some name in order
	found := [a | some i, a in input.collectives.arms; i > 0; a.name == name]
}

good contains name if {
	some name in order
	arm[name].outcome == "ok"
}

good contains "limits-raised" if count(enough) > 0

# first is the environment as it is configured.
first := input.collectives.arms[0]

reason(a) := object.get(a, "reason", "the reason is not known")

# works are the arms that work and say most of the part that fails, the one that decides most first.
order := ["cleaned", "limits-raised", "nvls-off", "cumem-off", "p2p-off", "shm-off", "p2p-shm-off", "in-process"]

works := [name | some name in order; name in good]

part := {
	"cleaned": "variables", "limits-raised": "limits", "nvls-off": "nvls", "cumem-off": "cumem", "p2p-off": "p2p",
	"shm-off": "shm", "p2p-shm-off": "both", "in-process": "processes",
}

default kind := "everywhere"

kind := part[works[0]]

# verdicts are what each part that fails means, and what helps.
verdicts := {
	"variables": [sprintf("Without %s they work: %s.", [concat(", ", unset), blamed]), variable_cures],
	"limits": [sprintf("With a higher soft limit (%s) they work: that limit of this process is too low.", [words]), limit_cures],
	"nvls": ["Without NVLS they work: the multicast of the NVSwitches fails.", ["nccl-nvls-disable", "upgrade-driver"]],
	"cumem": ["Without cuMem they work: sharing memory by cuMem fails.", ["nccl-cumem-disable", "upgrade-nccl", "upgrade-driver"]],
	"p2p": ["Without peer-to-peer access they work: that path fails.", ["nccl-p2p-disable", "upgrade-driver", "reboot-or-reload-driver"]],
	"shm": ["Without shared memory they work: /dev/shm fails.", ["increase-shm", "nccl-shm-disable"]],
	"both": ["Over the network they work: both peer-to-peer access and shared memory fail.", ["nccl-p2p-disable", "increase-shm"]],
	"processes": ["Inside one process they work: sharing memory between processes fails.", ["nccl-p2p-disable", "upgrade-driver"]],
	"everywhere": [everywhere, array.concat(rendezvous_cures, ["upgrade-nccl", "reboot-or-reload-driver", "other"])],
}

default blamed := "one or more of these variables cause it"

blamed := "this variable causes it" if count(unset) == 1

default everywhere := "Nothing else was tried."

everywhere := sprintf("They fail with %s as well; what else might help was not tried to its end.", [facts.list(alike)]) if {
	incomplete
	count(alike) > 0
} else := "They fail without any single transport and without the library's variables as well: the library, the driver or the rendezvous fails." if {
	not incomplete
	count(input.collectives.arms) > 1
}

# alike are the arms that fail as well.
alike := {name | some name in order; arm[name].outcome in bad}

# incomplete is true where the time ran out before all arms had said something.
incomplete if count(input.collectives.untried) > 0

incomplete if {
	some name in order
	arm[name].outcome == "unknown"
}

# unset are the variables without which they work: the fewest that were removed.
default unset := []

unset := found_culprits if {
	count(found_culprits) > 0
} else := arm.cleaned.unset

# found_culprits are those that a search among the variables of the arm "cleaned" found.
found_culprits := sort([[count(names), names] | some names in removed])[0][1]

removed contains a.unset if {
	first.outcome in bad
	some a in input.collectives.arms
	a.name == "without"
	a.outcome == "ok"
}

default variable_cures := ["other"]

variable_cures := ["unset-env"] if count(unset) == 1
variable_cures := ["unset-env"] if count(found_culprits) > 1

default rendezvous_cures := []

rendezvous_cures := ["set-socket-ifname"] if attempts.refused.connection

# id tells variables that are known to be at fault, beyond a single one that names an interface,
# from those that an interface may explain.
id := "setting" if {
	kind == "variables"
	at_fault
} else := kind

at_fault if count(found_culprits) > 1

at_fault if {
	count(unset) == 1
	not endswith(unset[0], "_IFNAME")
}

# settings are the variables that the cures name.
default settings := {}

settings := {"variable": unset[0]} if {
	kind == "variables"
	count(unset) == 1
} else := {"variables": unset} if {
	kind == "variables"
	count(found_culprits) > 1
} else := {"variable": "NCCL_SOCKET_IFNAME"} if {
	kind == "everywhere"
	count(rendezvous_cures) > 0
}

findings contains {
	"id": id,
	"subject": "host",
	"affects": collective_cost.gpus,
	"message": sprintf("Collectives of %s %s: %s. %s", [collective_cost.library, became[first.outcome], reason(first), verdicts[kind][0]]),
	"evidence": array.concat(
		[arm_evidence("as-configured", first)],
		[arm_evidence(name, arm[name]) | some name in order; arm[name]],
	),
	"params": settings,
	"severity": severity_of[first.outcome],
	"remedies": verdicts[kind][1],
} if first.outcome in bad

arm_evidence(name, a) := {
	"fact": sprintf("collectives.arms[%s]", [name]),
	"value": object.filter(a, ["outcome", "reason", "stage", "set", "unset", "raised", "warnings"]),
	"source": "probe",
}

# A fallback of the library that fails: a job uses it where the transport that it prefers is not available.
findings contains {
	"id": "fallback",
	"subject": "host",
	"affects": collective_cost.gpus,
	"message": sprintf("Collectives of %s work as the environment is configured, and %s with %s: %s", [
		collective_cost.library, became[a.outcome], facts.list({n | some n in fallbacks}), reason(a),
	]),
	"evidence": [arm_evidence(name, arm[name]) | some name in fallbacks],
	"severity": fallback_severity,
	"remedies": ["other"],
} if {
	first.outcome in {"ok", "slow"}
	a := arm[fallbacks[0]]
}

fallbacks := [name | some name in order; name != "cleaned"; arm[name].outcome in bad]

# Variables without which they fail: a job has them, and needs them.
findings contains {
	"id": "needed",
	"subject": "host",
	"affects": collective_cost.gpus,
	"message": sprintf("Collectives of %s work as the environment is configured, and %s without %s: these variables avoid a fault. %s", [
		collective_cost.library, became[arm.cleaned.outcome], facts.list({n | some n in object.get(arm.cleaned, "unset", [])}), reason(arm.cleaned),
	]),
	"evidence": [arm_evidence("cleaned", arm.cleaned)],
	"severity": "low",
	"remedies": ["other"],
} if {
	first.outcome in {"ok", "slow"}
	arm.cleaned.outcome in bad
}

default fallback_severity := "medium"

fallback_severity := "critical" if {
	some name in fallbacks
	arm[name].outcome == "corrupt"
}

# The probe as a whole failed before any arm.
findings contains {
	"id": "start",
	"subject": "host",
	"affects": [],
	"message": sprintf("The probe of collectives %s: %s", [started[input.collectives.outcome], object.get(input.collectives, "reason", "")]),
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

started := {"corrupt": "delivered wrong data", "hang": "hung", "error": "failed"}

missing contains {"fact": "collectives", "words": sprintf("the outcome of the collectives is not known: %s", [object.get(input.collectives, "reason", "unknown")])} if {
	input.collectives.outcome == "unknown"
	count(collective_cost.idle) == 0
}

not_applicable contains why if some why in collective_cost.idle

# The limits of the process with which the collectives work once they are raised to the hard ones, as an arm of
# the probe tried.

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
