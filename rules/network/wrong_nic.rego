# METADATA
# title: The job uses a network interface that does not reach its peers
# description: >-
#   NCCL and Gloo connect over one IP interface, which they choose or read from NCCL_SOCKET_IFNAME and
#   GLOO_SOCKET_IFNAME. If that interface does not exist, is down, is the loopback interface or a container bridge, or
#   is on a different network from the peers, the job fails or hangs at startup. A job on one machine can use any.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: NCCL_SOCKET_IFNAME, NCCL_IB_HCA and the default choice
#   - ref: https://github.com/NVIDIA/nccl/issues/1837
#     description: An interface that does not exist shows as an address of an unknown family
# custom:
#   severity: critical
#   confidence: likely
#   needs: [[job-connected, nics.interfaces], [job-connected, env.variables]]
#   remedies: [set-socket-ifname, correct-launch, unset-env, set-ib-hca, open-firewall, other]
#   explains: [app-mismatch/missing, collective-hang/between-hosts, failure-area, no-such-interface > wrong-nic/no-interface, no-such-interface > collective-failed/variables, no-interface > collective-failed/variables, no-interface > collective-failed/everywhere, mixed > roce-gid/unanswered, rails > roce-gid/unanswered, rails > ib-port-down]
#   first_of:
#     - no-interface > address-not-filled
#     - gloo-to-loopback > gloo-silent
#     - gloo-to-loopback > peer-address
#     - choice > peer-address > beside > scattered > no-route > unreached
#   since: "0.1"
#   grades:
#     choice: >-
#       NCCL[ on {host}] uses {name} ({address}) in a job over several machines: its address is valid only inside the
#       machine or on one link, and peers cannot reach it[. NCCL_SOCKET_IFNAME={asked} is set]
#     lo-left: >-
#       NCCL_SOCKET_IFNAME={value} excludes interfaces, but not lo, which NCCL leaves out by itself only if the variable is
#       not set: NCCL then takes lo, whose address peers on other machines cannot reach. Exclude lo as well (^docker,lo)
#     peer-address: >-
#       A rank tried to connect to {remote}, and {words}. The peer advertised the wrong interface: its address is valid
#       only inside the machine or on one link, and peers cannot reach it
#     scattered: >-
#       The machines chose interfaces in different networks ({choices:comma}), and connections between them failed: one of
#       them is probably wrong
#     beside:
#       remedies: [set-socket-ifname, open-firewall]
#       text: >-
#         A connection to {remote} has no answer ({words}), although ranks reach each other in another network ({reached:comma}): they, or their
#         server, took an interface whose network does not connect the machines
#     no-route: >-
#       This machine has no route to the network of a peer[ ({remote})]: the ranks connect over an interface that not all
#       of them have
#     no-such-interface:
#       severity: high
#       text: "{variable}={value} matches no interface[ on {host}] that is up and has an address: there are {names}"
#     no-such-nic:
#       severity: high
#       confidence: confirmed
#       text: "NCCL_IB_HCA={value} matches no RDMA device: there are {devices}"
#     mixed: >-
#       NCCL uses {ethernet}, which {ethernet:is/are} Ethernet, beside the InfiniBand NICs ({infiniband:few}): the two
#       networks do not meet, and a connection between them failed. NCCL_IB_HCA selects the NICs
#     rails: >-
#       NCCL joins an RDMA device with the address {local} to one with {remote}, of another network, and the connection is
#       not made: NCCL_IB_HCA should name only devices whose networks connect the machines
package gpudoctor.rules.wrong_nic

import data.gpudoctor.lib.connections
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.surroundings

# misled is a finding that a variable is to name another interface, or none.
misled(variable, f) := object.union(found, f) if found := {
	"subject": "network", "remedies": ["set-socket-ifname", "unset-env"], "params": {"variable": variable},
}

findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "choice",
	"about": {"host": networks.host_of(c.message), "name": c.name, "address": c.address, "asked": [networks.asked | true]},
	"messages": [c.message],
}) if {
	networks.multi_node
	connections.choice_told
	c := connections.earliest(connections.bad_choices)
}

# NCCL leaves out lo only where the variable is not set (ncclFindInterfaces, src/misc/socket.cc): with ^docker0, an H200
# said "Bootstrap: Using lo:127.0.0.1".
findings contains misled("NCCL_SOCKET_IFNAME", {
	"grade": "lo-left",
	"about": {"value": facts.env.NCCL_SOCKET_IFNAME},
	"severity": {1: "high", 0: "low"}[count([true | networks.multi_node])],
	"evidence": [surroundings.variable_evidence(facts.variable.NCCL_SOCKET_IFNAME)],
}) if {
	not networks.single_node
	count(connections.chosen) == 0
	startswith(facts.env.NCCL_SOCKET_IFNAME, "^")
	count(networks.taken("NCCL_SOCKET_IFNAME", {"lo"})) > 0
}

findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "peer-address",
	"about": {"remote": f.remote, "words": connections.words[f.kind]},
	"messages": [f.message],
}) if {
	not networks.single_node
	f := connections.earliest(misdirected)
}

# On one machine a refused connection to itself only says that the process at the other end is gone.
misdirected := {f | some f in connections.bad_remotes; networks.multi_node} | {f |
	some f in connections.bad_remotes
	not networks.loopback(f.remote)
}

findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "beside",
	"about": {"remote": f.remote, "words": connections.words[f.kind], "reached": {sprintf("%s.*", [n]) | some n in connections.reached}},
	"messages": [f.message],
}) if f := connections.earliest({f | some f in connections.failures; connections.beside(f)})

# Ranks took interfaces in different networks, and then did not connect: IPv4 addresses of several hosts differ in their
# first 16 bits and in the interface's name.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "scattered",
	"about": {"choices": {sprintf("%s: %s %s", [networks.host_of(c.message), c.name, c.address]) | some c in connections.first_choices}},
	"messages": {f.message | some f in connections.hard_failures},
}) if {
	count({networks.host_of(c.message) | some c in connections.first_choices}) > 1
	count({array.slice(split(c.address, "."), 0, 2) | some c in connections.first_choices; contains(c.address, ".")}) > 1
	count({c.name | some c in connections.first_choices}) > 1
	count({f | some f in connections.hard_failures; f.kind != "refused"}) > 0
}

findings contains misled("NCCL_SOCKET_IFNAME", {"id": "no-route", "about": {"remote": f.remote}, "messages": [f.message]}) if {
	# One family of the addresses of PyTorch's store may have no route, but not all.
	given_up := {f | some f in connections.at_other_meeting; f.message.fields.any_host}
	f := connections.earliest({f | some f in (connections.hard_failures | given_up); f.kind == "unreachable"})
}

findings contains misled(name, {
	"id": "no-such-interface",
	"remedies": ["unset-env", "set-socket-ifname"],
	"about": {"variable": name, "value": value, "host": host, "names": names},
	"evidence": [
		surroundings.variable_evidence(facts.variable[name]),
		{"fact": "nics.interfaces", "value": sort(names), "source": logs.at(sort(interfaces)[0])},
	],
}) if {
	some name, value in networks.told_names
	some host, interfaces in networks.listed
	names := {n.name | some n in interfaces}
	count(networks.taken(name, {n.name | some n in interfaces; not networks.unusable(n)})) == 0

	# Where a program took an unlisted interface, the list is of another place, the host instead of the container, say.
	count(networks.taken(name, {c.name | some c in connections.chosen} - names)) == 0
}

findings contains misled("NCCL_IB_HCA", {
	"id": "no-such-nic",
	"remedies": ["set-ib-hca", "unset-env"],
	"about": {"value": value, "devices": devices},
	"evidence": [
		surroundings.variable_evidence(facts.variable.NCCL_IB_HCA),
		{"fact": "nics.rdma", "value": sort(devices), "source": logs.at(sort(input.nics.rdma)[0])},
	],
}) if {
	value := facts.env.NCCL_IB_HCA
	value != ""
	devices := {p.device | some p in input.nics.rdma}
	count({d | some d in devices; networks.selects(value, d)}) == 0
}

# Without a choice, NCCL takes all NICs, also the RoCE bond for storage or logins of a machine with InfiniBand.
findings contains misled("NCCL_IB_HCA", {
	"id": "mixed",
	"remedies": ["set-ib-hca"],
	"about": {"ethernet": on.Ethernet, "infiniband": on.InfiniBand},
	"evidence": [rdma.place(p) | some p in rdma.ports; p.link_layer == "Ethernet"],
	"messages": failed,
}) if {
	object.get(facts.env, "NCCL_IB_HCA", "") == ""
	on := {layer: {p.device | some p in rdma.ports; p.link_layer == layer} | some layer in ["Ethernet", "InfiniBand"]}
	min({count(devices) | some _, devices in on}) > 0
	failed := rdma.retry_exceeded | rdma.unconnected
	count(failed) > 0
}

# A queue pair joins two devices in different networks, and is not made.
findings contains misled("NCCL_IB_HCA", {
	"id": "rails",
	"remedies": ["set-ib-hca", "unset-env"],
	"about": {"local": ends[0], "remote": ends[1]},
	"messages": {m},
}) if {
	m := logs.first({m | some m in rdma.unconnected; count({connections.network(end) | some end in ends_of(m)}) == 2})
	ends := ends_of(m)
}

ends_of(m) := [trim_prefix(m.fields[end], "::ffff:") | some end in ["local_gid", "remote_gid"]]

# NCCL finds no interface at all. A variable that names one which does not exist is the cause.
missing contains {"fact": "logs", "words": "no log of a job was given"} if {
	not input.logs
	not input.nics
}
