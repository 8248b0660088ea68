# METADATA
# title: Collectives of NCCL or RCCL are slower than the links
# description: >-
#   The probe's all-reduce delivers correct sums, but its bus bandwidth is far below what the links between the GPUs
#   carry. The library then mostly takes another way than these links: host memory, or sockets. Its log shows which. The
#   thresholds are those for tables of nccl-tests.
# related_resources:
#   - ref: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
#     description: What bus bandwidth is, and how it compares with the links
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: Why NCCL does not use peer-to-peer access
# custom:
#   severity: medium
#   confidence: confirmed
#   symptom: true
#   needs: ["collectives.arms[].operations[].expected_gbps", "collectives.arms[].operations[].threshold"]
#   remedies: [upgrade-nccl, upgrade-driver, update-bios, reset-gpu, other]
#   profiles: [training]
#   since: "0.4"
package gpudoctor.rules.collective_slow

import data.gpudoctor.lib.collective_cost
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.restricting_settings
import data.tables.thresholds

# first is the environment as it is configured. The others differ from it on purpose.
first := input.collectives.arms[0]

# judged are its all-reduces that are large enough to show the bandwidth of the links.
judged := [op |
	some op in first.operations
	op.name == "all-reduce"
	op.outcome in {"ok", "slow"}
	op.bus_gbps > 0
	op.expected_gbps * op.threshold > 0
]

best := sort([[op.bus_gbps, op] | some op in judged])[count(judged) - 1][1]

slow if best.bus_gbps < best.expected_gbps * best.threshold
slow if first.outcome == "slow"

findings contains {
	"subject": "host",
	"affects": collective_cost.gpus,
	"message": concat(". ", array.flatten([
		figures,
		[sprintf("The library's log shows that its channels go %s", [facts.list(ways)]) | count(ways) > 0],
		[sprintf("%s, as set here, may have asked for that", [facts.list(asked)]) | count(asked) > 0],
	])),
	"evidence": [{
		"fact": "collectives.arms[as-configured]",
		"value": object.union(
			object.filter(first, ["outcome", "reason", "transports", "network", "nvls"]),
			{"operations": [object.filter(op, ["name", "bytes", "bus_gbps", "expected_gbps", "fraction", "threshold", "basis"]) | some op in judged]},
		),
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
} if {
	first.outcome in {"ok", "slow"}
	slow
}

figures := sprintf("All-reduce of %s between %d GPUs: %s GB/s, where %s carry %v and at least %s counts as good", [
	collective_cost.library, count(input.collectives.gpus), peers.decimal(best.bus_gbps), object.get(best, "basis", "the links of one GPU"), round(best.expected_gbps),
	peers.decimal(best.expected_gbps * best.threshold),
]) if {
	count(judged) > 0
} else := sprintf("All-reduce of %s between %d GPUs is slow: %s", [collective_cost.library, count(input.collectives.gpus), object.get(first, "reason", "below what the links carry")])

ways := {sprintf("%s (%s)", [words, concat("/", [t[field] | some field in ["kind", "network"]; t[field] != ""])]) |
	some t in first.transports
	some prefix, words in {"shm": "through host memory", "net": "over the network", "p2p": "from GPU to GPU"}
	startswith(t.kind, prefix)
}

# asked are the settings that may have asked for that: those that restrict the library, but for
# those without which it was not faster, and those without which it was.
asked := (restricting_settings.in_force - collective_cost.free) | {name | some name in collective_cost.slower.variables}

# Below half of what counts as good, the cause is a wrong path, not noise. What a setting may have
# asked for is no fault by itself: env-misconfig weighs the setting.
default severity := "medium"

severity := "low" if {
	count(asked) > 0
} else := "high" if best.bus_gbps < (best.expected_gbps * best.threshold) * thresholds.wrong_path

missing contains {"fact": "collectives", "words": sprintf("the speed of the collectives is not known: %s", [object.get(input.collectives, "reason", "they did not run")])} if {
	input.collectives.outcome in {"unknown", "corrupt", "hang", "error"}
	count(collective_cost.idle) == 0
}

missing contains {"fact": "collectives.arms", "words": "no large all-reduce could be compared with what the links between the GPUs carry"} if {
	first.outcome == "ok"
	count(input.collectives.gpus) > 1
	count(judged) == 0
}

not_applicable contains why if some why in collective_cost.idle
not_applicable contains "the collectives had one GPU" if count(input.collectives.gpus) == 1
