# METADATA
# title: Interfaces, addresses and connections
# description: >-
#   Which network interfaces and addresses the ranks of a job took, whether the
#   job spans several machines, and which connections failed. It reads the words
#   of the messages themselves, as the same line is written in many forms from
#   one version of NCCL to the next.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.networks

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs

# hosts are the machines, or containers, that the logs name.
hosts contains m.host if {
	some m in input.logs.messages
	m.program in {"nccl", "rccl", "ofi"}
	m.host != ""
}

hosts contains n.host if {
	some n in input.logs.networks
	n.host != ""
}

hosts contains h if {
	some c in input.logs.communicators
	some h in c.hosts
}

# multi_node is true when the texts show that the job spans several machines.
multi_node if count(hosts) > 1

multi_node if {
	some c in input.logs.communicators
	c.nodes > 1
}

# Ray writes the address behind the process only for those on other machines than
# the driver: "(RayWorkerWrapper pid=12, ip=10.0.0.2)".
multi_node if {
	some m in input.logs.messages
	regex.match(`\(\w+ pid=\d+, ip=\d`, m.text)
}

multi_node if {
	some l in input.launches
	l.nodes > 1
}

multi_node if {
	some b in input.benchmarks
	b.nodes > 1
}

# single_node is true when NCCL itself counted one machine.
single_node if {
	count({c | some c in input.logs.communicators; c.nodes == 1}) > 0
	not multi_node
}

# met is true when NCCL counted several machines: it does so once the ranks have
# met over the interface of the bootstrap, which then was right.
met if {
	some c in input.logs.communicators
	c.nodes > 1
}

# troubled is true when the job failed, or began to build a communicator and did
# not end.
troubled if logs.failed

troubled if {
	some c in input.logs.communicators
	c.started > c.completed
}

# NCCL tries 34 times, within a minute, unless told otherwise (NCCL 2.24 to 2.30,
# src/misc/socket.cc): that many are no matter of who starts first.
troubled if {
	some m in logs.by_id["nccl-connect-retrying"]
	regex.match(`retrying \([1-9]\d`, m.text)
}

# chosen are the interfaces that NCCL says it takes, with the message that says
# so: "Bootstrap : Using eth0:10.0.0.5<0>" (src/bootstrap.cc), or the same for
# NET/Socket, or behind "OOB" of NET/IB. place is the place in its list.
chosen contains {"name": item[1], "address": item[2], "place": i, "message": m} if {
	some m in input.logs.messages
	regex.match(`Bootstrap ?: Using|NET/Socket ?: Using|NET : Using interface|; OOB `, m.text)
	items := regex.find_all_string_submatch_n(`(?:\[\d+\] ?|Using |interface |OOB )([A-Za-z][\w.-]*):([0-9a-fA-F.:]+)(?:%[\w.-]+)?<`, m.text, 32)
	some i, item in items
}

# loopback is true of an address that means the machine itself.
loopback(address) if startswith(address, "127.")

loopback(address) if address in {"::1", "localhost"}

# link_local is true of an address that holds on one cable only (RFC 3927, RFC
# 4291), so that a peer needs to know by which interface to send.
link_local(address) if startswith(lower(address), "fe80:")

link_local(address) if startswith(address, "169.254.")

# bridge_address is true of an address out of the networks that Docker,
# libvirt and Podman give to a bridge inside of one machine, unless told
# otherwise. Every machine has the same.
bridge_address(address) if startswith(address, "172.17.")

bridge_address(address) if startswith(address, "192.168.122.")

bridge_address(address) if startswith(address, "10.88.0.")

# virtual is true of the name of an interface that ends inside of the machine:
# bridges of containers and virtual machines, and ends of their pairs.
virtual(name) if regex.match(`^(docker|br-|virbr|veth|cni|cbr|cali|lxc|lxd|podman|kube-bridge|kube-ipvs|nodelocaldns|vmnet|vboxnet|vnet|dummy|nerdctl|ip6tnl|sit\d|tunl\d|azv)`, name)

