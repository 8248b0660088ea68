# METADATA
# title: RoCE uses a GID that does not reach the peer
# description: >-
#   A RoCE port has several GIDs: version 1 and version 2, link-local and with its IP addresses. Only version 2 GIDs
#   with an address are routed. NCCL up to 2.20 uses index 0, which is usually a link-local GID of version 1: the TCP
#   connection succeeds, and the first transfer gets no response (completion status 12). Since 2.21, NCCL finds the
#   right GID itself, and an index that is still set selects a wrong one on some NICs.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-gid-index
#     description: The GID index, and since which version NCCL chooses it
#   - ref: https://github.com/NVIDIA/nccl/issues/426
#     description: Status 12 right at the start means that the NICs cannot reach each other over RoCE
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/infiniband/core/cache.c
#     description: The table of GIDs
# custom:
#   severity: critical
#   confidence: likely
#   needs: ["nics.rdma[].gids", [env.variables, job-told]]
#   remedies: [set-gid-index, unset-env, upgrade-nccl, set-ib-hca, other]
#   explains: [collective-hang/between-hosts]
#   profiles: [training]
#   first_of: [unanswered > unread, unanswered > index]
#   since: "0.1"
#   grades:
#     needless: "{seen}. Since 2.21, NCCL finds the GID itself, but index {index} is set[, and {fault}]: unset it[. {hint}]"
#     unanswered: >-
#       {seen}: a GID that does not reach the peer is the usual cause. [GID index {index} is set. ][The tables show that
#       {fault}. ]NCCL up to 2.20 uses index 0 unless NCCL_IB_GID_INDEX is set; later versions and UCX choose the GID
#       themselves. show_gids must show a RoCE v2 GID with the interface's address there, on every NIC and in this
#       container, and ib_write_bw -x shows which index reaches the peer[. {hint}]
#     index: "GID index {index} is set, and {fault}[. {hint}]"
#     no-gid: >-
#       RoCE port {subject} is active, and its table of GIDs is empty: no connection over it is possible. A port gets GIDs
#       when its interface is up and has an address, and a container sees those of interfaces in its own network
#     only-v1: >-
#       RoCE port {subject} has GIDs of version 1 only, which are not routed: it reaches peers in its own Ethernet
#       segment, if they use version 1 as well. NCCL looks for version 2
package gpudoctor.rules.roce_gid

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.surroundings

# bad are the messages of connections that a wrong GID explains. A connection that failed
# because memory ran out, or for no known reason, is not among them.
bad := rdma.retry_exceeded | refused

refused contains m if {
	some error in ["invalid", "unreachable", "timeout", "no-device"]
	some m in object.get(rdma.unconnected, error, set())
}

# elsewhere is true when the log names another reason for the same lines: a port that was lost.
elsewhere if count(rdma.port_errors | rdma.device_errors) > 0
elsewhere if rdma.link == "infiniband"

findings contains {
	"id": "unanswered",
	"grade": reading,
	"subject": "RoCE",
	"about": object.union(about_index, {"seen": seen}),
	"messages": bad,
	"evidence": index_evidence,
	"confidence": confidence,
	"remedies": array.flatten([
		"set-gid-index",
		["unset-env" | reading == "needless"],
		["set-ib-hca" | first_bad in object.get(rdma.unconnected, "no-device", set())],
	]),
	"params": params,
} if {
	count(bad) > 0
	not elsewhere
}

first_bad := logs.first(bad)

seen := sprintf("A queue pair could not be connected (%s)", [logs.at(first_bad)]) if {
	first_bad in refused
} else := sprintf("A NIC retransmitted and got no response (status 12, %s)", [logs.at(first_bad)])

# An NCCL that chooses the GID itself needs no index.
default reading := "unanswered"

reading := "needless" if {
	rdma.chooses_gid
	rdma.gid_index
}

# by_nccl is true if NCCL or RCCL says so. UCX chooses the GID itself, and the choice of other programs is not known.
by_nccl if {
	some m in bad
	m.program in {"nccl", "rccl"}
}

confidence := "likely" if {
	wrong_index
} else := "likely" if {
	by_nccl
	rdma.link == "roce"
	told_apart
} else := "possible"

# told_apart: NCCL took index 0, or one that it should not have been given, or the kernel refused the GID.
told_apart if reading == "needless"
told_apart if count(refused) > 0

told_apart if {
	not rdma.chooses_gid
	not rdma.gid_index
}

# about_index is what texts say of the index; hint names the one at which every port that is known has a routable GID.
about_index := {
	"index": [rdma.gid_index | true],
	"fault": [wrong_index | true],
	"hint": [sprintf("The tables have a RoCE v2 GID with an address at index %d", [right_index]) | not right_index == rdma.gid_index],
}

