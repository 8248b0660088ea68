# METADATA
# title: The GIDs of this machine's RoCE ports
# description: >-
#   Each element of found is a finding of rule roce-gid, without the fields that
#   all of them share.
package gpudoctor.lib.roce_tables

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.surroundings

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
found contains {
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
found contains {
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
