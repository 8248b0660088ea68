# METADATA
# title: The job uses a network interface that does not reach its peers
# description: >-
#   NCCL and Gloo set up connections over one IP interface, which they choose themselves or from NCCL_SOCKET_IFNAME and
#   GLOO_SOCKET_IFNAME. If that interface does not exist, is down, is the loopback interface or a container bridge, or
#   is on a different network from the peers, the job fails or hangs at startup. A job on one machine can use any
#   interface.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
#     description: NCCL_SOCKET_IFNAME, NCCL_IB_HCA and the default choice
#   - ref: https://github.com/NVIDIA/nccl/issues/1837
#     description: An interface that does not exist shows as an address of an unknown family
#   - ref: https://github.com/pytorch/pytorch/issues/68893
#     description: A veth that NCCL chooses in addition to the right interface
#   - ref: https://docs.pytorch.org/docs/stable/distributed.html
#     description: GLOO_SOCKET_IFNAME
# custom:
#   severity: critical
#   confidence: likely
#   needs: [[job-connected, nics.interfaces], [job-connected, env.variables]]
#   remedies: [set-socket-ifname, correct-launch, unset-env, set-ib-hca, open-firewall, other]
#   explains: [app-mismatch/missing, collective-hang/between-hosts, no-such-interface > wrong-nic/no-interface, no-such-interface > collective-failed/variables, no-interface > collective-failed/variables, no-interface > collective-failed/everywhere]
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
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.own_connection
import data.gpudoctor.lib.surroundings

# misled is a finding that a variable is to name another interface, or none.
misled(variable, f) := object.union(found, f) if found := {
	"subject": "network", "remedies": ["set-socket-ifname", "unset-env"], "params": {"variable": variable},
}

interfaces_shown(list) := [{"fact": sprintf("nics.interfaces[%s].addresses", [n.name]), "value": object.get(n, "addresses", []), "source": logs.at(n)} | some n in list]

# Two interfaces in one network: the kernel sends by the first of two equal routes, whatever the job's setting. NCCL
# binds only its listening sockets (NVIDIA/nccl#1581). If the verbs library carries the data, this does not matter.
findings contains {
	"subject": "network",
	"message": sprintf("%s and %s%s are both in the network of %s: traffic to a peer leaves by the first matching route, although the job was configured to use %s. Give each interface its own network (a longer netmask), or give the other one's route a larger metric", [used.name, other.name, on(host), network, used.name]),
	"severity": shared_severity,
	"remedies": ["other", "set-socket-ifname"],
	"evidence": interfaces_shown([used, other]),
} if {
	{n.name | some n in input.logs.networks} == {"Socket"}
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

# On one machine this does not matter, and one log does not show how many there are.
shared_severity := "medium" if {
	networks.multi_node
} else := "low"

by_host[networks.host_of(n)] contains n if some n in input.nics.interfaces

# The ranks exchanged their addresses over the network of the rendezvous, which therefore reaches the peers, and then
# tried to connect over another one.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "off-meeting",
	"message": sprintf("The rendezvous address of the ranks is %s, which %s reaches, but they connect to each other over the network of %s, where %s is not reachable: NCCL chose an interface that does not reach the peers. Set NCCL_SOCKET_IFNAME to the other one", [astray.address, astray.meant.name, astray.taken.name, astray.remote]),
	"remedies": ["set-socket-ifname", "open-firewall"],
	"messages": [astray.message],
	"evidence": interfaces_shown([astray.taken, astray.meant]),
}) if astray := connections.earliest(off_meeting)

off_meeting contains {"message": f.message, "remote": f.remote, "taken": taken, "meant": meant, "address": address} if {
	some f in connections.unanswered
	some address in rendezvous
	some taken in (leading_to(f.remote) - leading_to(address))
	some meant in (leading_to(address) - leading_to(f.remote))
	meant.name != taken.name
	not networks.dead(meant)
}

