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
#     - choice > peer-address > no-route > unreached
#   since: "0.1"
package gpudoctor.rules.wrong_nic

import data.gpudoctor.lib.connections
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.own_connection
import data.gpudoctor.lib.surroundings

# misled is a finding that a variable is to name another interface, or none.
misled(variable, f) := object.union(f, {"subject": "network", "remedies": ["set-socket-ifname", "unset-env"], "params": {"variable": variable}})

# asked_fact shows what NCCL was told, if anything.
asked_fact := [variable_fact("NCCL_SOCKET_IFNAME") | networks.asked]

# A job over several machines used an interface that ends inside the machine, and did not start.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "choice",
	"message": sprintf("NCCL%s uses %s (%s) in a job over several machines: %s%s", [on(networks.host_of(c.message)), c.name, c.address, networks.why(c), told]),
	"messages": [c.message],
	"evidence": asked_fact,
}) if {
	networks.multi_node
	connections.choice_told
	c := connections.earliest(connections.bad_choices)
}

told := concat("", [sprintf(". NCCL_SOCKET_IFNAME=%s selected it: a list of excluded names must also exclude lo and docker", [value]) | value := networks.asked])

# A connection was tried to an address that means something else on each machine.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "peer-address",
	"message": sprintf("A rank tried to connect to %s, and %s: %s. The peer chose the wrong interface and advertised its address", [
		f.remote, connections.words[f.kind], networks.why({"address": f.remote}),
	]),
	"messages": [f.message],
}) if {
	not networks.single_node
	f := connections.earliest({f | some f in connections.bad_remotes; not own(f)})
}

# On one machine a refused connection to itself only says that the process at the other end is gone.
own(f) if {
	not networks.multi_node
	networks.loopback(f.remote)
}

# No route into the network at all: the interface that was taken does not lead there.
findings contains misled("NCCL_SOCKET_IFNAME", {
	"id": "no-route",
	"message": sprintf("This machine has no route to the network of a peer%s: the ranks connect over an interface that not all of them have", [concat("", [sprintf(" (%s)", [f.remote]) | f.remote != ""])]),
	"messages": [f.message],
}) if {
	f := connections.earliest({f | some f in connections.hard_failures; f.kind == "unreachable"})
}

# The variables against the list of interfaces.
findings contains object.union(
	misled(name, {
		"id": "no-such-interface",
		"message": sprintf("%s=%s matches no interface%s: there are %s", [name, value, on(host), facts.list(names)]),
		"severity": listed_severity,
		"evidence": [
			variable_fact(name),
			{"fact": "nics.interfaces", "value": sort(names), "source": logs.at(sort(interfaces)[0])},
		],
	}),
	{"remedies": ["unset-env", "set-socket-ifname"]},
) if {
	some name, value in networks.told_names
	some host, interfaces in networks.listed
	names := {n.name | some n in interfaces}
	count(networks.taken(name, names)) == 0

	# Where a program took an interface by that name, the list is of another place, the host instead of the container, say.
	count(networks.taken(name, {c.name | some c in connections.chosen})) == 0
}

findings contains misled(name, {
	"message": sprintf("%s=%s selects %s%s, which %s", [name, value, facts.list({n.name | some n in used}), on(host), state]),
	"severity": listed_severity,
	"confidence": "confirmed",
	"evidence": array.concat(
		[variable_fact(name)],
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

variable_fact(name) := surroundings.variable_evidence(facts.variable[name])

on(host) := concat("", [sprintf(" on %s", [host]) | host != ""])

listed_severity := "critical" if {
	networks.troubled
} else := "high"

# NCCL_IB_HCA against the list of RDMA devices.
findings contains {
	"subject": "network",
	"message": sprintf("NCCL_IB_HCA=%s matches no RDMA device: there are %s", [value, facts.list(devices)]),
	"severity": "high",
	"confidence": "confirmed",
	"remedies": ["set-ib-hca", "unset-env"],
	"params": {"variable": "NCCL_IB_HCA"},
	"evidence": [
		variable_fact("NCCL_IB_HCA"),
		{"fact": "nics.rdma", "value": sort(devices), "source": logs.at(sort(input.nics.rdma)[0])},
	],
} if {
	value := facts.env.NCCL_IB_HCA
	value != ""
	devices := {p.device | some p in input.nics.rdma}
	count(devices) > 0
	count({d | some d in devices; networks.selects(value, d)}) == 0
}

# NCCL finds no interface at all. A variable that names one which does not exist is the cause.
findings contains misled("NCCL_SOCKET_IFNAME", object.union({"id": "no-interface"}, found)) if some found in own_connection.missing

missing contains {"fact": "logs", "words": "no log of a job was given"} if {
	not input.logs
	not input.nics
}
