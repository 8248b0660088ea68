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
#   needs:
#     - nics.rdma
#   remedies: [fix-mtu-pfc, nccl-timeout, nccl-ib-disable, reseat-or-fix-pcie-link]
#   explains: [collective-hang/between-hosts]
#   profiles: [training]
#   first_of: [counted, given-up]
#   since: "0.1"
package gpudoctor.rules.roce_mtu_pfc

import data.gpudoctor.lib.benchmarks
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.rdma
import data.tables.thresholds

roce_ports contains p if {
	some p in rdma.ports
	p.link_layer == "Ethernet"
	not lost(p)
}

# A port whose state is not known may be active. (A negated membership of a field that is missing does not hold.)
lost(p) if p.state in {"down", "init"}

# failed is true when transfers over this network were given up, and no lost port explains it.
failed if {
	count(rdma.retry_exceeded) > 0
	count(rdma.port_errors | rdma.device_errors) == 0
}

failure := array.slice(logs.all_evidence(rdma.retry_exceeded), 0, 3)

# worked is true when the same job had moved data before: the addresses are right then.
worked if {
	some c in input.logs.communicators
	c.completed > 0
	c.completed >= c.started
	some b in input.benchmarks
	count(b.points) > 0
}

# mtus are the active path MTUs, by name of the port.
mtus[mtu] contains rdma.port_name(p) if {
	some p in roce_ports
	mtu := mtu_of(p)
	mtu > 0
}

# mtu_of is the path MTU of a port: the active one, or, of a port of this machine, the one that
# follows from its interface.
mtu_of(p) := p.mtu if {
	p.mtu
} else := p.allowed_mtu if {
	rdma.of_machine(p)
}

# same_name are ports that have the same name on different machines.
same_name if {
	some a in roce_ports
	some b in roce_ports
	a.device == b.device
	a.port == b.port
	mtu_of(a) > mtu_of(b)
	mtu_of(b) > 0
}

findings contains {
	"subject": "MTU",
	"message": sprintf("RoCE ports have different path MTUs: %s. The smaller one applies between the two, if the switches support the larger one at all", [list_mtus]),
	"evidence": array.concat([rdma.place(p) | some p in roce_ports; mtu_of(p) > 0], failure),
	"severity": mtu_severity,
	"confidence": sure,
	"remedies": ["fix-mtu-pfc"],
} if {
	count(mtus) > 1
}

# A port that does not reach its rate from host memory, over Ethernet: packets are
# lost or the path MTU is small, more often than the NIC's slot is narrow.
findings contains {
	"subject": n.point.a,
	"message": sprintf("%s. Over RoCE, the usual causes are, in this order, lost packets (flow control), a small path MTU, and a narrow PCIe link of the NIC", [rdma.network_words(n)]),
	"evidence": array.concat([rdma.network_evidence(n)], [rdma.place(p) | some p in sort(n.ports)]),
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["fix-mtu-pfc", "reseat-or-fix-pcie-link"],
} if {
	some n in rdma.slow_networks.host
	"Ethernet" in {p.link_layer | some p in n.ports}
}

list_mtus := concat("; ", [sprintf("%d on %s", [mtu, facts.list(names)]) | some mtu, names in mtus])

mtu_severity := "high" if {
	failed
} else := "medium" if {
	same_name
} else := "low"

# sure is how certain the facts are: more so if transfers failed after their retries.
sure := "likely" if {
	failed
} else := "possible"

findings contains {
	"subject": "MTU",
	"message": sprintf("%s: the path MTU is 1024 bytes, because the Ethernet MTU is 1500. With 9000 (at least 4200) on the NICs and the switches it is 4096, and small packets cost the NIC less", [facts.list({rdma.port_name(p) | some p in small})]),
	"evidence": [rdma.place(p) | some p in small],
	"severity": "low",
	"confidence": "likely",
	"remedies": ["fix-mtu-pfc"],
} if {
	count(small) > 0
	count(mtus) == 1
}

small contains p if {
	some p in roce_ports
	mtu_of(p) == 1024
	not limited(p)
}

limited(p) if p.max_mtu <= 1024

limited(p) if p in below

# below are the ports whose path MTU is smaller than that of their interfaces allows.
below contains p if {
	some p in roce_ports
	p.mtu < p.allowed_mtu
	not at_most(p)
}

at_most(p) if p.max_mtu <= p.mtu

