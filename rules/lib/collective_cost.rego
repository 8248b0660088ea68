# The probe's collectives. Which library and GPUs took part, and the variables without which an all-reduce is clearly
# faster, as the probe measured it with and without them.
package gpudoctor.lib.collective_cost

import data.gpudoctor.lib.facts
import data.tables.thresholds

# slower are the variables of the environment as it is, and the rate in GB/s with and
# without them. Of several sets that were removed, it is the smallest that makes it faster.
slower := {"variables": least[0][1], "gbps": least[0][2], "without_gbps": least[0][3], "lost": 1 - (least[0][2] / least[0][3])} if {
	least := sort([[count(c.variables), c.variables, c.gbps, c.without_gbps] |
		some c in compared
		c.without_gbps >= c.gbps * thresholds.collective_faster
	])
	count(least) > 0
}

# free are the variables that were removed, and without which it was not clearly faster.
free contains name if {
	some c in compared
	c.without_gbps < c.gbps * thresholds.collective_faster
	some name in c.variables
}

compared contains {"variables": sort(a.unset), "gbps": set_gbps, "without_gbps": unset_gbps} if {
	first.outcome in correct
	not in_use
	some i, a in input.collectives.arms
	i > 0
	a.name in {"cleaned", "without"}
	a.outcome in correct
	count(a.unset) > 0
	bytes := max(object.keys(rates(first)) & object.keys(rates(a)))
	set_gbps := rates(first)[bytes]
	unset_gbps := rates(a)[bytes]
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

# correct are the outcomes with which every value is correct.
correct := {"ok", "slow"}

first := input.collectives.arms[0]

# rates are the bus bandwidths of an arm's all-reduces by size, where a rate says something.
rates(a) := {op.bytes: op.bus_gbps |
	some op in a.operations
	op.name == "all-reduce"
	op.outcome in correct
	op.bytes >= thresholds.collective_least_bytes
	op.bus_gbps > 0
}

# in_use is true where another process uses a GPU that took part: then a rate says nothing.
in_use if {
	some g in input.gpus.devices
	g.address in input.collectives.gpus
	count(g.processes) > 0
}
