# METADATA
# title: The job uses a network interface that does not lead to its peers
# description: >-
#   NCCL and Gloo meet over one IP interface, which they choose by themselves or
#   by NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME. Where that interface does not
#   exist, is down, is the loopback interface or a bridge of containers, or
#   leads into another network than that of the peers, the job fails or hangs at
#   its start. A job on one machine can use any interface.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: NCCL_SOCKET_IFNAME, NCCL_IB_HCA and what is chosen without them
#   - ref: https://github.com/NVIDIA/nccl/issues/1837
#     description: An interface that does not exist shows as an address of no known family
#   - ref: https://github.com/pytorch/pytorch/issues/68893
#     description: A veth that NCCL picks beside the right interface
#   - ref: https://docs.pytorch.org/docs/stable/distributed.html
#     description: GLOO_SOCKET_IFNAME
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: likely
#   needs:
#     - [job-connected, nics.interfaces]
#     - [job-connected, env.variables]
#   remedies: [set-socket-ifname, unset-env, set-ib-hca, open-firewall, other]
#   explains: [app-mismatch/missing, collective-hang/between-hosts]
#   first_of:
#     - no-interface > address-not-filled
#     - gloo-to-loopback > gloo-silent
#     - gloo-to-loopback > peer-address
#     - choice > off-meeting
#     - choice > narrow
#     - choice > inside
#     - choice > peer-address > scattered > no-route > unreached
#   since: "0.1"
package gpudoctor.rules.wrong_nic

import data.gpudoctor.lib.connections
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.meetings
import data.gpudoctor.lib.networks

# misled is a finding that a variable is to name another interface, or none.
misled(variable, f) := object.union(f, {"subject": "network", "remedies": ["set-socket-ifname", "unset-env"], "params": {"variable": variable}})

# interfaces_shown shows interfaces as evidence.
interfaces_shown(list) := [{"fact": sprintf("nics.interfaces[%s].addresses", [n.name]), "value": object.get(n, "addresses", []), "source": logs.at(n)} | some n in list]

# asked_fact shows what NCCL was told, if anything.
asked_fact := [{"fact": "env.variables[NCCL_SOCKET_IFNAME]", "value": networks.asked, "source": "the texts"} | networks.asked]

# Two interfaces in one network: the kernel sends by the first of two routes that
# fit equally, whatever the job was told. NCCL binds what it listens on alone
# (NVIDIA/nccl#1581). Where the verbs library carries the data it is no matter.
findings contains {
	"subject": "network",
	"message": sprintf("%s and %s%s are both in the network of %s: what is sent to a peer goes out by whichever route stands first, though the job was told to use %s. Give each interface a network of its own (a longer netmask), or the other one's route a larger metric", [used.name, other.name, on(host), network, used.name]),
	"severity": shared_severity,
	"remedies": ["other", "set-socket-ifname"],
	"evidence": interfaces_shown([used, other]),
} if {
	tcp_alone
	not networks.single_node
	some host, interfaces in by_host
	[used, other, network] := sort([[a, b, x] |
		some a in interfaces
		a.name in {c.name | some c in connections.chosen}
		some b in interfaces
		b.name != a.name
		not networks.dead(b)
		not networks.virtual(b.name)
		not b.master
		some x in a.addresses
		some y in b.addresses
		networks.within(x, split(y, "/")[0])
		networks.within(y, split(x, "/")[0])
	])[0]
}

# On one machine it is no matter, and one log does not tell how many there are.
shared_severity := "medium" if {
	networks.multi_node
} else := "low"

by_host[networks.host_of(n)] contains n if some n in input.nics.interfaces

tcp_alone if {
	count(input.logs.networks) > 0
	every n in input.logs.networks {
		n.name == "Socket"
	}
}

# The ranks met over one network and then connect over another, which does not lead
# from machine to machine.
findings contains {
	"id": "off-meeting",
	"subject": "network",
	"message": sprintf("The ranks were told to meet at %s, which %s leads to, and connect to each other over the network of %s, where %s is not reached: NCCL took an interface that does not lead to the peers. NCCL_SOCKET_IFNAME is to name the other", [astray.address, astray.meant.name, astray.taken.name, astray.remote]),
	"remedies": ["set-socket-ifname", "open-firewall"],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
	"messages": [astray.message],
	"evidence": interfaces_shown([astray.taken, astray.meant]),
} if {
	astray := connections.earliest(meetings.off_meeting)
}

# NCCL took an address that has no network around it (/32), or a tunnel, while
# another interface of the machine has a network, and its peer did not answer. On
# some clouds all addresses are such, which then tell nothing.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "narrow",
	"message": sprintf("NCCL chose %s (%s), which leads to one other end alone, and the peer at %s did not answer; %s is in a network with others: name it by NCCL_SOCKET_IFNAME", [c.name, c.address, f.remote, facts.list({n.name | some n in networks.broader})]),
	"messages": [c.message, f.message],
	"evidence": interfaces_shown(connections.narrow_used),
}) if {
	names := {n.name | some n in connections.narrow_used}
	c := sort([c | some c in connections.chosen; c.place == 0; c.name in names])[0]
	f := connections.earliest(connections.unanswered)
}

# An interface that ends inside of the machine was taken in a job over several
# machines, and the job did not come up.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "choice",
	"message": sprintf("%s uses %s (%s) in a job over several machines: %s%s", [speaker(c.message), c.name, c.address, why(c), told]),
	"messages": [c.message],
	"evidence": asked_fact,
}) if {
	networks.multi_node
	connections.choice_told
	c := connections.earliest(connections.bad_choices)
}