# errors are the kernel's words for a connection that failed.
errors := {
	"refused": `Connection refused|ECONNREFUSED|\[Errno 111\]`,
	"timed-out": `Connection timed out|ETIMEDOUT|\[Errno 110\]|client socket has timed out after`,
	"no-route": `No route to host|EHOSTUNREACH|\[Errno 113\]|Destination Host Unreachable`,
	"unreachable": `Network is unreachable|ENETUNREACH|\[Errno 101\]`,
	"aborted": `Software caused connection abort|Host is down`,
}

# words say the same for people.
words := {
	"refused": "the peer's machine refused the connection",
	"timed-out": "no answer came",
	"no-route": "there is no way to the host, or a firewall on the way rejects",
	"unreachable": "this machine has no route to that network",
	"aborted": "the connection was broken off",
}

# failures are the connections that failed: how, to which address where the line
# tells, and whether the line is a program's last word ("hard") or one try of
# several.
failures contains {"kind": kind, "remote": remote(m), "hard": hard(m), "message": m} if {
	some m in input.logs.messages
	told_of_failure(m)
	m.program in {"nccl", "rccl", "gloo", "openmpi", "ucx", "socket", "pytorch", "ray", "vllm"}
	not of_one_host(m)
	some kind, pattern in errors
	regex.match(pattern, m.text)
	not completion(m)
}

# of_one_host: a Unix socket joins processes of one host. No network and no
# firewall lies between them.
of_one_host(m) if m.id in unix_socket_failures

unix_socket_failures := {"nccl-uds-bind-failed", "nccl-uds-send-failed", "nccl-uds-failed"}

# told_of_failure counts a try that is repeated, too: it is no complaint by
# itself.
told_of_failure(m) if m.role in {"cause", "category"}

told_of_failure(m) if m.id == "nccl-connect-retrying"

# completion: InfiniBand speaks of timeouts, too; those are no connections.
completion(m) if regex.match(`NET/IB|ibv_|mlx5`, m.text)

hard(m) if {
	m.role == "cause"
	m.program in {"nccl", "rccl", "gloo", "openmpi"}
	not under_way(m)
} else := false

# under_way: a connection that stood and broke is another matter than one that
# never came about.
under_way(m) if regex.match(`Call to (recv|send)`, m.text)

remote(m) := address[0][1] if {
	address := regex.find_all_string_submatch_n(`([0-9a-fA-F.:]+?)(?:%[\w.-]+)?<\d+>`, m.text, 1)
	count(address) == 1
} else := m.fields.remote if {
	m.fields.remote
} else := m.fields.peer if {
	m.fields.peer
} else := address[0][1] if {
	# "... while trying to connect to (10.0.0.5, 29500)", after words of Ray.
	address := regex.find_all_string_submatch_n(`connect to [(\[]*(?:::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})\b`, m.text, 1)
	count(address) == 1
} else := address[0][1] if {
	address := regex.find_all_string_submatch_n(`\b(\d{1,3}(?:\.\d{1,3}){3})\b`, words_of(m.text), 1)
	count(address) == 1
} else := ""

# words_of leaves out what a launcher puts before a line: its own host's address
# ("10.0.0.5: node5:11:12 [0] NCCL INFO ...", pdsh and DeepSpeed).
words_of(text) := regex.replace(text, `^.*NCCL (?:INFO|WARN) |^\s*\d{1,3}(?:\.\d{1,3}){3}: `, "")

# patterns reads the value of NCCL_SOCKET_IFNAME or NCCL_IB_HCA: a list of
# prefixes, or, behind "=", of whole names; "^" leaves out instead (nccl
# src/misc/utils.cc, parseStringList; src/misc/socket.cc).
patterns(value) := {name |
	some part in split(regex.replace(value, `^[\^=]+`, ""), ",")
	name := regex.replace(trim_space(part), `^[\^=]+|:.*$`, "")
	name != ""
}

excludes(value) if regex.match(`^=?\^`, value)

# selects is true when such a value takes a name.
selects(value, name) if {
	not excludes(value)
	matches(value, name)
}

selects(value, name) if {
	excludes(value)
	not matches(value, name)
}

matches(value, name) if {
	regex.match(`^\^?=`, value)
	name in patterns(value)
}

matches(value, name) if {
	not regex.match(`^\^?=`, value)
	some p in patterns(value)
	startswith(name, p)
}

