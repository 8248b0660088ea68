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
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL's requirements for the network
# custom:
#   severity: medium
#   confidence: likely
#   cause: ib-port-down
#   needs: ["nics.rdma[].counters", host.uptime_seconds]
#   remedies: [bring-port-up]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.rdma_link_errors

import data.gpudoctor.lib.rdma
import data.tables.thresholds

# counted are the ports of this machine whose counters were read. Those of a text have no known age.
counted := {p | some p in rdma.ports; rdma.of_machine(p); p.counters}

bad(p) := {name: n |
	some name, least in thresholds.link_errors
	n := p.counters[name]
	n > 1
	rdma.rate_per_hour(n) >= least
}

findings contains {
	"subject": rdma.port_name(p),
	"message": sprintf("The link of RDMA port %s is bad: %s in %v hours since the machine started", [rdma.port_name(p), concat(", ", [sprintf("%s %d", [name, n]) | some name, n in bad(p)]), hours]),
	"evidence": [{
		"fact": sprintf("nics.rdma[%s:%d].counters", [p.device, p.port]),
		"value": bad(p),
		"source": sprintf("%s/counters", [p.source]),
	}],
	# A port that is not in use harms nothing.
	"severity": {true: "medium", false: "low"}[object.get(p, "state", "") == "active"],
	"remedies": ["bring-port-up"],
} if {
	some p in counted
	count(bad(p)) > 0
	hours := round(input.host.uptime_seconds / 360) / 10
}

missing contains {"fact": "nics.rdma[].counters", "words": sprintf("%s of %s was not read", [name, rdma.port_name(p)])} if {
	some p in counted
	p.link_layer == "InfiniBand" # Other drivers have fewer counters.
	some name in ["symbol_error", "link_downed"]
	not is_number(object.get(p.counters, name, null))
}

not_applicable contains "no RDMA device is available" if rdma.no_device

not_applicable contains "the counters in texts have no known age" if {
	count(rdma.ports) > 0
	every p in rdma.ports {
		not rdma.of_machine(p)
	}
}