# leading_to are the interfaces of this machine in whose network an address is.
leading_to(address) := {n | some n in input.nics.interfaces; some x in networks.ipv4_of(n); networks.within(x, address)}

# rendezvous are the configured rendezvous addresses of the ranks: MASTER_ADDR, or an option of torchrun, Accelerate or
# SGLang.
rendezvous contains facts.env.MASTER_ADDR if networks.ipv4(facts.env.MASTER_ADDR)

rendezvous contains address if {
	some l in input.launches
	some value in launches.options(l, "(master|dist[_-]init)[_-]addr|rdzv[_-]endpoint|main[_-]process[_-]ip|dist[_-]url|init[_-]method")
	some [_, address] in regex.find_all_string_submatch_n(`^(?:tcp://)?(\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$`, value, 1)
}

# NCCL chose an address without a network around it (/32), or a tunnel, while another interface of the machine has a
# network, and its peer did not respond. On some clouds all addresses are like this, and then prove nothing.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "narrow",
	"message": sprintf("NCCL chose %s (%s), which reaches only one endpoint, and the peer at %s did not respond; %s is in a network with others: set NCCL_SOCKET_IFNAME to it", [c.name, c.address, f.remote, facts.list({n.name | some n in networks.broader})]),
	"messages": [c.message, f.message],
	"evidence": interfaces_shown([n | some n in networks.narrow; n.name == c.name]),
}) if {
	not networks.told_interface
	count(networks.broader) > 0
	c := sort([c | some c in connections.chosen; c.place == 0; c.name in {n.name | some n in networks.narrow}])[0]
	f := connections.earliest(connections.unanswered)
}

findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "choice",
	"message": sprintf("NCCL%s uses %s (%s) in a job over several machines: %s%s", [
		on(networks.host_of(c.message)), c.name, c.address, out_of_reach,
		concat("", [sprintf(". NCCL_SOCKET_IFNAME=%s is set", [networks.asked]) | networks.asked]),
	]),
	"messages": [c.message],
	"evidence": [variable_fact("NCCL_SOCKET_IFNAME") | networks.asked],
}) if {
	networks.multi_node
	connections.choice_told
	c := connections.earliest(connections.bad_choices)
}

out_of_reach := "its address is valid only inside the machine or on one link, and peers cannot reach it"

findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "peer-address",
	"message": sprintf("A rank tried to connect to %s, and %s. The peer advertised the wrong interface: %s", [
		f.remote, connections.words[f.kind], out_of_reach,
	]),
	"severity": severity,
	"confidence": confidence,
	"messages": [f.message],
}) if {
	not networks.single_node
	f := connections.earliest(connections.bad_remotes)
	[severity, confidence] := grade(f)
}

# On one machine a refused connection to itself only says that the process at the other end is gone.
grade(f) := ["high", "possible"] if {
	not networks.multi_node
	networks.loopback(f.remote)
} else := ["critical", "likely"]

# Ranks took interfaces in different networks, and then did not connect: private IPv4 addresses of several hosts differ in
# their first 16 bits and in the interface's name. Networks that are wider than that usually have one name for the
# interface. NCCL 2.18 to 2.23 tries again on a socket that failed, which the kernel answers with "Software caused
# connection abort" whatever came first (NVIDIA/nccl#1515).
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "scattered",
	"message": sprintf("The machines chose interfaces in different networks (%s), and connections between them failed: one of them is probably wrong", [
		concat(", ", sort({sprintf("%s: %s %s", [networks.host_of(c.message), c.name, c.address]) | some c in connections.first_choices})),
	]),
	"messages": {f.message | some f in connections.hard_failures},
	"evidence": logs.all_evidence({c.message | some c in connections.first_choices}),
}) if {
	count({networks.host_of(c.message) | some c in connections.first_choices}) > 1
	count({array.slice(split(c.address, "."), 0, 2) | some c in connections.first_choices; contains(c.address, ".")}) > 1
	count({c.name | some c in connections.first_choices}) > 1
	count({f | some f in connections.hard_failures; f.kind != "refused"}) > 0
}

findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "no-route",
	"message": sprintf("This machine has no route to the network of a peer%s: the ranks connect over an interface that not all of them have", [
		concat("", [sprintf(" (%s)", [f.remote]) | f.remote != ""]),
	]),
	"messages": [f.message],
}) if {
	# One family of the addresses of PyTorch's store may have no route, but not all.
	given_up := {f | some f in connections.at_other_meeting; f.message.fields.any_host}
	f := connections.earliest({f | some f in (connections.hard_failures | given_up); f.kind == "unreachable"})
}

findings contains misled(name, {
	"id": "no-such-interface",
	"message": sprintf("%s=%s matches no interface%s: there are %s", [name, value, on(host), facts.list(names)]),
	"severity": listed_severity,
	"remedies": ["unset-env", "set-socket-ifname"],
	"evidence": [
		variable_fact(name),
		{"fact": "nics.interfaces", "value": sort(names), "source": logs.at(sort(interfaces)[0])},
	],
}) if {
	some name, value in networks.told_names
	some host, interfaces in networks.listed
	names := {n.name | some n in interfaces}
	count(networks.taken(name, names)) == 0

	# Where a program took an interface by that name, the list is of another place, the host instead of the container, say.
	count(networks.taken(name, {c.name | some c in connections.chosen})) == 0
}

findings contains misled(name, {
	"message": sprintf("%s=%s selects %s%s, which is down or has no address", [name, value, facts.list({n.name | some n in used}), on(host)]),
	"severity": listed_severity,
	"confidence": "confirmed",
	"evidence": array.concat(
		[variable_fact(name)],
		[{"fact": sprintf("nics.interfaces[%s]", [n.name]), "value": object.filter(n, ["state", "carrier", "addresses"]), "source": logs.at(n)} | some n in sort(used)],
	),
}) if {
	some name, value in networks.told_names
	some host, interfaces in networks.listed
	used := {n | some n in interfaces; count(networks.taken(name, {n.name})) > 0}
	count(used) > 0
	every n in used {
		networks.unusable(n)
	}
}

variable_fact(name) := surroundings.variable_evidence(facts.variable[name])

on(host) := concat("", [sprintf(" on %s", [host]) | host != ""])

listed_severity := "critical" if {
	networks.troubled
} else := "high"

findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "inside",
	"message": sprintf("NCCL_SOCKET_IFNAME=%s restricts NCCL to an interface that ends inside the machine, but the job has several machines", [networks.asked]),
	"severity": listed_severity,
	"evidence": [variable_fact("NCCL_SOCKET_IFNAME")],
}) if {
	networks.multi_node
	networks.told_interface
	count({name | some name in networks.patterns(networks.asked); name != "lo"; not networks.virtual(name)}) == 0
}

findings contains misled("NCCL_IB_HCA", {
	"message": sprintf("NCCL_IB_HCA=%s matches no RDMA device: there are %s", [value, facts.list(devices)]),
	"severity": "high",
	"confidence": "confirmed",
	"remedies": ["set-ib-hca", "unset-env"],
	"evidence": [
		variable_fact("NCCL_IB_HCA"),
		{"fact": "nics.rdma", "value": sort(devices), "source": logs.at(sort(input.nics.rdma)[0])},
	],
}) if {
	value := facts.env.NCCL_IB_HCA
	value != ""
	devices := {p.device | some p in input.nics.rdma}
	count({d | some d in devices; networks.selects(value, d)}) == 0
}

# NCCL finds no interface at all. A variable that names one which does not exist is the cause.
findings contains misled("NCCL_SOCKET_IFNAME", object.union({"id": "no-interface"}, found)) if some found in own_connection.missing

missing contains {"fact": "logs", "words": "no log of a job was given"} if {
	not input.logs
	not input.nics
}
