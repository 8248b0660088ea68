# METADATA
# title: A bond does not use all its links
# description: >-
#   A bond of network interfaces carries the rate of its members only if all of them have a link, the switch joined them
#   (LACP), and the traffic is distributed over them. Connections between two hosts all take one member if the bond
#   distributes by MAC or IP addresses only (layer2, layer2+3), and one queue pair of RDMA always takes one.
# related_resources:
#   - ref: https://docs.kernel.org/networking/bonding.html
#     description: Modes, hash policies and the files of a bond
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-qps-per-connection
#     description: Several queue pairs for a connection
# custom:
#   severity: medium
#   confidence: likely
#   cause: ib-port-down
#   needs: [nics.bonds]
#   remedies: [fix-bond, bring-port-up]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.bond_degraded

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.rdma

no_partner := "00:00:00:00:00:00"

# ports_over are the names of the RDMA ports by host and interface, and speeds those of the interfaces.
ports_over[networks.host_of(p)][p.netdev] contains rdma.plain_name(p) if some p in rdma.ports

speeds[networks.host_of(n)][n.name] contains n.speed_gbps if {
	some n in input.nics.interfaces
	n.speed_gbps > 0
}

# ports_of are the RDMA ports that a bond carries.
ports_of(b) := object.get(ports_over, [networks.host_of(b), b.name], set())

carries(b) := concat("", [sprintf(" It carries RDMA (%s).", [facts.few(ports_of(b))]) | count(ports_of(b)) > 0])

# grade: of a bond that carries RDMA, a part that is missing costs its rate. Any other is a spare way
# for the management network, and a backup is meant to idle.
grade(b) := "medium" if {
	count(ports_of(b)) > 0
	b.mode != "active-backup"
} else := "low"

up(b) := {m | some m in b.members} - {m | some m in object.get(b, "down", [])}

rate(b) := concat("", [sprintf(" of %v Gb/s each", [slowest]) |
	slowest := min({speed | some m in up(b); some speed in speeds[networks.host_of(b)][m]})
])

shown(b, field) := {"fact": sprintf("nics.bonds[%s].%s", [b.name, field]), "value": b[field], "source": logs.at(b)}

findings contains {
	"id": "member-down",
	"subject": b.name,
	"message": sprintf("No link at %s of the bond %s: it uses %d of %d links%s.%s", [facts.few(b.down), b.name, count(up(b)), count(b.members), rate(b), carries(b)]),
	"evidence": [shown(b, "down"), shown(b, "members")],
	"severity": grade(b),
	"confidence": "confirmed",
	"remedies": ["bring-port-up", "fix-bond"],
} if {
	some b in input.nics.bonds
	b.name != ""
	count(b.down) > 0
}

# lacp are the bonds that need a switch which speaks LACP, and show root what it said.
lacp contains b if {
	some b in input.nics.bonds
	b.name != ""
	b.mode == "802.3ad"
	count(up(b)) > 0
}

findings contains {
	"id": "no-partner",
	"subject": b.name,
	"message": sprintf("No switch speaks LACP with the bond %s (802.3ad), so it uses one link: the switch ports belong to no port channel, or to one without LACP.%s", [b.name, carries(b)]),
	"evidence": [shown(b, "partner")],
	"severity": grade(b),
	"remedies": ["fix-bond"],
} if {
	some b in lacp
	b.partner == no_partner
	count(up(b)) > 1
}

findings contains {
	"id": "not-joined",
	"subject": b.name,
	"message": sprintf("LACP joined %d of the %d links of the bond %s that are up: the others are connected to another switch or to another port channel.%s", [b.aggregated, count(up(b)), b.name, carries(b)]),
	"evidence": [shown(b, "aggregated"), shown(b, "members")],
	"severity": grade(b),
	"remedies": ["fix-bond"],
} if {
	some b in lacp
	b.aggregated < count(up(b))
	b.partner != no_partner
}

# spreads are the bonds under RDMA that distribute connections over several links.
spreads contains b if {
	some b in input.nics.bonds
	count(ports_of(b)) > 0
	count(up(b)) > 1
	b.mode in {"802.3ad", "balance-xor"}
}

findings contains {
	"id": "hash",
	"subject": b.name,
	"message": sprintf("The bond %s distributes by %s, so that all connections between two hosts use one of its %d links%s; layer3+4 distributes by connection. NICs that bond RDMA themselves (RoCE LAG) may do so differently: measure it.%s", [b.name, b.hash_policy, count(up(b)), rate(b), carries(b)]),
	"evidence": [shown(b, "hash_policy")],
	"severity": "low",
	"confidence": "possible",
	"remedies": ["fix-bond"],
} if {
	some b in spreads
	b.hash_policy in {"layer2", "layer2+3", "encap2+3", "vlan+srcmac"}
}

# one_pair is true where NCCL uses one queue pair for a connection, its default.
one_pair if not facts.env.NCCL_IB_QPS_PER_CONNECTION
one_pair if facts.env.NCCL_IB_QPS_PER_CONNECTION == "1"

findings contains {
	"id": "one-queue-pair",
	"subject": b.name,
	"message": sprintf("RDMA runs over the bond %s of %d links%s, and one queue pair uses one of them: with NCCL_IB_QPS_PER_CONNECTION=%d, a connection of NCCL can use all.%s", [b.name, count(up(b)), rate(b), count(up(b)), carries(b)]),
	"evidence": [shown(b, "hash_policy"), shown(b, "members")],
	"severity": "info",
	"confidence": "possible",
	"remedies": ["fix-bond"],
} if {
	some b in spreads
	b.hash_policy in {"layer3+4", "encap3+4"}
	is_array(input.env.variables)
	one_pair
}

missing contains {"fact": "nics.bonds", "words": sprintf("the %s of the bond %s is not known", [concat(" and the ", sort(lacks)), b.name])} if {
	some b in input.nics.bonds
	lacks := lacking(b)
	count(lacks) > 0
}

lacking(b) := ({word |
	some field, word in {"members": "list of members", "mode": "mode"}
	object.get(b, field, null) == null
} | {word |
	word := "LACP partner (shown only to root)"
	rdma.of_machine(b)
	b.mode == "802.3ad"
	object.get(b, "partner", "") == ""
}) | {word |
	word := "hash policy"
	b in spreads
	object.get(b, "hash_policy", "") == ""
}

missing contains {"fact": "nics.rdma", "words": "it is not known which RDMA ports a bond carries"} if {
	count(input.nics.bonds) > 0
	not carried
}

# carried is true where the RDMA ports are known, and the interfaces of those of RoCE.
carried if {
	is_array(input.nics.rdma)
	every p in input.nics.rdma {
		placed(p)
	}
}

placed(p) if p.netdev
placed(p) if object.get(p, "link_layer", "") != "Ethernet"

missing contains {"fact": "env.variables", "words": "it is not known how many queue pairs NCCL uses for a connection"} if {
	count(spreads) > 0
	not variables_known
}

variables_known if is_array(input.env.variables)

not_applicable contains "no bond of interfaces" if {
	is_array(input.nics.bonds)
	count(input.nics.bonds) == 0
}

not_applicable contains "no RDMA device is available" if {
	not input.nics.bonds
	rdma.no_device
}
