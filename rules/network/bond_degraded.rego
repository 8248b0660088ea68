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

ports_over[networks.host_of(p)][p.netdev] contains rdma.plain_name(p) if some p in rdma.ports

ports_of(b) := object.get(ports_over, [networks.host_of(b), b.name], set())

carries(b) := concat("", [sprintf(" It carries RDMA (%s).", [facts.few(ports_of(b))]) | count(ports_of(b)) > 0])

# grade: of a bond that carries RDMA, a part that is missing costs its rate. Any other is a spare way
# for the management network, and a backup is meant to idle.
grade(b) := "medium" if {
	count(ports_of(b)) > 0
	b.mode != "active-backup"
} else := "low"

up(b) := {m | some m in b.members} - {m | some m in object.get(b, "down", [])}

shown(b, field) := {"fact": sprintf("nics.bonds[%s].%s", [b.name, field]), "value": b[field], "source": logs.at(b)}

findings contains {
	"id": "member-down",
	"subject": b.name,
	"message": sprintf("No link at %s of the bond %s: it uses %d of %d links.%s", [facts.few(b.down), b.name, count(up(b)), count(b.members), carries(b)]),
	"evidence": [shown(b, "down"), shown(b, "members")],
	"severity": grade(b),
	"confidence": "confirmed",
	"remedies": ["bring-port-up", "fix-bond"],
} if {
	some b in input.nics.bonds
	b.name != ""
	count(b.down) > 0
}

# Without a switch that speaks LACP, the bond uses one link.
findings contains {
	"id": "not-joined",
	"subject": b.name,
	"message": sprintf("LACP (802.3ad) joined %d of the %d links of the bond %s that are up: the switch ports belong to no port channel, to another one, or to one without LACP.%s", [joined, count(up(b)), b.name, carries(b)]),
	"evidence": [shown(b, "partner"), shown(b, "members")],
	"severity": grade(b),
	"remedies": ["fix-bond"],
} if {
	some b in input.nics.bonds
	b.name != ""
	b.mode == "802.3ad"
	joined := links_joined(b)
	joined < count(up(b))
}

links_joined(b) := 1 if {
	b.partner == "00:00:00:00:00:00"
} else := b.aggregated

# spreads are the bonds under RDMA that distribute connections over several links.
spreads contains b if {
	some b in input.nics.bonds
	count(ports_of(b)) > 0
	count(up(b)) > 1
	b.mode in {"802.3ad", "balance-xor"}
}

# A policy by addresses sends all connections between two hosts over one link, and any policy one queue pair.
findings contains {
	"id": "one-link",
	"subject": b.name,
	"message": sprintf("A connection over the bond %s uses one of its %d links: it distributes by %s, and NCCL uses one queue pair for a connection. With layer3+4 and NCCL_IB_QPS_PER_CONNECTION=%d it can use all, unless NICs that bond RDMA themselves (RoCE LAG) do: measure it.%s", [b.name, count(up(b)), b.hash_policy, count(up(b)), carries(b)]),
	"evidence": [shown(b, "hash_policy"), shown(b, "members")],
	"severity": "low",
	"confidence": "possible",
	"remedies": ["fix-bond"],
} if {
	some b in spreads
	by_addresses_or_pair(b)
}

by_addresses_or_pair(b) if b.hash_policy in {"layer2", "layer2+3", "encap2+3", "vlan+srcmac"}

by_addresses_or_pair(b) if {
	b.hash_policy in {"layer3+4", "encap3+4"}
	is_array(input.env.variables)
	object.get(facts.env, "NCCL_IB_QPS_PER_CONNECTION", "1") == "1" # NCCL's default
}

missing contains {"fact": "nics.bonds", "words": sprintf("%s of the bond %s is not known", [words, b.name])} if {
	some b in input.nics.bonds
	some field, words in required(b)
	object.get(b, field, "") == ""
}

required(b) := object.union_n(array.flatten([
	{"members": "a list of members", "mode": "the mode"},
	[{"partner": "the LACP partner, which only root sees,"} | rdma.of_machine(b); b.mode == "802.3ad"],
	[{"hash_policy": "the hash policy"} | b in spreads],
]))

asks contains "nics.rdma" if count(input.nics.bonds) > 0

# Of a port of RoCE, its interface shows whether a bond carries it.
missing contains {"fact": "nics.rdma", "words": "it is not known which RDMA ports a bond carries"} if {
	count(input.nics.bonds) > 0
	some p in input.nics.rdma
	object.get(p, "link_layer", "") == "Ethernet"
	not p.netdev
}

asks contains "env.variables" if count(spreads) > 0

not_applicable contains "no bond of interfaces" if count(input.nics.bonds) == 0

not_applicable contains "no RDMA device is available" if {
	not input.nics.bonds
	rdma.no_device
}
