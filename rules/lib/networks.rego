# Machines, interfaces and addresses. Whether a job spans several machines, what the names and addresses of network
# interfaces mean, and which of them a job was configured to use. How its processes then used them is in
# lib/connections.rego.
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

# Ray writes the address behind the process only for those on other machines than the driver: "(RayWorkerWrapper pid=12,
# ip=10.0.0.2)". It does so before lines of any program, so that no row of the catalogue has it as a field.
multi_node if regex.match(`\(\w+ pid=\d+, ip=\d`, input.logs.messages[_].text)

# NCCL names the ranks at both ends of a channel, and on which machines they are.
multi_node if {
	some t in input.logs.transports
	t.kind == "net"
	t.same_host == false
}

multi_node if input.launches[_].nodes > 1
multi_node if input.benchmarks[_].nodes > 1

# single_node is true when NCCL itself counted one machine.
single_node if {
	some c in input.logs.communicators
	c.nodes == 1
	not multi_node
}

# met is true if NCCL counted several machines: it does so once the ranks have connected
# over the bootstrap interface, which was then right.
met if input.logs.communicators[_].nodes > 1

# troubled is true when the job failed, began to build a communicator and did not
# end, or tried a connection again and again.
troubled if logs.failed

troubled if {
	some c in input.logs.communicators
	c.started > c.completed
}

troubled if logs.said("nccl-connect-retried-often")

host_of(m) := object.get(m, "host", "")

# loopback is true of an address that means the machine itself.
loopback(address) if strings.any_prefix_match(address, ["127.", "::1", "localhost"])

# link_local is true of an address that holds on one cable only (RFC 3927, RFC
# 4291), so that a peer needs to know by which interface to send.
link_local(address) if strings.any_prefix_match(lower(address), ["fe80:", "169.254."])

# local is true of an address that means nothing to another machine. No host has "any", or that of a broadcast (RFC
# 1122, 3.2.1.3).
local(address) if loopback(address)
local(address) if link_local(address)
local(address) if address in {"0.0.0.0", "::", "255.255.255.255"}

# bridge_address is true of an address from the networks that Docker, libvirt and Podman
# by default give to a bridge within one machine. Every machine has the same.
bridge_address(address) if strings.any_prefix_match(address, ["172.17.", "192.168.122.", "10.88.0."])

# virtual is true of the name of an interface that ends inside the machine:
# bridges of containers and virtual machines, and ends of their pairs.
virtual(name) if regex.match(`^(docker|br-|virbr|veth|cni|cbr|cali|lxc|lxd|podman|kube-bridge|kube-ipvs|nodelocaldns|vmnet|vboxnet|vnet|dummy|nerdctl|ip6tnl|sit\d|tunl\d|azv)`, name)

# bridge is true of the names of only bridges inside a machine: a veth may be the end of a pod, and a bridge of another
# name may have the machine's own address.
bridge(name) if regex.match(`^(docker|virbr|br-[0-9a-f]{12}$|podman|cni|lxcbr|lxdbr)`, name)

# patterns reads the value of NCCL_SOCKET_IFNAME or NCCL_IB_HCA: a list of prefixes, or, behind "=", of whole names; "^"
# leaves out instead (nccl src/misc/utils.cc, parseStringList; src/misc/socket.cc).
patterns(value) := {name |
	some part in split(trim_left(value, "^="), ",")
	name := split(trim_left(trim_space(part), "^="), ":")[0]
	name != ""
}

excludes(value) if strings.any_prefix_match(value, ["^", "=^"])

# selects is true when such a value takes a name.
selects(value, name) if {
	not excludes(value)
	matches(value, name)
}

selects(value, name) if {
	excludes(value)
	not matches(value, name)
}

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
listed[host] := {n |
	some n in input.nics.interfaces
	host_of(n) == host
} if {
	some lo in input.nics.interfaces
	lo.kind == "loopback"
	host := host_of(lo)
	not cut
}

cut if input.nics.interfaces_left > 0

dead(n) if n.state == "down"
dead(n) if n.carrier == false

# unusable is true of one that is down, or has no address in a list that shows addresses.
unusable(n) if dead(n)

unusable(n) if {
	with_addresses
	count(object.get(n, "addresses", [])) == 0
}

# with_addresses is false of lists of links, which show no address at all.
with_addresses if count(input.nics.interfaces[_].addresses) > 0

ipv4_of(n) := {a | some a in object.get(n, "addresses", []); not contains(a, ":"); contains(a, "/")}

# narrow are the interfaces that have no network around them: tunnels, and those with addresses of 32 bits.
narrow contains n if {
	some n in input.nics.interfaces
	n.kind == "tunnel"
}

narrow contains n if {
	some n in input.nics.interfaces
	count(ipv4_of(n)) > 0
	every a in ipv4_of(n) {
		endswith(a, "/32")
	}
}

# broader are those that have one.
broader contains n if {
	some n in input.nics.interfaces
	n.state == "up"
	not object.get(n, "kind", "") in {"loopback", "bridge", "veth"}
	not virtual(n.name)
	count(ipv4_of(n)) > 0
	not n in narrow
}

# within is true of an IPv4 address in the network of another one with its netmask.
within(network, address) if {
	ipv4(address)
	ipv4_network(network)
	net.cidr_contains(network, address)
}

address(text) if ipv4(text)
address(text) if loopback(text)
address(text) if regex.match(`^[0-9a-fA-F]*::?[0-9a-fA-F:.]*(?:%[\w.-]+)?$`, text)

ipv4(address) if regex.match(`^\d{1,3}(\.\d{1,3}){3}$`, address)

ipv4_network(address) if regex.match(`^\d{1,3}(\.\d{1,3}){3}/([89]|[12]\d|30)$`, address)
