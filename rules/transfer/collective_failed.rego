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

# first is the environment as it is configured, arm are the others by name, order their names, the one that decides most
# first.
first := input.collectives.arms[0]

arm[name] := [a | some a in others; a.name == name][0] if some name in order

order := ["cleaned", "limits-raised", "nvls-off", "cumem-off", "p2p-off", "shm-off", "p2p-shm-off", "in-process"]

others := array.slice(input.collectives.arms, 1, count(input.collectives.arms))

reason(a) := object.get(a, "reason", "the reason is not known")

# verdicts are what each arm says if it works: the part that fails, in words, and what helps.
verdicts := [
	[
		"cleaned", "variables", sprintf("Without %s they work: the fault is in these settings.", [concat(", ", unset)]),
		{true: ["unset-env"], false: ["other"]}[at_fault],
	],
	["limits-raised", "limits", sprintf("With a higher soft limit (%s) they work: it is too low.", [words]), limit_cures],
	[
		"nvls-off", "nvls", "Without NVLS they work: the multicast of the NVSwitches fails.",
		["nccl-nvls-disable", "upgrade-driver"],
	],
	[
		"cumem-off", "cumem", "Without cuMem they work: sharing memory by cuMem fails.",
		["nccl-cumem-disable", "upgrade-nccl", "upgrade-driver"],
	],
	[
		"p2p-off", "p2p", "Without peer-to-peer access they work: that path fails.",
		["nccl-p2p-disable", "upgrade-driver", "reboot-or-reload-driver"],
	],
	["shm-off", "shm", "Without shared memory they work: /dev/shm fails.", ["increase-shm", "nccl-shm-disable"]],
	[
		"p2p-shm-off", "both", "Over the network they work: both peer-to-peer access and shared memory fail.",
		["nccl-p2p-disable", "increase-shm"],
	],
	[
		"in-process", "processes", "Inside one process they work: sharing memory between processes fails.",
		["nccl-p2p-disable", "upgrade-driver"],
	],
]

verdict := array.concat(
	[v | some v in verdicts; works(v[0])],
	[["", "everywhere", everywhere, array.concat(rendezvous_cures, ["upgrade-nccl", "reboot-or-reload-driver", "other"])]],
)[0]

kind := verdict[1]

works(name) if arm[name].outcome == "ok"
works("limits-raised") if count(enough) > 0

default everywhere := "Not everything that may help was tried to its end."

everywhere := "They fail without any single transport and variable as well: library, driver or rendezvous fail." if {
	count(others) > 0
	count(object.get(input.collectives, "untried", [])) == 0
	every name in order {
		object.get(arm, [name, "outcome"], "ok") != "unknown"
	}
}

# unset are the variables without which they work: the fewest that a search among those of the arm "cleaned" found.
default unset := []

unset := array.concat(
	[names | some [_, names] in sort([[count(n), n] | some n in removed])],
	[names | names := arm.cleaned.unset],
)[0]

removed contains a.unset if {
	first.outcome in bad
	some a in others
	a.name == "without"
	a.outcome == "ok"
}

# at_fault is true where all of them are known to be.
at_fault := true in {count(unset) == 1, count(removed) > 0}

rendezvous_cures := ["set-socket-ifname" | attempts.refused.connection]

# id tells variables that are known to be at fault, beyond a single one that names an interface,
# from those that an interface may explain.
id := "setting" if {
	kind == "variables"
	at_fault
	not names_interface
} else := kind

names_interface if {
	count(unset) == 1
	endswith(unset[0], "_IFNAME")
}

# settings are the variables that the cures name.
default settings := {}

settings := {"variable": unset[0]} if {
	kind == "variables"
	count(unset) == 1
} else := {"variables": unset} if {
	kind == "variables"
	at_fault
} else := {"variable": "NCCL_SOCKET_IFNAME"} if {
	kind == "everywhere"
	count(rendezvous_cures) > 0
}

findings contains object.union({"subject": "host", "affects": collective_cost.gpus}, f) if some f in failures

failures contains {
	"id": id,
	"message": sprintf("Collectives of %s %s: %s. %s", [
		collective_cost.library, became[first.outcome], reason(first), verdict[2],
	]),
	"evidence": array.concat([arm_evidence("as-configured", first)], [arm_evidence(name, arm[name]) | some name in order]),
	"params": settings,
	"severity": severity_of[first.outcome],
	"remedies": verdict[3],
} if first.outcome in bad

arm_evidence(name, a) := {
	"fact": sprintf("collectives.arms[%s]", [name]),
	"value": object.filter(a, ["outcome", "reason", "stage", "set", "unset", "raised", "warnings"]),
	"source": "probe",
}

# A fallback of the library that fails: a job uses it where the transport that it prefers is not available.
failures contains {
	"id": "fallback",
	"message": sprintf("Collectives of %s work as the environment is configured, and %s with %s: %s", [
		collective_cost.library, became[a.outcome], facts.list(fallbacks), reason(a),
	]),
	"evidence": [arm_evidence(name, arm[name]) | some name in fallbacks],
	"severity": {true: "critical", false: "medium"}["corrupt" in {arm[name].outcome | some name in fallbacks}],
	"remedies": ["other"],
} if {
	first.outcome in {"ok", "slow"}
	a := arm[fallbacks[0]]
}

fallbacks := [name | some name in order; name != "cleaned"; arm[name].outcome in bad]

# Variables without which they fail: a job has them, and needs them.
failures contains {
	"id": "needed",
	"message": sprintf("Collectives of %s work as the environment is configured, and %s without %s: these variables avoid a fault. %s", [
		collective_cost.library, became[a.outcome], facts.list(object.get(a, "unset", [])), reason(a),
	]),
	"evidence": [arm_evidence("cleaned", a)],
	"severity": "low",
	"remedies": ["other"],
} if {
	first.outcome in {"ok", "slow"}
	a := arm.cleaned
	a.outcome in bad
	count(a.unset) > 0
}

# The probe as a whole failed before any arm.
failures contains {
	"id": "start",
	"affects": [],
	"message": sprintf("Collectives of %s %s: %s", [
		collective_cost.library, became[input.collectives.outcome], reason(input.collectives),
	]),
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

missing contains {"fact": "collectives", "words": sprintf("the outcome of the collectives is not known: %s", [reason(input.collectives)])} if {
	input.collectives.outcome == "unknown"
	count(collective_cost.idle) == 0
}

not_applicable contains why if some why in collective_cost.idle

# enough are the fewest limits of the process with which the collectives work once they are raised to the hard ones.
default enough := []

enough := sort([[count(raised), raised] |
	some a in input.collectives.arms
	a.name == "limits-raised"
	a.outcome == "ok"
	raised := sort(object.keys(a.raised))
])[0][1]

words := concat(" and ", [limits[limit][0] | some limit in enough])

limit_cures := [limits[limit][1] | some limit in enough]

limits := {
	"nofile": ["open files, RLIMIT_NOFILE", "raise-process-limits"],
	"memlock": ["locked memory, RLIMIT_MEMLOCK", raise_memlock],
}

default raise_memlock := "raise-memlock-limits"

raise_memlock := "raise-memlock" if facts.in_container
