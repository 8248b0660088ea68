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
#   needs:
#     - nics.rdma[].gids
#     - [env.variables, job-told]
#   remedies: [set-gid-index, unset-env, upgrade-nccl, set-ib-hca, other]
#   explains: [collective-hang/between-hosts]
#   profiles: [training]
#   first_of:
#     - unanswered > unread
#     - unanswered > index
#   since: "0.1"
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
	"subject": "RoCE",
	"message": sprintf("%s %s%s", [observation(first_bad), verdict, hint]),
	"messages": bad,
	"evidence": index_evidence,
	"confidence": confidence,
	"remedies": remedies,
	"params": params,
} if {
	count(bad) > 0
	not elsewhere
}

# unread are NCCL's own words that an entry of the table of GIDs cannot be read: it looks through all of them for the
# best, and in a container with a network of its own most belong to interfaces elsewhere.
unread := logs.messages({"nccl-ib-gid-unread"}) | {m |
	some m in logs.by_id["nccl-ib-call-failed"]
	m.fields.call == "ibv_query_gid"
}

findings contains {
	"id": "unread",
	"subject": "RoCE",
	"message": sprintf("NCCL looks for the GID itself and cannot read an entry of the NIC's table (%s): it belongs to an interface that this container's network does not have. To stop the search, set NCCL_IB_GID_INDEX to an index that show_gids lists here; newer releases skip such entries%s", [logs.at(logs.first(unread)), hint]),
	"messages": unread,
	"evidence": index_evidence,
	"remedies": ["set-gid-index", "upgrade-nccl"],
	"params": params,
} if {
	count(unread) > 0
}

observation(m) := sprintf("A queue pair could not be connected (No such device, %s): the interface of the GID is down, or is not in the network namespace of this process, as in a container with its own network%s.", [logs.at(m), pair_remark]) if {
	m in deviceless
} else := sprintf("A queue pair could not be connected (%s): the GID does not exist, has no route, or its peer does not respond%s.", [logs.at(m), pair_remark]) if {
	m in refused
} else := sprintf("A NIC retransmitted and got no response (status 12, %s)%s.", [logs.at(m), pair_remark])

# deviceless are connections whose GID has no interface here.
deviceless := object.get(rdma.unconnected, "no-device", set())

# pair_remark reports GIDs in different networks, if a line names both.
pair_remark := sprintf(", from %s to %s", [pair[0], pair[1]]) if {
	pair := sort(pairs)[0]
} else := ""

pairs contains [trim_prefix(m.fields.local_gid, "::ffff:"), trim_prefix(m.fields.remote_gid, "::ffff:")] if {
	some m in bad
	startswith(m.fields.local_gid, "::ffff:")
}

# verdict and confidence: what is known of the index and of the version.
verdict := sprintf("GID index %d is set, and %s", [rdma.gid_index, fault]) if {
	fault := wrong_index
} else := sprintf("Since 2.21, NCCL finds the GID itself, but index %d is set: unset it", [rdma.gid_index]) if {
	rdma.chooses_gid
	rdma.gid_index
} else := "NCCL chose the GID itself: check with ib_write_bw -R, or ping -I, whether the two networks reach each other, and set NCCL_CROSS_NIC=0 if each NIC reaches only peers of the same index" if {
	rdma.chooses_gid
} else := "run show_gids in the container to see which GIDs are usable there; exclude the NICs whose interface it lacks (NCCL_IB_HCA), or share the host's network with the container" if {
	first_bad in deviceless
} else := "ib_write_bw -x shows which index reaches the peer; each program has its own setting for it" if {
	not by_nccl
} else := sprintf("GID index %d is set: show_gids must show a RoCE v2 GID with the interface's address there, on every NIC", [rdma.gid_index]) if {
	rdma.gid_index
} else := "NCCL up to 2.20 uses GID index 0 unless NCCL_IB_GID_INDEX is set to that of RoCE v2 (often 3), and it is not set"

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

# told_apart: NCCL took index 0, or one that it should not have been given, or
# the kernel refused the GID.
told_apart if {
	not rdma.chooses_gid
	not rdma.gid_index
}

told_apart if {
	rdma.chooses_gid
	rdma.gid_index
}

told_apart if count(refused) > 0

remedies := ["set-gid-index", "unset-env"] if {
	rdma.chooses_gid
	rdma.gid_index
} else := ["set-gid-index", "set-ib-hca", "other"] if {
	first_bad in deviceless
} else := ["set-gid-index"]