# asked is what NCCL was told of its interface: by the variables, or as the log
# shows it.
asked := facts.env.NCCL_SOCKET_IFNAME if {
	facts.env.NCCL_SOCKET_IFNAME != ""
} else := value if {
	found := [[m.order, text[0][1]] |
		some m in input.logs.messages
		text := regex.find_all_string_submatch_n(`NCCL_SOCKET_IFNAME set (?:by environment )?to (\S+)`, m.text, 1)
		count(text) == 1
	]
	value := trim_suffix(sort(found)[0][1], ".")
}

# listed are the interfaces of each host whose list is whole: the loopback
# interface is in each whole list.
listed[host] := {n |
	some n in input.nics.interfaces
	object.get(n, "host", "") == host
} if {
	some lo in input.nics.interfaces
	lo.kind == "loopback"
	host := object.get(lo, "host", "")
}

# dead is true of an interface that carries nothing.
dead(n) if n.state == "down"

dead(n) if n.carrier == false

# efa_expected is true when the job is meant to use EFA: the devices are there,
# or were asked for, or the settings name them, or the plugin itself recognised
# an instance that has them.
efa_expected if {
	some d in input.pci.devices
	d.vendor == "0x1d0f"
	startswith(d.device, "0xefa")
}

efa_expected if {
	some l in input.launches
	some name, _ in l.resources
	name == "vpc.amazonaws.com/efa"
}

efa_expected if facts.env.FI_PROVIDER == "efa"

efa_expected if {
	some name in ["FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE", "FI_EFA_ENABLE_SHM_TRANSFER", "FI_EFA_USE_HUGE_PAGE"]
	facts.env[name] != ""
}

efa_expected if {
	some p in input.nics.rdma
	regex.match(`^(rdmap|efa_)`, p.device)
}

efa_expected if logs.said("ofi-platform")

# fi_info lists the provider where a device of it can be opened alone. A job on
# one machine does without.
efa_expected if {
	between_machines
	some p in input.nics.providers
	startswith(p, "efa")
}

between_machines if multi_node

between_machines if {
	not single_node
	some t in input.logs.transports
	t.kind == "net"
}

# bad_choices are those that the peers do not reach. What is first in the list
# is used; what follows only where a connection over it failed.
bad_choices contains c if {
	some c in chosen
	c.place == 0
	astray(c)
}

bad_choices contains c if {
	some c in chosen
	c.place > 0
	astray(c)
	c.name in words_of_failures
}

# words_of_failures are the words of the messages, names of interfaces among them.
words_of_failures contains trim(word, ".-") if {
	some f in failures
	some word in regex.find_n(`[\w.-]+`, f.message.text, -1)
}

bad_choices contains c if {
	some c in chosen
	c.place > 0
	astray(c)
	useless_failed
}

useless_failed if {
	some f in failures
	useless(f.remote)
}

# useless is true of the address of a peer that the peer should not have told.
# Networks of bridges that a real interface has here are none.
useless(address) if loopback(address)

# A bridge of containers or virtual machines bears it on the machine that told
# it, whatever network its owner gave to the bridge.
useless(address) if address in bridges

bridges contains c.address if {
	some c in chosen
	inside_machine(c.name)
}

bridges contains split(a, "/")[0] if {
	some n in input.nics.interfaces
	inside_machine(n.name)
	some a in n.addresses
}

# inside_machine is true of the names of bridges alone: a veth may be the end of
# a pod, and a bridge of another name may have the machine's own address.
inside_machine(name) if regex.match(`^(docker|virbr|br-[0-9a-f]{12}$|podman|cni|lxcbr|lxdbr)`, name)

useless(address) if link_local(address)

useless(address) if {
	bridge_address(address)
	not bridge_networks_taken
}

# bridge_networks_taken is true where a real interface has an address of such a network.
bridge_networks_taken if {
	some c in chosen
	bridge_address(c.address)
	not regex.match(`^(eth\d|docker|virbr|podman|cni|br-)`, c.name)
}

astray(c) if loopback(c.address)

astray(c) if link_local(c.address)

astray(c) if {
	bridge_address(c.address)
	regex.match(`^(docker|virbr|podman|cni|br-)`, c.name)
}

