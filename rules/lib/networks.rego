# Machines, interfaces and addresses. Whether a job spans several machines, what the names and addresses of interfaces
# mean, and which of them it was configured to use. How its processes used them is in lib/connections.rego.
package gpudoctor.lib.networks

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs

# hosts are the machines, or containers, that the logs name.
hosts := union({
	{m.host | some m in input.logs.messages; m.program in {"nccl", "rccl", "ofi"}; m.host != ""},
	{n.host | some n in input.logs.networks; n.host != ""},
	{h | some c in input.logs.communicators; some h in c.hosts},
})

# multi_node is true when the texts show that the job spans several machines.
multi_node if count(hosts) > 1
multi_node if met

# Ray writes the address only of processes on other machines, before lines of any program: "(Worker pid=12, ip=10.0.0.2)".
multi_node if regex.match(`\(\w+ pid=\d+, ip=\d`, input.logs.messages[_].text)

# NCCL names the ranks at both ends of a channel, and on which machines they are.
multi_node if {
	some t in input.logs.transports
	t.kind == "net"
	t.same_host == false
}

# torchrun counts ranks of all nodes, and local ones of each.
multi_node if {
	some m in logs.by_id["torch-first-failure"]
	m.fields.rank != object.get(m.fields, "local_rank", m.fields.rank)
}

multi_node if input.launches[_].nodes > 1
multi_node if input.benchmarks[_].nodes > 1

# single_node is true when NCCL itself counted one machine.
single_node if {
	input.logs.communicators[_].nodes == 1
	not multi_node
}

# met is true if NCCL counted several machines: the ranks then have connected over the bootstrap interface.
met if input.logs.communicators[_].nodes > 1

met if {
	some c in input.logs.communicators
	count(c.hosts) > 1
	c.completed == c.ranks
}

# troubled is true when the job failed, did not complete a communicator, or tried a connection again and again.
troubled if logs.failed
troubled if logs.said("nccl-connect-retried-often")

troubled if {
	some c in input.logs.communicators
	c.started > c.completed
}

host_of(m) := object.get(m, "host", "")

# loopback is true of an address that means the machine itself.
loopback(address) if strings.any_prefix_match(address, ["127.", "::1", "localhost"])

# link_local is true of an address that holds on one cable only (RFC 3927, RFC 4291).
link_local(address) if strings.any_prefix_match(lower(address), ["fe80:", "169.254."])

# local is true of an address that means nothing to another machine: nor do "any" and that of a broadcast.
local(address) if loopback(address)
local(address) if link_local(address)
local(address) if address in {"0.0.0.0", "::", "255.255.255.255"}

# bridge_address is true of an address from the default networks of Docker's, libvirt's and Podman's bridges.
bridge_address(address) if strings.any_prefix_match(address, ["172.17.", "192.168.122.", "10.88.0."])

# virtual is true of the name of an interface that ends inside the machine.
virtual(name) if regex.match(`^(docker|br-|virbr|veth|cni|cbr|cali|lxc|lxd|podman|kube-bridge|kube-ipvs|nodelocaldns|vmnet|vboxnet|vnet|dummy|nerdctl|tailscale|zt|ip6tnl|sit\d|tunl\d|azv)`, name)

# bridge is true of the names of bridges inside a machine: a veth may be the end of a pod, with an address of its own.
bridge(name) if regex.match(`^(docker|virbr|br-[0-9a-f]{12}$|podman|cni|lxcbr|lxdbr)`, name)

# patterns reads the value of NCCL_SOCKET_IFNAME or NCCL_IB_HCA: a list of prefixes, or, behind "=", of whole names; "^"
# leaves out instead (nccl src/misc/utils.cc, parseStringList; src/misc/socket.cc).
patterns(value) := {name |
	some part in split(trim_left(value, "^="), ",")
	name := split(trim_left(trim_space(part), "^="), ":")[0]
	name != ""
}

default excludes(_) := false

excludes(value) if strings.any_prefix_match(value, ["^", "=^"])

# selects is true when such a value takes a name.
selects(value, name) if excludes(value) != matches(value, name)

default matches(_, _) := false

matches(value, name) if name in patterns(value)

matches(value, name) if {
	not strings.any_prefix_match(value, ["=", "^="]) # These are followed by whole names.
	strings.any_prefix_match(name, patterns(value))
}

# asked is NCCL's configured interface.
asked := facts.env.NCCL_SOCKET_IFNAME if facts.env.NCCL_SOCKET_IFNAME != ""

# told_interface is true when that names interfaces, and not only what to leave out.
told_interface if {
	asked
	not excludes(asked)
}

told_names := {name: facts.env[name] | some name in ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"]; facts.env[name] != ""}

# taken are those of some names of interfaces that the value of a variable takes.
taken("NCCL_SOCKET_IFNAME", names) := {name | some name in names; selects(told_names.NCCL_SOCKET_IFNAME, name)}
taken("GLOO_SOCKET_IFNAME", names) := names & {trim_space(name) | some name in split(told_names.GLOO_SOCKET_IFNAME, ",")}

# listed are the interfaces of each host whose list is whole: the loopback
# interface is in each whole list, and on a machine with very many, some are only counted.
listed[host] := {n | some n in input.nics.interfaces; host_of(n) == host} if {
	some lo in input.nics.interfaces
	lo.kind == "loopback"
	host := host_of(lo)
	object.get(input.nics, "interfaces_left", 0) == 0
}

# unusable is true of one that is down, or has no address in a list that shows addresses.
unusable(n) if n.state == "down"
unusable(n) if n.carrier == false

unusable(n) if {
	count(input.nics.interfaces[_].addresses) > 0
	count(object.get(n, "addresses", [])) == 0
}

address(text) if regex.match(`^\d{1,3}(\.\d{1,3}){3}$`, text)
address(text) if loopback(text)
address(text) if regex.match(`^[0-9a-fA-F]*::?[0-9a-fA-F:.]*(?:%[\w.-]+)?$`, text)