first_bad := logs.first(bad)

# hint names the index at which every port that is known has a routable GID.
hint := sprintf(". The tables have a RoCE v2 GID with an address at index %d", [right_index]) if {
	not right_index == rdma.gid_index
} else := ""

right_index := min(routable_everywhere)

params.gid_index := right_index

# variable is the setting that an NCCL which chooses the GID itself no longer needs.
params.variable := "NCCL_IB_GID_INDEX" if {
	rdma.chooses_gid
	rdma.gid_index
}

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
	"message": sprintf("GID index %d is set, and %s%s", [rdma.gid_index, wrong_index, hint]),
	"evidence": array.concat(index_evidence, [rdma.place(p) | some p in tables]),
	"severity": wrong_severity,
	"remedies": ["set-gid-index"],
	"params": params,
} if {
	wrong_index
}

wrong_severity := "high" if {
	count(empty_ports) > 0
} else := "low"

# What the tables of this machine's ports show on their own.
findings contains object.union({"confidence": "likely"}, found) if some found in in_tables

# Programs that look for a GID say so when there is none.
findings contains {
	"subject": "RoCE",
	"message": sprintf("A program found no usable GID (%s). A RoCE port gets a version 2 GID when its interface is up and has an IP address; in a container, the GID is visible only in the interface's own network namespace", [logs.at(m)]),
	"messages": {m},
	"confidence": "confirmed",
	"remedies": ["set-gid-index"],
	"params": params,
} if {
	m := logs.first(logs.by_id["rdma-gid-missing"])
}

missing contains {"fact": "nics.rdma[].gids", "words": "the GIDs of the RoCE ports are not known (show_gids)"} if {
	count(tables) == 0
	count(bad) == 0
	not rdma.no_roce
	not rdma.no_device
}

missing contains {"fact": "nics.rdma", "words": "the state of a RoCE port is not known"} if {
	some p in tables
	rdma.of_machine(p)
	not p.state
}

not_applicable contains "only InfiniBand or EFA here: they have no RoCE GIDs" if rdma.no_roce

not_applicable contains "no RDMA device is available" if rdma.no_device

# Each element of found is a finding of rule roce-gid, without the fields that all of them share.

# roce_ports are the RoCE ports of this machine that carry data and whose table of GIDs was read.
roce_ports contains p if {
	some p in rdma.active_ports
	rdma.of_machine(p)
	p.link_layer == "Ethernet"
	is_array(p.gids)
}

bare contains p if {
	some p in roce_ports
	count(p.gids) == 0
}

# A port whose table is empty cannot connect to any other.
in_tables contains {
	"id": "no-gid",
	"subject": rdma.port_name(p),
	"message": sprintf("RoCE port %s is active, and its table of GIDs is empty: no connection over it is possible. %s", [rdma.port_name(p), bare_reason]),
	"evidence": [gids_of(p)],
	"severity": bare_severity,
	"remedies": ["set-gid-index", "set-ib-hca", "other"],
} if {
	some p in bare
}

bare_reason := "The port's interface is probably in another network namespace: share the host's network with the container, or move the interface into it" if {
	facts.in_container
} else := "A port gets GIDs when its interface is up and has an address"

# A container without the device nodes does not use the ports of its machine.
bare_severity := "low" if {
	facts.in_container
	not passed_in
} else := "high" if {
	bare == roce_ports
} else := "medium"

# A port with GIDs of version 1 only reaches no peer behind a router.
in_tables contains {
	"id": "only-v1",
	"subject": rdma.port_name(p),
	"message": sprintf("RoCE port %s has GIDs of version 1 only, which are not routed: it reaches peers in its own Ethernet segment, if they use version 1 as well. NCCL looks for version 2", [rdma.port_name(p)]),
	"evidence": [gids_of(p)],
	"severity": "low",
	"remedies": ["set-gid-index", "other"],
} if {
	some p in roce_ports
	count(p.gids) > 0
	every g in p.gids {
		g.type == "RoCE v1"
	}
}

gids_of(p) := {
	"fact": sprintf("nics.rdma[%s:%d].gids", [p.device, p.port]),
	"value": [object.filter(g, ["index", "gid", "type"]) | some g in p.gids],
	"source": sprintf("%s/gids", [p.source]),
}

passed_in if count(surroundings.rdma_nodes) > 0