why(c) := "every machine has that address for itself" if {
	networks.loopback(c.address)
} else := "no host has that address, which stands for all of them" if {
	networks.nobody(c.address)
} else := "that address holds on one link only, and a peer cannot tell on which" if {
	networks.link_local(c.address)
} else := "that is the network of a bridge inside of the machine, from which no other machine can be reached; a container in it needs the network of its host" if {
	networks.bridge_address(c.address)
} else := "that interface ends inside of the machine"

told := sprintf(". NCCL_SOCKET_IFNAME=%s asked for it", [networks.asked]) if {
	networks.told_interface
} else := sprintf(". NCCL_SOCKET_IFNAME=%s leaves nothing better: lo and docker are to be left out too when names are left out by hand", [networks.asked]) if {
	networks.asked
} else := ""

speaker(m) := sprintf("NCCL on %s", [m.host]) if {
	m.host
} else := "NCCL"

# A connection was tried to an address that means something else on each
# machine.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "peer-address",
	"message": sprintf("A rank tried to connect to %s, and %s: %s. The peer took the wrong interface and told its address", [
		f.remote, connections.words[f.kind], why({"address": f.remote}),
	]),
	"severity": severity,
	"confidence": confidence,
	"messages": [f.message],
}) if {
	not networks.single_node
	f := connections.earliest(connections.bad_remotes)
	[severity, confidence] := grade(f)
}

# On one machine a refused connection to itself only says that the process at
# the other end is gone.
grade(f) := ["high", "possible"] if {
	not networks.multi_node
	networks.loopback(f.remote)
} else := ["critical", "likely"]

# Ranks took interfaces in different networks, and then did not connect.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "scattered",
	"message": sprintf("The machines took interfaces in different networks (%s), and connections between them failed: one of them is likely the wrong one", [
		concat(", ", sort({sprintf("%s: %s %s", [networks.host_of(c.message), c.name, c.address]) | some c in connections.first_choices})),
	]),
	"messages": {f.message | some f in connections.hard_failures},
	"evidence": logs.all_evidence({c.message | some c in connections.first_choices}),
}) if {
	connections.scattered
}

# No route into the network at all: the interface that was taken does not lead
# there.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "no-route",
	"message": sprintf("This machine has no route into the network of a peer (%s): the ranks meet over an interface that not all of them have", [shown(f.remote)]),
	"messages": [f.message],
}) if {
	f := connections.earliest({f | some f in (connections.hard_failures | given_up); f.kind == "unreachable"})
}

# given_up are the connections to PyTorch's store of which every address failed: one
# family of addresses alone may have no route.
given_up contains f if {
	some f in connections.at_meeting
	f.message.fields.any_host
	not networks.loopback(f.remote)
}

shown(remote) := remote if {
	remote != ""
} else := "not named"

# The variables against the list of interfaces.
findings contains misled(name, {
	"message": sprintf("%s=%s fits no interface%s: there are %s", [name, value, on(host), facts.list(names)]),
	"severity": listed_severity,
	"evidence": [
		variable_fact(name, value),
		{"fact": "nics.interfaces", "value": sort(names), "source": logs.at(sort(interfaces)[0])},
	],
}) if {
	some name, value in networks.told_names
	some host, interfaces in networks.listed
	names := {n.name | some n in interfaces}
	count(networks.taken(name, names)) == 0

	# Where a program took an interface by that name, the list is of another place, the
	# host instead of the container, say.
	count(networks.taken(name, {c.name | some c in connections.chosen})) == 0
}

findings contains misled(name, {
	"message": sprintf("%s=%s takes %s%s, which %s", [name, value, facts.list({n.name | some n in used}), on(host), state]),
	"severity": listed_severity,
	"confidence": "confirmed",
	"evidence": array.concat(
		[variable_fact(name, value)],
		[{"fact": sprintf("nics.interfaces[%s]", [n.name]), "value": object.filter(n, ["state", "carrier", "addresses"]), "source": logs.at(n)} | some n in sort(used)],
	),
}) if {
	some name, value in networks.told_names
	some host, interfaces in networks.listed
	by_name := networks.taken(name, {n.name | some n in interfaces})
	used := {n | some n in interfaces; n.name in by_name}
	count(used) > 0
	state := networks.unusable(used)
}

variable_fact(name, value) := {"fact": sprintf("env.variables[%s]", [name]), "value": value, "source": "the texts"}

on(host) := sprintf(" on %s", [host]) if {
	host != ""
} else := ""

listed_severity := "critical" if {
	networks.troubled
} else := "high"

# The variable names what no other machine reaches, and the job has several.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "inside",
	"message": sprintf("NCCL_SOCKET_IFNAME=%s keeps NCCL to an interface that ends inside of the machine, and the job has several machines", [networks.asked]),
	"severity": listed_severity,
	"evidence": asked_fact,
}) if {
	networks.multi_node
	networks.told_interface
	every name in networks.patterns(networks.asked) {
		networks.inside(name)
	}
}

# NCCL_IB_HCA against the list of RDMA devices.
findings contains {
	"subject": "network",
	"message": sprintf("NCCL_IB_HCA=%s fits no RDMA device: there are %s", [value, facts.list(devices)]),
	"severity": "high",
	"confidence": "confirmed",
	"remedies": ["set-ib-hca", "unset-env"],
	"params": {"variable": "NCCL_IB_HCA"},
	"evidence": [
		variable_fact("NCCL_IB_HCA", value),
		{"fact": "nics.rdma", "value": sort(devices), "source": logs.at(sort(input.nics.rdma)[0])},
	],
} if {
	value := facts.env.NCCL_IB_HCA
	value != ""
	devices := {p.device | some p in input.nics.rdma}
	count(devices) > 0
	count({d | some d in devices; networks.selects(value, d)}) == 0
}

missing contains {"fact": "logs", "words": "no log of a job was given"} if {
	not input.logs
	not input.nics
}
