# METADATA
# title: The RoCE network loses packets, or MTUs do not match
# description: >-
#   RoCE expects a network without packet loss. If flow control (PFC) or congestion control (ECN) is not configured on
#   NICs and switches alike, bursts are dropped, the NIC retransmits from the lost packet, and the rate collapses or the
#   transfer is aborted (completion status 12). An Ethernet MTU that a switch or the peer does not support loses every
#   large packet.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: Counters that indicate packet loss
#   - ref: https://github.com/NVIDIA/nccl/issues/378
#     description: RoCE at a fraction of its rate indicates dropped packets
#   - ref: https://enterprise-support.nvidia.com/s/article/recommended-network-configuration-examples-for-roce-deployment
#     description: Lossless and lossy configurations
# custom:
#   severity: high
#   confidence: possible
#   needs: [nics.rdma]
#   remedies: [fix-mtu-pfc, nccl-timeout, nccl-ib-disable, reseat-or-fix-pcie-link]
#   explains: [collective-hang/between-hosts, path > roce-gid]
#   profiles: [training]
#   first_of: [counted, given-up]
#   since: "0.1"
#   grades:
#     mtu: >-
#       RoCE ports have different path MTUs: {mtus}. The smaller one applies between the two, if the switches support the
#       larger one at all
#     slow:
#       severity: medium
#       remedies: [fix-mtu-pfc, reseat-or-fix-pcie-link]
#       text: >-
#         {words}. Over RoCE, the usual causes are, in this order, lost packets (flow control), a small path MTU, and a
#         narrow PCIe link of the NIC
#     small:
#       severity: low
#       text: >-
#         {ports}: the path MTU is smaller than it could be, and small packets cost the NIC more. With an Ethernet MTU of
#         9000 (at least 4200) on the NICs and the switches it is 4096. Where the interface already has that, set it again,
#         or reload the driver
#     counted:
#       remedies: [fix-mtu-pfc, nccl-timeout]
#       text: >-
#         RoCE packets were lost or came out of order: {counted}. The counters run since the driver was loaded; what
#         matters is whether they grow while the job runs
#     unprotected: >-
#       Priority flow control is off on {interfaces}. Without it, a network loses packets under load, unless congestion
#       control and the switches are configured for that
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

roce_ports contains p if {
	some p in rdma.ports
	p.link_layer == "Ethernet"
	not object.get(p, "state", "") in {"down", "init"} # One that is not known may be active.
}

# failed is true when transfers over this network were given up, and no lost port explains it.
default failed := false

failed if {
	count(rdma.retry_exceeded) > 0
	count(rdma.lost) == 0
}

failure := array.slice(logs.all_evidence(rdma.retry_exceeded), 0, 3)

sure := {true: "likely", false: "possible"}[failed]

mtus[mtu] contains rdma.port_name(p) if {
	some p in roce_ports
	mtu := mtu_of(p)
	mtu > 0
}

# mtu_of is the path MTU of a port: the active one, or, of a port of this machine, the one that
# follows from its interface.
mtu_of(p) := p.mtu if {
	p.mtu
} else := p.allowed_mtu if rdma.of_machine(p)

findings contains {
	"grade": "mtu",
	"subject": "MTU",
	"about": {"mtus": concat("; ", [sprintf("%d on %s", [mtu, facts.list(names)]) | some mtu, names in mtus])},
	"evidence": array.concat([rdma.place(p) | some p in roce_ports; mtu_of(p) > 0], failure),
	"severity": {true: "high", false: "low"}[failed],
	"confidence": sure,
	"remedies": ["fix-mtu-pfc"],
} if count(mtus) > 1

# A port that does not reach its rate from host memory, over Ethernet: packets are
# lost or the path MTU is small, more often than the NIC's slot is narrow.
findings contains {
	"grade": "slow",
	"subject": n.point.a,
	"about": {"words": rdma.network_words(n)},
	"evidence": array.concat([rdma.network_evidence(n)], [rdma.place(p) | some p in sort(n.ports)]),
} if {
	some n in rdma.slow_networks.host
	"Ethernet" in {p.link_layer | some p in n.ports}
}

findings contains {
	"grade": "small",
	"subject": "MTU",
	"about": {"ports": {rdma.port_name(p) | some p in small}},
	"evidence": [rdma.place(p) | some p in small],
	"confidence": "likely",
	"remedies": ["fix-mtu-pfc"],
} if {
	count(small) > 0
	count(mtus) == 1
}

# small are the ports with the path MTU of an Ethernet MTU of 1500, or one that is smaller than their interface allows.
small contains p if {
	some p in roce_ports
	smaller(p)
	object.get(p, "max_mtu", 65536) > mtu_of(p)
}

smaller(p) if mtu_of(p) == 1024
smaller(p) if p.mtu < p.allowed_mtu

# loss are the counters of packets that were lost or came out of order. They count since
# the driver was loaded, so they are not proof on their own.
loss[port] := counted if {
	some p in roce_ports
	port := rdma.port_name(p)
	counted := {name: n |
		some name, n in p.counters
		name in {"out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "roce_adp_retrans_to"}
		n > 0
		not slow(p, n)
	}
	count(counted) > 0
}

findings contains {
	"id": "counted",
	"subject": "loss",
	"about": {"counted": concat("; ", [sprintf("%s: %s", [port, concat(", ", [sprintf("%s %d", [name, n]) | some name, n in counted])]) | some port, counted in loss])},
	"evidence": array.concat([rdma.place(p) | some p in roce_ports; count(p.counters) > 0], failure),
	"severity": {true: "high", false: "low"}[failed],
	"confidence": sure,
} if count(loss) > 0

# slow is true of a counter of this machine that grew too slowly to matter.
slow(p, n) if {
	rdma.of_machine(p)
	rdma.rate_per_hour(n) < thresholds.lost_packets_per_hour
}

unprotected contains q if {
	some q in input.nics.qos
	count(q.pfc) == 0
	count(object.get(q, "ecn", [])) == 0
}

findings contains {
	"grade": "unprotected",
	"subject": "PFC",
	"about": {"interfaces": {object.get(q, "interface", "an interface") | some q in unprotected}},
	"evidence": array.concat(
		[{"fact": sprintf("nics.qos[%s].pfc", [object.get(q, "interface", "")]), "value": q.pfc, "source": logs.at(q)} | some q in unprotected],
		failure,
	),
	"severity": {true: "high", false: "info"}[failed],
	"remedies": ["fix-mtu-pfc"],
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

missing contains {"fact": "nics.rdma", "words": "neither the MTU of RoCE ports nor their counters are known (ibv_devinfo, rdma statistic)"} if {
	count(mtus) == 0
	count(loss) == 0
	not failed
	not rdma.no_roce
	not rdma.no_device
}

not_applicable contains "only InfiniBand or EFA here: their flow control is part of the network" if rdma.no_roce
not_applicable contains "no RDMA device is available" if rdma.no_device