findings contains {
	"id": "below-interface",
	"subject": rdma.port_name(p),
	"message": sprintf("%s has the path MTU %d, although the MTU of its interface allows %d: it was changed while the port was in use, or the port is limited. Set the MTU of the interface again, or reload the driver", [rdma.port_name(p), p.mtu, p.allowed_mtu]),
	"evidence": [rdma.place(p)],
	"severity": "low",
	"confidence": "likely",
	"remedies": ["fix-mtu-pfc"],
} if {
	some p in below
}

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
	"message": sprintf("RoCE packets were lost or came out of order: %s. The counters run since the driver was loaded; what matters is whether they grow while the job runs", [concat("; ", [sprintf("%s: %s", [port, concat(", ", [sprintf("%s %d", [name, n]) | some name, n in counted])]) | some port, counted in loss])]),
	"evidence": array.concat([rdma.place(p) | some p in roce_ports; count(p.counters) > 0], failure),
	"severity": loss_severity,
	"confidence": sure,
	"remedies": ["fix-mtu-pfc", "nccl-timeout"],
} if {
	count(loss) > 0
}

# slow is true of a counter of this machine that grew too slowly to matter.
slow(p, n) if {
	rdma.of_machine(p)
	rdma.rate_per_hour(n) < thresholds.lost_packets_per_hour
}

loss_severity := "high" if {
	failed
} else := "low"

findings contains {
	"subject": "loss",
	"message": sprintf("The bus bandwidth over RoCE falls from %v GB/s at %d bytes to %v GB/s at %d bytes, although larger messages should not be slower. The usual cause is a network that drops packets under load, because flow control (PFC, or pause frames) or congestion control is missing on NICs and switches", [c.peak.gbps, c.peak.bytes, c.worst.gbps, c.worst.bytes]),
	"evidence": array.concat(
		[{"fact": "benchmarks[].points", "value": object.filter(p, ["bytes", "gbps"]), "source": sprintf("%s:%d", [c.benchmark.source, p.line])} | some p in [c.peak, c.worst]],
		[rdma.place(p) | some p in roce_ports; count(p.counters) > 0],
	),
	"severity": "high",
	"confidence": collapse_confidence,
	"remedies": ["fix-mtu-pfc", "nccl-timeout"],
} if {
	c := sort(benchmarks.collapsed)[0]
}

collapse_confidence := "likely" if {
	count(loss) > 0
} else := "possible"

# unprotected are the interfaces without flow control for any priority.
unprotected contains q if {
	some q in input.nics.qos
	is_array(q.pfc)
	count(q.pfc) == 0
	count(object.get(q, "ecn", [])) == 0
}

findings contains {
	"subject": "PFC",
	"message": sprintf("Priority flow control is off on %s. Without it, a network loses packets under load, unless congestion control and the switches are configured for that", [facts.list({object.get(q, "interface", "an interface") | some q in unprotected})]),
	"evidence": array.concat(
		[{"fact": sprintf("nics.qos[%s].pfc", [object.get(q, "interface", "")]), "value": q.pfc, "source": logs.at(q)} | some q in unprotected],
		failure,
	),
	"severity": pfc_severity,
	"confidence": "possible",
	"remedies": ["fix-mtu-pfc"],
} if {
	count(unprotected) > 0
	not rdma.no_roce
}

pfc_severity := "high" if {
	failed
} else := "info"

# Transfers that failed after their retries, on a RoCE network with known addresses.
findings contains {
	"subject": "loss",
	"id": "given-up",
	"message": sprintf("A transfer over RoCE failed after its retries (status 12, %s), although %s: packets are lost on the path, or the peer stopped", [logs.at(logs.first(rdma.retry_exceeded)), settlement]),
	"messages": rdma.retry_exceeded,
	"remedies": ["fix-mtu-pfc", "nccl-timeout", "nccl-ib-disable"],
} if {
	failed
	rdma.link in {"roce", "mixed"}
}

settlement := "the job had moved data before" if {
	worked
} else := sprintf("GID index %d is set", [rdma.gid_index]) if {
	rdma.gid_index
} else := "NCCL chose the GID itself" if {
	rdma.chooses_gid
} else := "UCX chose the GID itself" if {
	some m in rdma.retry_exceeded
	m.fields.ucx
}

missing contains {"fact": "nics.rdma", "words": "neither the MTU of RoCE ports nor their counters are known (ibv_devinfo, rdma statistic)"} if {
	count(mtus) == 0
	count(loss) == 0
	count(benchmarks.collapsed) == 0
	not failed
	not rdma.no_roce
	not rdma.no_device
}

not_applicable contains "only InfiniBand or EFA here: their flow control is part of the network" if rdma.no_roce

not_applicable contains "no RDMA device is available" if rdma.no_device
