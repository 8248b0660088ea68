# METADATA
# title: Collectives of NCCL or RCCL fail
# description: >-
#   The probe ran collectives with the library that a job would load, and they hung, failed or delivered wrong data.
#   What works without single transports or the library's variables says which part fails.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html, description: What NVIDIA checks first}
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html, description: The variables that turn transports off}
# custom:
#   severity: critical
#   confidence: confirmed
#   symptom: true
#   own_log: true
#   needs: [collectives.outcome]
#   remedies: [nccl-p2p-disable, nccl-shm-disable, nccl-cumem-disable, nccl-nvls-disable, increase-shm, unset-env, upgrade-nccl, upgrade-driver, reboot-or-reload-driver, other]
#   profiles: [training]
#   since: "0.4"
#   grades:
#     variables: {remedies: [other], text: "{failure}. Without {unset:comma} they work"}
#     nvls: {remedies: [nccl-nvls-disable, upgrade-driver], text: "{failure}. Without NVLS they work"}
#     cumem: {remedies: [nccl-cumem-disable, upgrade-nccl, upgrade-driver], text: "{failure}. Without cuMem they work"}
#     p2p:
#       remedies: [nccl-p2p-disable, upgrade-driver, reboot-or-reload-driver]
#       text: "{failure}. Without peer-to-peer access they work"
#     shm: {remedies: [increase-shm, nccl-shm-disable], text: "{failure}. Without shared memory they work"}
#     both: {remedies: [nccl-p2p-disable, increase-shm], text: "{failure}. Only over the network they work"}
#     processes: {remedies: [nccl-p2p-disable, upgrade-driver], text: "{failure}. Inside one process they work"}
#     everywhere:
#       remedies: [upgrade-nccl, reboot-or-reload-driver, other]
#       text: "{failure}. No other transport or variable that was tried makes them work"
#     fallback: {remedies: [other], text: "The environment as it is configured works, but not with {arms}. {failure}"}
#     start: {remedies: [upgrade-nccl, reboot-or-reload-driver, other], text: "{failure}"}
package gpudoctor.rules.collective_failed

import data.gpudoctor.lib.collective_cost

# first is the environment as it is configured, others differ from it.
first := input.collectives.arms[0]

others := array.slice(input.collectives.arms, 1, count(input.collectives.arms))

works := {a.name | some a in others; a.outcome == "ok"} | {"nothing"}

# part is what fails: the first change with which they work shows it.
part := [id |
	some [arm, id] in [
		["cleaned", "variables"], ["nvls-off", "nvls"], ["cumem-off", "cumem"], ["p2p-off", "p2p"],
		["shm-off", "shm"], ["p2p-shm-off", "both"], ["in-process", "processes"], ["nothing", "everywhere"],
	]
	arm in works
][0]

# fewest are the fewest variables whose removal makes them work, among the arms of some names.
fewest(names) := sort([[count(changed), changed] |
	some a in others
	a.name in names
	a.outcome == "ok"
	changed := sort(a.unset)
])[0][1]

default unset := []

unset := fewest({"cleaned", "without"})

# at_fault is true where all of them are known to be.
at_fault if count(unset) == 1
at_fault if count(fewest({"without"})) > 0

cures["variables"] := ["unset-env"] if at_fault

default params := {}

params := {"variable": unset[0]} if {
	count(unset) == 1
} else := {"variables": unset} if at_fault

became := {"corrupt": "deliver wrong data", "hang": "hang", "error": "fail"}

finding(id, ran, about) := {
	"id": id,
	"subject": "host",
	"affects": collective_cost.gpus,
	"about": object.union(about, {"failure": sprintf("Collectives of %s %s: %s", [
		collective_cost.library, became[ran.outcome], object.get(ran, "reason", "the reason is not known"),
	])}),
	"severity": {true: "high", false: "critical"}[ran.outcome == "error"],
}

arms_evidence(arms) := [{
	"fact": sprintf("collectives.arms[%s]", [a.name]),
	"value": object.filter(a, ["outcome", "reason", "stage", "set", "unset", "warnings"]),
	"source": "probe",
} |
	some a in arms
]

findings contains object.union_n([
	finding(part, first, {"unset": unset}),
	{"evidence": arms_evidence(input.collectives.arms), "params": params},
	{"remedies": remedies | remedies := cures[part]},
])

# What the library does without a transport or a variable fails: a job that lacks these does the same.
findings contains object.union(finding("fallback", failing[0], {"arms": {a.name | some a in failing}}), {
	"evidence": arms_evidence(failing),
	"severity": {true: "critical", false: "medium"}["corrupt" in {a.outcome | some a in failing; a.name != "cleaned"}],
}) if first.outcome in {"ok", "slow"}

failing := [a | some a in others; a.name != "without"; became[a.outcome]]

# The probe as a whole failed before any arm.
findings contains object.union(finding("start", input.collectives, {}), {"evidence": [{"fact": sprintf("collectives.%s", [field]), "value": value, "source": "probe"} |
	some field in ["outcome", "reason", "cause", "path", "version"]
	value := input.collectives[field]
]}) if count(input.collectives.arms) == 0

missing contains {"fact": "collectives", "words": "the outcome of the collectives is not known"} if {
	input.collectives.outcome == "unknown"
	count(collective_cost.idle) == 0
}

not_applicable contains why if some why in collective_cost.idle
