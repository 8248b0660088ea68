# METADATA
# title: A bond does not use all its links
# description: >-
#   A bond of network interfaces carries the rate of its members only if all of them have a link, and the switch joined
#   them (LACP).
# related_resources:
#   - {ref: https://docs.kernel.org/networking/bonding.html, description: Modes and the files of a bond}
# custom:
#   severity: medium
#   confidence: likely
#   cause: ib-port-down
#   needs: ["nics.bonds[].members", "nics.bonds[].mode"]
#   remedies: [fix-bond, bring-port-up]
#   profiles: [training]
#   since: "0.2"
#   grades:
#     member-down:
#       confidence: confirmed
#       remedies: [bring-port-up, fix-bond]
#       text: "No link at {down:few} of the bond {name}: it uses {up} of {members:link}.[ It carries RDMA ({ports:few}).]"
#     not-joined: >-
#       LACP (802.3ad) joined {joined} of the {up:link} of the bond {name} that are up: the switch ports belong to no port
#       channel, to another one, or to one without LACP.[ It carries RDMA ({ports:few}).]
package gpudoctor.rules.bond_degraded

import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.rdma

ports_over[networks.host_of(p)][p.netdev] contains rdma.plain_name(p) if some p in rdma.ports

# ports_of are the RDMA ports that a bond carries.
ports_of(b) := object.get(ports_over, [networks.host_of(b), b.name], set())

# A part that is missing costs the rate of RDMA. Any other bond is a spare way for the management network, and a backup
# is meant to idle.
severity(b) := "medium" if {
	count(ports_of(b)) > 0
	b.mode != "active-backup"
} else := "low"

up(b) := count({m | some m in b.members} - {m | some m in object.get(b, "down", [])})

# Without a switch that speaks LACP, the bond uses one link.
joined(b) := 1 if {
	b.partner == "00:00:00:00:00:00"
} else := b.aggregated

lacking contains ["member-down", b, {"up": up(b)}] if {
	some b in input.nics.bonds
	count(b.down) > 0
}

lacking contains ["not-joined", b, {"up": up(b), "joined": joined(b)}] if {
	some b in input.nics.bonds
	b.mode == "802.3ad"
	joined(b) < up(b)
}

findings contains {
	"id": id,
	"subject": b.name,
	"about": object.union_n([b, links, {"ports": ports_of(b)}]),
	"evidence": [{
		"fact": sprintf("nics.bonds[%s]", [b.name]),
		"value": object.filter(b, ["mode", "hash_policy", "members", "down", "partner", "aggregated"]),
		"source": logs.at(b),
	}],
	"severity": severity(b),
} if some [id, b, links] in lacking

asks contains "nics.bonds[].partner" if input.nics.bonds[_].mode == "802.3ad"

# Of a port of RoCE, its interface shows whether a bond carries it.
asks contains "nics.rdma" if count(input.nics.bonds) > 0
asks contains "nics.rdma[].netdev" if input.nics.rdma[_].link_layer == "Ethernet"

not_applicable contains "no bond of interfaces" if count(input.nics.bonds) == 0

not_applicable contains "no RDMA device is available" if {
	not input.nics.bonds
	rdma.no_device
}
