# The probe's collectives. Which library and GPUs took part, and the variables without which an all-reduce is clearly
# faster, as the probe measured it with and without them.
package gpudoctor.lib.collective_cost

import data.gpudoctor.lib.facts
import data.tables.thresholds

# slower are the variables of the environment as it is, and the rate in GB/s with and without them. Of several sets that
# were removed, it is the smallest that makes it faster.
slower := {"variables": names, "gbps": gbps, "without_gbps": without, "lost": 1 - (gbps / without)} if {
	[_, names, gbps, without] := sort([[count(a.unset), sort(a.unset), rates(first)[bytes], rates(a)[bytes]] |
		some a in array.slice(input.collectives.arms, 1, count(input.collectives.arms))
		a.name in {"cleaned", "without"}
		count(a.unset) > 0
		bytes := max(object.keys(rates(first)) & object.keys(rates(a)))
		rates(a)[bytes] >= rates(first)[bytes] * thresholds.collective_faster
	])[0]
	not in_use
}

# library is the one whose collectives ran, gpus are those that took part.
library := upper(object.get(input.collectives, "library", "nccl"))

gpus := sort({address | some address in input.collectives.gpus; facts.is_address(address)})

# idle says why there is nothing to judge.
idle contains "the collectives were not run" if {
	input.gpus
	not input.collectives
}

idle contains "no library or no GPU for collectives" if {
	input.collectives.outcome == "unknown"
	input.collectives.cause in {"no-library", "no-device"}
}

first := input.collectives.arms[0]

# rates are the bus bandwidths of a correct arm's all-reduces by size, where a rate says something.
rates(a) := {op.bytes: op.bus_gbps |
	a.outcome in {"ok", "slow"}
	some op in a.operations
	op.outcome in {"ok", "slow"}
	op.name == "all-reduce"
	op.bytes >= thresholds.collective_least_bytes
	op.bus_gbps > 0
}

# in_use is true where another process uses a GPU that took part: then a rate says nothing.
in_use if {
	some g in input.gpus.devices
	g.address in input.collectives.gpus
	count(g.processes) > 0
}
