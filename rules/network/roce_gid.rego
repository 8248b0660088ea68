# METADATA
# title: RoCE uses a GID that does not reach the peer
# description: >-
#   Of the GIDs of a RoCE port, only those of version 2 with an IP address are routed. NCCL up to 2.20 uses index 0,
#   usually a link-local GID of version 1: the TCP connection succeeds, and the first transfer gets no response
#   (completion status 12). Since 2.21, NCCL finds the right GID itself, and an index that is still set may be wrong.
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
#   needs: ["nics.rdma[].gids[].type", [env.variables, job-told]]
#   remedies: [set-gid-index, unset-env, upgrade-nccl, set-ib-hca, other]
#   explains: [collective-hang/between-hosts, failure-area]
#   profiles: [training]
#   first_of: [unanswered > unread, unanswered > index]
#   since: "0.1"
#   grades:
#     unanswered: >-
#       A connection over RoCE was refused or not answered ({at}): a GID that does not reach the peer is the usual cause.
#       [GID index {index} is set. ][{unfit} has no routable GID there. ]NCCL up to 2.20 uses index 0 unless
#       NCCL_IB_GID_INDEX is set; later versions and UCX need no index. show_gids must show a RoCE v2 GID with the
#       interface's address there, on every NIC and in this container[. {hint}]
#     index: "GID index {index} is set, where {unfit} has no routable GID[. {hint}]"
#     no-gid:
#       remedies: [set-gid-index, set-ib-hca, other]
#       text: >-
#         RoCE port {subject} is active, and its table of GIDs is empty: no connection over it is possible. A port gets GIDs
#         when its interface is up and has an address, and a container sees those of interfaces in its own network
package gpudoctor.rules.roce_gid

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.surroundings

# bad are the messages of connections that a wrong GID explains: not those that failed because memory ran out.
bad := (rdma.retry_exceeded - rdma.addressed) | refused

# refused: what the kernel answers to a wrong index, a GID without a route, and one whose interface is down or not in this
# network namespace (linux drivers/infiniband/core/cache.c, rdma_read_gid_attr_ndev_rcu; addr.c, roce_resolve_route_from_path).
refused contains m if {
	some m in (rdma.unconnected | logs.messages({"rdma-modify-qp-failed"}))
	some field in ["error", "errno", "status"]
	m.fields[field] in {
		"Invalid argument", "22", "No data available", "61", "Network is unreachable", "101",
		"No route to host", "113", "Connection timed out", "110", "No such device", "19",
	}
}

# perftest does not say why: it has the number of the GID, the MTU and the LID of the peer from its options.
refused contains m if {
	some m in logs.by_id["rdma-modify-qp-failed"]
	regex.match(`(?i)failed to modify QP`, m.text)
	count({field | some field in ["error", "errno", "status"]; m.fields[field]}) == 0
}

findings contains {
	"id": "unanswered",
	"subject": "RoCE",
	"about": object.union(about_index, {"at": logs.at(logs.first(bad))}),
	"messages": bad,
	"evidence": index_evidence,
	"confidence": confidence,
	"remedies": array.flatten(["set-gid-index", ["unset-env" | rdma.chooses_gid; rdma.gid_index], "set-ib-hca"]),
	"params": {"variable": "NCCL_IB_GID_INDEX"},
} if {
	count(bad) > 0
	count(rdma.lost) == 0 # That would be another reason for the same lines.
	rdma.link != "infiniband"
}

default confidence := "possible"

confidence := "likely" if count(unfit) > 0

# The kernel refused the GID, or NCCL took index 0.
confidence := "likely" if {
	rdma.link == "roce"
	count(refused | unindexed) > 0
}

unindexed := {m | some m in bad; m.program in {"nccl", "rccl"}; not rdma.chooses_gid; not rdma.gid_index}

# about_index is what texts say of the index; hint names the one at which every port that is known has a routable GID.
about_index := {
	"index": [rdma.gid_index | true],
	"unfit": {rdma.plain_name(p) | some p in unfit},
	"hint": [sprintf("The tables have a RoCE v2 GID with an address at index %d", [right_index]) | not right_index == rdma.gid_index],
}

right_index := min({i | some i, ports in routable_in; count(ports) == count(tables)})

index_evidence := [surroundings.variable_evidence(facts.variable.NCCL_IB_GID_INDEX) | rdma.gid_index]

# tables are the RoCE ports whose GIDs are known. A port of this machine without a link layer is EFA's.
tables contains p if {
	some p in rdma.ports
	not p.link_layer == "InfiniBand"
	count(listed(p)) > 1
	not of_efa(p)
}

of_efa(p) if {
	rdma.of_machine(p)
	not p.link_layer
}

listed(p) := {g | some g in p.gids; g.gid != ""; g.type}

# routable_in are the ports whose GID at an index is of RoCE v2 and has an address.
routable_in[g.index] contains p if {
	some p in tables
	some g in listed(p)
	g.type == "RoCE v2"
	not startswith(lower(g.gid), "fe80")
}

# unfit are the ports without such a GID at the index that is set.
unfit := tables - object.get(routable_in, rdma.gid_index, set())

# Without a failure, such an index works at most in one Ethernet segment, and not at all where it is empty.
findings contains {
	"id": "index",
	"subject": "NCCL_IB_GID_INDEX",
	"about": about_index,
	"evidence": array.concat(index_evidence, [rdma.place(p) | some p in tables]),
	"severity": {true: "high", false: "low"}[count([p | some p in unfit; not rdma.gid_index in {g.index | some g in listed(p)}]) > 0],
	"remedies": ["set-gid-index"],
} if count(unfit) > 0

# A port of this machine with an empty table cannot connect to any other. A container without its device node does not use it.
findings contains {
	"id": "no-gid",
	"subject": rdma.port_name(p),
	"evidence": [{"fact": sprintf("nics.rdma[%s:%d].gids", [p.device, p.port]), "value": p.gids, "source": sprintf("%s/gids", [p.source])}],
	"severity": {true: "high", false: "medium"}[count({q | some q in roce_ports; count(q.gids) > 0}) == 0],
} if {
	some p in roce_ports
	count(p.gids) == 0
	not surroundings.rdma_nodes == set()
}

roce_ports := {p | some p in rdma.active_ports; rdma.of_machine(p); p.link_layer == "Ethernet"; is_array(p.gids)}

asks contains "nics.rdma[].state" if count(tables) > 0

not_applicable contains "only InfiniBand or EFA here: they have no RoCE GIDs" if rdma.no_roce
not_applicable contains "no RDMA device is available" if rdma.no_device
