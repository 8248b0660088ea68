# METADATA
# title: The RoCE network loses packets, or MTUs do not match
# description: >-
#   RoCE expects a network without packet loss. If flow control (PFC) or congestion control (ECN) is not configured on
#   NICs and switches alike, bursts are dropped, and the rate collapses or the transfer is aborted (completion status
#   12). An Ethernet MTU that a switch or the peer does not support loses every large packet.
# related_resources:
#   - ref: https://github.com/NVIDIA/nccl/issues/378
#     description: RoCE at a fraction of its rate indicates dropped packets
#   - ref: https://enterprise-support.nvidia.com/s/article/recommended-network-configuration-examples-for-roce-deployment
#     description: Lossless and lossy configurations
# custom:
#   severity: high
#   confidence: possible
#   needs: [nics.rdma, "nics.rdma[].link_layer"]
#   remedies: [fix-mtu-pfc, nccl-timeout, nccl-ib-disable, reseat-or-fix-pcie-link]
#   explains: [collective-hang/between-hosts, failure-area, path > roce-gid]
#   profiles: [training]
#   first_of: [counted, given-up]
#   since: "0.1"
#   grades:
#     mtu:
#       remedies: [fix-mtu-pfc]
#       text: >-
#         RoCE ports have different path MTUs: {mtus}. The smaller one applies between the two, if the switches support
#         the larger one at all
#     slow:
#       severity: medium
#       remedies: [fix-mtu-pfc, reseat-or-fix-pcie-link]
#       text: >-
#         {words}. Over RoCE, the usual causes are, in this order, lost packets, a small path MTU, and the NIC's PCIe link
#     small:
#       severity: low
#       confidence: likely
#       remedies: [fix-mtu-pfc]
#       text: >-
#         {ports}: the path MTU is 1024, and small packets cost the NIC more. With an Ethernet MTU of 9000 (at least 4200)
#         on the NICs and the switches it is 4096. Where the interface already has that, set it again, or reload the driver
#     counted:
#       remedies: [fix-mtu-pfc, nccl-timeout]
#       text: >-
#         RoCE packets were lost or came out of order: {counted}. The counters run since the driver was loaded; what
#         matters is whether they grow while the job runs
#     unprotected:
#       remedies: [fix-mtu-pfc]
#       text: >-
#         Priority flow control is off on {interfaces}. Without it, a network loses packets under load, unless congestion
#         control and the switches are configured for that
#     given-up:
#       remedies: [fix-mtu-pfc, nccl-timeout, nccl-ib-disable]
#       text: >-
#         A transfer over RoCE failed after its retries (status 12), although its addresses are right: packets are lost
#         on the path, or the peer stopped
package gpudoctor.rules.roce_mtu_pfc

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.rdma
import data.tables.thresholds

roce_ports := {p | some p in rdma.ports; p.link_layer == "Ethernet"; not object.get(p, "state", "") in {"down", "init"}}

# failed is true when transfers over this network were given up, and no lost port explains it.
default failed := false

failed if {
	count(rdma.retry_exceeded) > 0
	count(rdma.lost) == 0
}

# shown is what two grades have in common: a failure makes weak signs strong.
shown(places) := {
	"evidence": array.concat(places, array.slice(logs.all_evidence(rdma.retry_exceeded), 0, 3)),
	"severity": {true: "high", false: "low"}[failed],
	"confidence": {true: "likely", false: "possible"}[failed],
}

mtus[mtu_of(p)] contains rdma.port_name(p) if some p in roce_ports

# mtu_of is the active path MTU, or, of a port of this machine, the one that follows from its interface.
mtu_of(p) := p.mtu if {
	p.mtu
} else := p.allowed_mtu if rdma.of_machine(p)

findings contains object.union(shown([rdma.place(p) | some p in roce_ports; mtu_of(p)]), {
	"grade": "mtu",
	"subject": "MTU",
	"about": {"mtus": concat("; ", [sprintf("%d on %s", [mtu, facts.list(names)]) | some mtu, names in mtus])},
}) if count(mtus) > 1

# Over Ethernet, lost packets or a small path MTU slow a port down more often than a narrow slot of the NIC.
findings contains {
	"grade": "slow",
	"subject": n.point.a,
	"about": {"words": rdma.network_words(n)},
	"evidence": array.concat([rdma.network_evidence(n)], [rdma.place(p) | some p in sort(n.ports)]),
} if {
	some n in rdma.slow_networks.host
	"Ethernet" in {p.link_layer | some p in n.ports}
}

# A path MTU of 1024 belongs to an Ethernet MTU of 1500.
findings contains {
	"grade": "small",
	"subject": "MTU",
	"about": {"ports": mtus[1024]},
	"evidence": [rdma.place(p) | some p in roce_ports],
} if {
	object.keys(mtus) == {1024}
	max({object.get(p, "max_mtu", 4096) | some p in roce_ports}) > 1024
}

# loss are the counters of packets that were lost or came out of order. They count since
# the driver was loaded, so they are not proof on their own.
loss contains sprintf("%s: %s %d", [rdma.port_name(p), name, n]) if {
	some p in roce_ports
	some name, n in p.counters
	name in {"out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "roce_adp_retrans_to"}
	n > 0
	not slow(p, n)
}

findings contains object.union(shown([rdma.place(p) | some p in roce_ports; count(p.counters) > 0]), {
	"id": "counted",
	"subject": "loss",
	"about": {"counted": loss},
}) if count(loss) > 0

# slow is true of a counter of this machine that grew too slowly to matter.
slow(p, n) if {
	rdma.of_machine(p)
	rdma.rate_per_hour(n) < thresholds.lost_packets_per_hour
}

unprotected := {q | some q in input.nics.qos; count(q.pfc) == 0; count(object.get(q, "ecn", [])) == 0}

findings contains {
	"grade": "unprotected",
	"subject": "PFC",
	"about": {"interfaces": {object.get(q, "interface", "an interface") | some q in unprotected}},
	"evidence": [{"fact": sprintf("nics.qos[%s].pfc", [object.get(q, "interface", "")]), "value": q.pfc, "source": logs.at(q)} |
		some q in unprotected
	],
	"severity": {true: "high", false: "info"}[failed],
} if {
	count(unprotected) > 0
	not rdma.no_roce
}

findings contains {"id": "given-up", "subject": "loss", "messages": rdma.retry_exceeded} if {
	failed
	rdma.link in {"roce", "mixed"}
	addresses_right
}

addresses_right if rdma.gid_index
addresses_right if rdma.chooses_gid
addresses_right if count(rdma.addressed) > 0

asks contains "nics.rdma[].mtu" if count(mtus) == 0

not_applicable contains "only InfiniBand or EFA here: their flow control is part of the network" if rdma.no_roce
not_applicable contains "no RDMA device is available" if rdma.no_device
