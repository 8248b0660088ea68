# METADATA
# title: An RDMA link has errors
# description: >-
#   The counters of an RDMA port show bit errors, or that its link went down again and again. The causes are a dirty or
#   worn cable or transceiver, a bad seat, or a port of a switch. Each error costs retransmissions; a link that goes
#   down stops transfers, which then time out.
# related_resources:
#   - ref: https://github.com/linux-rdma/rdma-core/blob/v55.0/infiniband-diags/etc/error_thresholds
#     description: The thresholds of ibqueryerrors
#   - ref: https://github.com/Azure/azurehpc-health-checks
#     description: A node is unhealthy if its link goes down more than twice in six hours
# custom:
#   severity: medium
#   confidence: likely
#   cause: ib-port-down
#   needs: ["nics.rdma[].counters", host.uptime_seconds]
#   remedies: [bring-port-up]
#   profiles: [training]
#   since: "0.2"
#   grades:
#     bad: "The link of RDMA port {subject} is bad: {errors} in {hours} hours since the machine started"
package gpudoctor.rules.rdma_link_errors

import data.gpudoctor.lib.rdma
import data.tables.thresholds

# counted are the ports of this machine whose counters were read. Those of a text have no known age.
counted := {p | some p in rdma.ports; rdma.of_machine(p); p.counters}

findings contains {
	"grade": "bad",
	"subject": rdma.port_name(p),
	"about": {"errors": {sprintf("%s %d", [name, n]) | some name, n in bad}, "hours": round(input.host.uptime_seconds / 360) / 10},
	"evidence": [object.union(rdma.place(p), {"value": bad})],
	# A port that is not in use harms nothing.
	"severity": {true: "medium", false: "low"}[object.get(p, "state", "") == "active"],
} if {
	some p in counted
	bad := {name: n |
		some name, least in thresholds.link_errors
		n := p.counters[name]
		n > 1
		rdma.rate_per_hour(n) >= least
	}
	count(bad) > 0
}

asks contains "nics.rdma[].counters.symbol_error" if rdma.link == "infiniband"
asks contains "nics.rdma[].counters.link_downed" if rdma.link == "infiniband"

not_applicable contains "no RDMA device is available" if rdma.no_device

not_applicable contains "the counters in texts have no known age" if {
	count(rdma.ports) > 0
	count({p | some p in rdma.ports; rdma.of_machine(p)}) == 0
}