# eth0 is what a container calls its end, but a cloud may have given that network
# to its machines: a connection that failed tells.
astray(c) if {
	bridge_address(c.address)
	regex.match(`^eth\d`, c.name)
	bridge_failed
}

bridge_failed if {
	some f in failures
	bridge_address(f.remote)
}

# A veth may have an address that the peers reach, as in a pod. Names that
# bridges and private networks have are surer.
astray(c) if {
	virtual(c.name)
	not startswith(c.name, "veth")
	not startswith(c.name, "ip6tnl")
}

first_choices contains c if {
	some c in chosen
	c.place == 0
	regex.match(`Bootstrap`, c.message.text)
}

# narrow_used are the interfaces that NCCL took by itself and that have no network
# around them: tunnels, and addresses of 32 bits. broader are others of the same
# list that have one. Empty where there is no such choice, or the job was told.
narrow_used contains n if {
	not told_interface
	count(broader) > 0
	some n in input.nics.interfaces
	narrow(n)
	some c in chosen
	c.place == 0
	c.name == n.name
}

told_interface if {
	asked
	not excludes(asked)
}

narrow(n) if n.kind == "tunnel"

narrow(n) if {
	count(ipv4_of(n)) > 0
	every a in ipv4_of(n) {
		endswith(a, "/32")
	}
}

ipv4_of(n) := {a | some a in object.get(n, "addresses", []); not contains(a, ":"); contains(a, "/")}

broader contains n if {
	some n in input.nics.interfaces
	n.state == "up"
	not object.get(n, "kind", "") in {"loopback", "tunnel", "bridge", "veth"}
	not virtual(n.name)
	count(ipv4_of(n)) > 0
	not narrow(n)
}

# scattered is true when private IPv4 addresses of several hosts differ in their
# first 16 bits and in the interface's name, and a connection failed. Networks
# that are wider than that have one name for the interface as a rule. NCCL 2.18
# to 2.23 tries again on a socket that failed, which the kernel answers with
# "Software caused connection abort" whatever came first (NVIDIA/nccl#1515).
scattered if {
	count({host_of(c.message) | some c in first_choices}) > 1
	networks_of := {array.slice(split(c.address, "."), 0, 2) | some c in first_choices; contains(c.address, ".")}
	count(networks_of) > 1
	count({c.name | some c in first_choices}) > 1
	some f in failures
	f.hard
	f.kind in {"timed-out", "no-route", "unreachable", "aborted"}
}

# meeting are the addresses at which the ranks were told to meet: MASTER_ADDR, or an
# option of torchrun, Accelerate or SGLang, its value in the same word or the next.
meeting contains address if {
	address := facts.env.MASTER_ADDR
	regex.match(`^\d{1,3}(\.\d{1,3}){3}$`, address)
}

meeting contains address if {
	some l in input.launches
	some i, word in l.command
	regex.match(meeting_option, word)
	some text in array.concat([regex.replace(word, meeting_option, "")], array.slice(l.command, i + 1, i + 2))
	some found in regex.find_all_string_submatch_n(`^(?:tcp://)?(\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$`, text, 1)
	address := found[1]
}

meeting_option := `^--(?:master[_-]addr|rdzv[_-]endpoint|main[_-]process[_-]ip|dist[_-]init[_-]addr|dist[_-]url|init[_-]method)(?:=|$)`

# off_meeting are the connections that failed over another network than the one in
# which the ranks were told to meet, where this machine has an interface in each. The
# ranks told each other their addresses through that meeting, so that its network
# leads to the peers.
off_meeting contains {"failure": f, "taken": taken, "meant": meant, "address": address} if {
	some f in failures
	f.hard
	f.kind in {"timed-out", "no-route", "unreachable"}
	some taken in input.nics.interfaces
	some x in ipv4_of(taken)
	within(x, f.remote)
	some address in meeting
	not within(x, address)
	some meant in input.nics.interfaces
	meant.name != taken.name
	not dead(meant)
	some y in ipv4_of(meant)
	within(y, address)
	not within(y, f.remote)
}

within(network, address) if {
	regex.match(`^\d{1,3}(\.\d{1,3}){3}$`, address)
	regex.match(`/([89]|[12]\d|30)$`, network)
	net.cidr_contains(network, address)
}

host_of(m) := object.get(m, "host", "")
