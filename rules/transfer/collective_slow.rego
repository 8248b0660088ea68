# METADATA
# title: Collectives of NCCL or RCCL are slower than the links
# description: >-
#   The probe's all-reduce delivers correct sums, but far below what the links between the GPUs carry: the library takes
#   another way, such as host memory or sockets. The thresholds are those for tables of nccl-tests.
# related_resources:
#   - {ref: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md, description: What bus bandwidth is}
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html, description: Why P2P is not used}
# custom:
#   severity: medium
#   confidence: confirmed
#   symptom: true
#   needs: ["collectives.arms[].operations[].expected_gbps", "collectives.arms[].operations[].threshold"]
#   remedies: [upgrade-nccl, upgrade-driver, update-bios, reset-gpu, other]
#   profiles: [training]
#   since: "0.4"
#   grades:
#     slow: >-
#       Collectives of {library} are slow: {reason}[. The library's log shows that its channels go via {ways}][. {asked},
#       as set here, may have asked for that]
package gpudoctor.rules.collective_slow

import data.gpudoctor.lib.collective_cost
import data.gpudoctor.lib.restricting_settings
import data.tables.thresholds

# first is the environment as it is configured. The others differ from it on purpose.
first := input.collectives.arms[0]

findings contains {
	"grade": "slow",
	"subject": "host",
	"affects": collective_cost.gpus,
	"about": {
		"library": collective_cost.library,
		"reason": object.get(first, "reason", "all-reduce is below what the links carry"),
		"ways": {concat("/", [t[field] | some field in ["kind", "network"]; t[field] != ""]) | some t in first.transports},
		"asked": asked,
	},
	"evidence": [{
		"fact": "collectives.arms[as-configured]",
		"value": object.filter(first, ["outcome", "reason", "transports", "network", "nvls", "operations"]),
		"source": "probe",
	}],
	"severity": severity,
	"remedies": {
		true: ["upgrade-nccl", "upgrade-driver", "update-bios", "reset-gpu"], # The library or the driver is why.
		false: ["other"],
	}[count(asked) == 0],
	"steps": [
		{"look": "whether the GPUs reach each other at full speed without the library", "command": "gpudoctor probe p2p"},
		{"look": "how fast collectives are without single transports and variables", "command": "gpudoctor probe nccl --probe full"},
	],
} if first.outcome == "slow"

# asked are the settings that may have asked for that: those that restrict the library, and those without which it is
# faster. They are no fault by themselves: env-misconfig weighs them.
asked := restricting_settings.in_force | {name | some name in collective_cost.slower.variables}

# Below half of what counts as good, the cause is a wrong path, not noise.
default severity := "medium"

severity := "low" if {
	count(asked) > 0
} else := "high" if {
	some op in first.operations
	op.fraction < op.threshold * thresholds.wrong_path
}

not_applicable contains why if some why in collective_cost.idle
not_applicable contains "the collectives had one GPU" if count(input.collectives.gpus) == 1