right_index := min(routable_everywhere)

params.gid_index := right_index

# variable is the setting that an NCCL which chooses the GID itself no longer needs.
params.variable := "NCCL_IB_GID_INDEX" if reading == "needless"

index_evidence := [{
	"fact": "env.variables[NCCL_IB_GID_INDEX]",
	"value": rdma.gid_index,
	"source": sprintf("%s:%d", [v.source, object.get(v, "line", 0)]),
} |
	v := facts.variable.NCCL_IB_GID_INDEX
	rdma.gid_index
]

# tables are the RoCE ports whose GIDs are known.
tables contains p if {
	some p in rdma.ports
	not p.link_layer == "InfiniBand"
	count(listed(p)) > 1
	not other_layer(p)
}

# other_layer is true of a port of this machine that is neither InfiniBand nor Ethernet: of EFA.
other_layer(p) if {
	rdma.of_machine(p)
	not p.link_layer
}

listed(p) := {g | some g in p.gids; g.gid != ""; g.type}

at_index(p) := g if {
	some g in listed(p)
	g.index == rdma.gid_index
}

routable(g) if {
	g.type == "RoCE v2"
	not startswith(lower(g.gid), "fe80")
}

# routable_everywhere are the indices at which every known table has a GID of RoCE v2 with an address.
routable_everywhere := {i | some i, ports in routable_in; count(ports) == count(tables)}

routable_in[g.index] contains p if {
	some p in tables
	some g in listed(p)
	routable(g)
}

# wrong_index describes the error in the index that is set, if the tables show it.
wrong_index := sprintf("%s has no GID there", [sort({rdma.plain_name(p) | some p in empty_ports})[0]]) if {
	count(empty_ports) > 0
} else := sprintf("the GID of %s there is %s", [rdma.plain_name(poor[0]), poor[1]]) if {
	poor := sort(poor_ports)[0]
}

empty_ports contains p if {
	some p in tables
	rdma.gid_index
	not at_index(p)
}

poor_ports contains [p, what] if {
	some p in tables
	g := at_index(p)
	what := poverty(g)
}

poverty(g) := "of RoCE v1, which is not routed" if {
	g.type == "RoCE v1"
} else := "link-local, which is not routed" if {
	startswith(lower(g.gid), "fe80")
}

# Without a failure, an index that is empty cannot work, and one that is not routed works only in one Ethernet segment.
findings contains {
	"id": "index",
	"subject": "NCCL_IB_GID_INDEX",
	"about": about_index,
	"evidence": array.concat(index_evidence, [rdma.place(p) | some p in tables]),
	"severity": {true: "high", false: "low"}[count(empty_ports) > 0],
	"remedies": ["set-gid-index"],
	"params": params,
} if wrong_index

missing contains {"fact": "nics.rdma[].gids", "words": "the GIDs of the RoCE ports are not known (show_gids)"} if {
	count(tables) == 0
	count(bad) == 0
	not rdma.no_roce
	not rdma.no_device
}

asks contains "nics.rdma[].state" if count(tables) > 0

not_applicable contains "only InfiniBand or EFA here: they have no RoCE GIDs" if rdma.no_roce

not_applicable contains "no RDMA device is available" if rdma.no_device

# roce_ports are the RoCE ports of this machine that carry data and whose table of GIDs was read.
roce_ports contains p if {
	some p in rdma.active_ports
	rdma.of_machine(p)
	p.link_layer == "Ethernet"
	is_array(p.gids)
}

# bare are those without a GID of version 2, by the id of their finding: with an empty table a port cannot connect to any
# other, and with GIDs of version 1 only to none behind a router.
bare["no-gid"] contains p if {
	some p in roce_ports
	count(p.gids) == 0
}

bare["only-v1"] contains p if {
	some p in roce_ports
	count(p.gids) > 0
	every g in p.gids {
		g.type == "RoCE v1"
	}
}

findings contains {
	"id": id,
	"subject": rdma.port_name(p),
	"evidence": [{
		"fact": sprintf("nics.rdma[%s:%d].gids", [p.device, p.port]),
		"value": [object.filter(g, ["index", "gid", "type"]) | some g in p.gids],
		"source": sprintf("%s/gids", [p.source]),
	}],
	"severity": severity(id),
	"remedies": ["set-gid-index", "set-ib-hca", "other"],
} if {
	some id, ports in bare
	some p in ports
}

# A container without the device nodes does not use the ports of its machine.
severity(id) := "low" if {
	id == "only-v1"
} else := "low" if {
	facts.in_container
	not passed_in
} else := "high" if {
	bare["no-gid"] == roce_ports
} else := "medium"

passed_in if count(surroundings.rdma_nodes) > 0
