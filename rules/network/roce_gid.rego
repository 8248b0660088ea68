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
#   needs: ["nics.rdma[].gids[].type", [env.variables, job-told]]
#   remedies: [set-gid-index, unset-env, upgrade-nccl, set-ib-hca, other]
#   explains: [collective-hang/between-hosts]
#   profiles: [training]
#   first_of: [unanswered > unread, unanswered > index]
#   since: "0.1"
#   grades:
#     needless: >-
#       A connection over RoCE was refused or not answered ({at}). Since 2.21, NCCL finds the GID itself, but index
#       {index} is set[, where {unfit} has no routable GID]: unset it[. {hint}]
#     unanswered: >-
#       A connection over RoCE was refused or not answered ({at}): a GID that does not reach the peer is the usual cause.
#       [GID index {index} is set. ][{unfit} has no routable GID there. ]NCCL up to 2.20 uses index 0 unless
#       NCCL_IB_GID_INDEX is set; later versions and UCX choose the GID themselves. show_gids must show a RoCE v2 GID with
#       the interface's address there, on every NIC and in this container, and ib_write_bw -x shows which index reaches
#       the peer[. {hint}]
#     index: "GID index {index} is set, where {unfit} has no routable GID[. {hint}]"
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
bad := (rdma.retry_exceeded - rdma.addressed) | refused

# refused: a wrong index gives EINVAL or ENODATA, a GID without a route ENETUNREACH or EHOSTUNREACH, a peer whose hardware
# address is not found ETIMEDOUT, and a GID whose interface is down or not in the process's network namespace ENODEV
# (linux drivers/infiniband/core/cache.c, rdma_read_gid_attr_ndev_rcu; addr.c, roce_resolve_route_from_path).
refused contains m if {
	some m in logs.messages([
		"nccl-ib-modify-qp-invalid", "nccl-ib-modify-qp-unreachable", "nccl-ib-modify-qp-timed-out",
		"nccl-ib-modify-qp-failed", "rdma-modify-qp-failed",
	])
	count(errors(m) & ({
		"Invalid argument", "22", "No data available", "61", "Network is unreachable", "101",
		"No route to host", "113", "Connection timed out", "110",
	} | no_device)) > 0
}

no_device := {"No such device", "19"}

errors(m) := {m.fields[field] | some field in ["error", "errno", "status"]}

findings contains {
	"id": "unanswered",
	"grade": reading,
	"subject": "RoCE",
	"about": object.union(about_index, {"at": logs.at(first)}),
	"messages": bad,
	"evidence": index_evidence,
	"confidence": confidence,
	"remedies": array.flatten([
		"set-gid-index",
		["unset-env" | reading == "needless"],
		["set-ib-hca" | count(errors(first) & no_device) > 0],
	]),
	"params": params,
} if {
	first := logs.first(bad)
	count(rdma.lost) == 0 # That would be another reason for the same lines.
	rdma.link != "infiniband"
}

# An NCCL that chooses the GID itself needs no index.
default reading := "unanswered"

reading := "needless" if {
	rdma.chooses_gid
	rdma.gid_index
}

default confidence := "possible"

confidence := "likely" if count(unfit) > 0

# The choice of other programs than NCCL is not known.
confidence := "likely" if {
	some m in bad
	m.program in {"nccl", "rccl"}
	rdma.link == "roce"
	told_apart
}

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
	"unfit": {rdma.plain_name(p) | some p in unfit},
	"hint": [sprintf("The tables have a RoCE v2 GID with an address at index %d", [right_index]) | not right_index == rdma.gid_index],
}

right_index := min({i | some i, ports in routable_in; count(ports) == count(tables)})

params.gid_index := right_index

# variable is the setting that an NCCL which chooses the GID itself no longer needs.
params.variable := "NCCL_IB_GID_INDEX" if reading == "needless"

index_evidence := [surroundings.variable_evidence(facts.variable.NCCL_IB_GID_INDEX) | rdma.gid_index]

# tables are the RoCE ports whose GIDs are known. A port of this machine that is neither InfiniBand nor Ethernet is EFA's.
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
unfit := {p | rdma.gid_index; some p in tables} - object.get(routable_in, rdma.gid_index, set())

# Without a failure, an index that is empty cannot work, and one that is not routed works only in one Ethernet segment.
findings contains {
	"id": "index",
	"subject": "NCCL_IB_GID_INDEX",
	"about": about_index,
	"evidence": array.concat(index_evidence, [rdma.place(p) | some p in tables]),
	"severity": {true: "high", false: "low"}[count([p | some p in unfit; not rdma.gid_index in {g.index | some g in listed(p)}]) > 0],
	"remedies": ["set-gid-index"],
	"params": params,
} if count(unfit) > 0

asks contains "nics.rdma[].state" if count(tables) > 0

not_applicable contains "only InfiniBand or EFA here: they have no RoCE GIDs" if rdma.no_roce
not_applicable contains "no RDMA device is available" if rdma.no_device

# roce_ports are the RoCE ports of this machine that carry data and whose table of GIDs was read.
roce_ports := {p | some p in rdma.active_ports; rdma.of_machine(p); p.link_layer == "Ethernet"; is_array(p.gids)}

# A port with an empty table cannot connect to any other.
findings contains bare("no-gid", p, severity) if {
	some p in roce_ports
	count(p.gids) == 0
}

# With GIDs of version 1 only, it reaches none behind a router.
findings contains bare("only-v1", p, "low") if {
	some p in roce_ports
	{object.get(g, "type", "") | some g in p.gids} == {"RoCE v1"}
}

bare(id, p, weight) := {
	"id": id,
	"subject": rdma.port_name(p),
	"evidence": [{
		"fact": sprintf("nics.rdma[%s:%d].gids", [p.device, p.port]),
		"value": [object.filter(g, ["index", "gid", "type"]) | some g in p.gids],
		"source": sprintf("%s/gids", [p.source]),
	}],
	"severity": weight,
	"remedies": ["set-gid-index", "set-ib-hca", "other"],
}

# A container without the device nodes does not use the ports of its machine.
severity := "low" if {
	facts.in_container
	not passed_in
} else := "high" if {
	every p in roce_ports {
		count(p.gids) == 0
	}
} else := "medium"

passed_in if count(surroundings.rdma_nodes) > 0
