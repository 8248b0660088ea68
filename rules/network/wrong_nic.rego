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
#   first_of: [no-interface, address-not-filled]
#   since: "0.1"
package gpudoctor.rules.wrong_nic

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks

# The address of an interface that was not found is never filled in, and NCCL
# goes on with what happens to be in memory (NVIDIA/nccl#1837). The same words
# come where the ranks' libraries differ and lay out an address differently
# (NVIDIA/nccl#1267): then the machine has taken an interface before. So only a
# name that was asked for makes the interface likely.
findings contains {
	"id": "address-not-filled",
	"subject": "network",
	"message": family_message,
	"severity": family_grade(m)[0],
	"confidence": family_grade(m)[1],
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
	"messages": [m],
	"evidence": asked_evidence,
} if {
	m := logs.first(families)
	not versions_differ
}

family_grade(m) := ["medium", "possible"] if {
	some c in networks.chosen
	networks.host_of(c.message) == networks.host_of(m)
} else := ["critical", "likely"] if {
	networks.asked
	not networks.excludes(networks.asked)
} else := ["critical", "possible"]

# versions_differ is true when the texts show several versions of one package of
# NCCL, which explains the address by itself.
versions_differ if {
	some name, versions in logs.versions
	regex.match(`^(nccl|rccl|libnccl2|nvidia-nccl-cu\d+)$`, name)
	count(versions) > 1
}

families contains m if {
	some m in input.logs.messages
	regex.match(`with family \d+ is neither|unsupported address family|Address family not supported by protocol`, m.text)
	regex.match(`(?i)nccl|rccl`, concat(" ", [m.program, m.text]))
}

family_message := sprintf("NCCL was about to connect to an address that was never filled in: no interface that is up and has an address fits NCCL_SOCKET_IFNAME=%s on at least one of the machines", [networks.asked]) if {
	networks.asked
} else := "NCCL was about to connect to an address that was never filled in: it found no usable interface on at least one of the machines, or the ranks run different versions of NCCL"

asked_evidence := [{"fact": "env.variables[NCCL_SOCKET_IFNAME]", "value": networks.asked, "source": "the texts"}] if {
	networks.asked
} else := []

# Gloo names the interface that it does not find.
findings contains {
	"subject": "network",
	"message": sprintf("Gloo finds no address for %q: %s", [name, gloo_reason(name)]),
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": "GLOO_SOCKET_IFNAME"},
	"evidence": [logs.evidence(m)],
	"order": m.order,
} if {
	m := logs.first(logs.by_id["gloo-interface-missing"])
	name := m.fields.interface
}

# NCCL's ways to leave names out, or to list prefixes, are not Gloo's.
gloo_reason(name) := "GLOO_SOCKET_IFNAME takes the whole name of one interface; what NCCL_SOCKET_IFNAME takes besides (^ to leave out, = and lists of prefixes) it does not know" if {
	regex.match(`[\^=]`, name)
} else := "an interface of that name does not exist here or has no address, or the host's name leads nowhere. GLOO_SOCKET_IFNAME takes whole names"

# vLLM places a worker on the node whose address it takes for its own, by the
# resource node:ADDRESS; Ray knows a machine by the address that it chose, or was
# told (ray start --node-ip-address). On machines with several interfaces the two
# may differ.
findings contains {
	"subject": "network",
	"message": sprintf("A worker is to run on the node %s, and no node of the Ray cluster bears that address%s: Ray and the program took different interfaces of one machine. ray start --node-ip-address and VLLM_HOST_IP must name the same address, on each machine", [m.fields.address, borne_by(m.fields.address)]),
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["set-socket-ifname", "other"],
	"params": {"variable": "VLLM_HOST_IP"},
	"evidence": [logs.evidence(m)],
	"order": m.order,
} if {
	m := logs.first(logs.by_id["ray-node-unknown"])
}

borne_by(address) := sprintf(" (here it is that of %s)", [sort(names)[0]]) if {
	names := {n.name |
		some n in input.nics.interfaces
		some a in n.addresses
		split(a, "/")[0] == address
	}
	count(names) > 0
} else := ""

# Two interfaces in one network: the kernel sends by the first of two routes that
# fit equally, whatever the job was told. NCCL binds what it listens on alone
# (NVIDIA/nccl#1581). Where the verbs library carries the data it is no matter.
findings contains {
	"subject": "network",
	"message": sprintf("%s and %s%s are both in the network of %s: what is sent to a peer goes out by whichever route stands first, though the job was told to use %s. Give each interface a network of its own (a longer netmask), or the other one's route a larger metric", [used.name, other.name, on(host), network, used.name]),
	"severity": shared_severity,
	"confidence": "likely",
	"remedies": ["other", "set-socket-ifname"],
	"evidence": [{"fact": sprintf("nics.interfaces[%s].addresses", [n.name]), "value": n.addresses, "source": logs.at(n)} | some n in [used, other]],
} if {
	tcp_alone
	not one_machine
	some host, _ in by_host
	[used, other, network] := sort([[a, b, x] |
		some a in by_host[host]
		used_by_name(a.name)
		some b in by_host[host]
		b.name != a.name
		not networks.dead(b)
		not networks.virtual(b.name)
		not b.master
		some x in a.addresses
		some y in b.addresses
		ipv4_network(x)
		ipv4_network(y)
		net.cidr_contains(x, split(y, "/")[0])
		net.cidr_contains(y, split(x, "/")[0])
	])[0]
}

# The ranks met over one network and then connect over another, which does not lead
# from machine to machine.
findings contains {
	"subject": "network",
	"message": sprintf("The ranks were told to meet at %s, which %s leads to, and connect to each other over the network of %s, where %s is not reached: NCCL took an interface that does not lead to the peers. NCCL_SOCKET_IFNAME is to name the other", [astray.address, astray.meant.name, astray.taken.name, astray.failure.remote]),
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["set-socket-ifname", "open-firewall"],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
	"evidence": array.concat(
		[logs.evidence(astray.failure.message)],
		[{"fact": sprintf("nics.interfaces[%s].addresses", [n.name]), "value": n.addresses, "source": logs.at(n)} | some n in [astray.taken, astray.meant]],
	),
	"order": astray.failure.message.order,
} if {
	least := min({a.failure.message.order | some a in networks.off_meeting})
	astray := sort([a | some a in networks.off_meeting; a.failure.message.order == least])[0]
	count(networks.bad_choices) == 0
}

# On one machine it is no matter, and one log does not tell how many there are.
shared_severity := "medium" if {
	networks.multi_node
} else := "low"

ipv4_network(address) if regex.match(`^\d{1,3}(\.\d{1,3}){3}/([89]|[12]\d|30)$`, address)

by_host[host] contains n if {
	some n in input.nics.interfaces
	host := object.get(n, "host", "")
}

used_by_name(name) if {
	some c in networks.chosen
	c.name == name
}

tcp_alone if {
	some n in input.logs.networks
	n.name == "Socket"
	every other in input.logs.networks {
		other.name == "Socket"
	}
}

one_machine if networks.single_node

# NCCL took an address that has no network around it (/32), or a tunnel, while
# another interface of the machine has a network, and its peer did not answer. On
# some clouds all addresses are such, which then tell nothing.
findings contains {
	"subject": "network",
	"message": sprintf("NCCL chose %s (%s), which leads to one other end alone, and the peer at %s did not answer; %s is in a network with others: name it by NCCL_SOCKET_IFNAME", [c.name, c.address, f.remote, facts.list({n.name | some n in broader})]),
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
	"evidence": array.concat([logs.evidence(c.message), logs.evidence(f.message)], [{"fact": sprintf("nics.interfaces[%s].addresses", [n.name]), "value": object.get(n, "addresses", []), "source": logs.at(n)} | some n in networks.narrow_used]),
	"order": c.message.order,
} if {
	count(networks.bad_choices) == 0
	broader := networks.broader
	chosen := [c | some c in networks.chosen; c.place == 0; c.name in {n.name | some n in networks.narrow_used}]
	count(chosen) > 0
	c := sort(chosen)[0]
	least := min({f.message.order | some f in unanswered})
	f := sort([f | some f in unanswered; f.message.order == least])[0]
}

unanswered contains f if {
	count(networks.narrow_used) > 0
	some f in networks.failures
	f.hard
	f.kind in {"timed-out", "no-route", "unreachable"}
}

# What a program was told to listen on is no address of this machine.
findings contains {
	"subject": "network",
	"message": "The address to listen on is none of this machine: its name leads to another address, or the interface was named for another machine",
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": "GLOO_SOCKET_IFNAME"},
	"evidence": [logs.evidence(m)],
	"order": m.order,
} if {
	unbound := {m |
		some m in input.logs.messages
		m.role == "cause"
		regex.match(`(?i)\bbind\b.*Cannot assign requested address|gloo.*Cannot assign requested address`, m.text)
	}
	count(unbound) > 0
	m := logs.first(unbound)
}

# Gloo listens on the loopback interface when the host's name leads to no
# address of its own, and tells its peers that address.
findings contains {
	"subject": "network",
	"message": "Gloo listens on the loopback interface, as the host's name leads to no address of this machine: ranks on other machines connect to themselves in its place",
	"severity": "critical",
	"confidence": gloo_confidence,
	"remedies": ["set-socket-ifname"],
	"params": {"variable": "GLOO_SOCKET_IFNAME"},
	"evidence": logs.all_evidence(gloo_loopback | gloo_failures),
	"order": logs.first(gloo_failures).order,
} if {
	count(gloo_failures) > 0
	not networks.single_node
}

gloo_loopback := logs.messages({"gloo-loopback-fallback"})

# With the warning any failure to connect counts; without it, one to a loopback
# address.
gloo_failures contains m if {
	some m in logs.messages({"gloo-connect-failed", "gloo-connect-trouble"})
	count(gloo_loopback) > 0
	to_loopback(m)
}

gloo_failures contains m if {
	some m in logs.messages({"gloo-connect-failed"})
	networks.loopback(m.fields.remote)
}

# to_loopback leaves out a failure that names another address.
to_loopback(m) if not m.fields.remote

to_loopback(m) if networks.loopback(m.fields.remote)

# Gloo did not connect all ranks and names neither an address nor an error: it
# takes the interface of the host's name, which several machines seldom share.
findings contains {
	"subject": "network",
	"message": sprintf("Gloo did not connect all ranks, and does not say why. It takes the interface to which the host's own name leads%s: name one that leads to the peers by GLOO_SOCKET_IFNAME, on each machine", [gloo_asked]),
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["set-socket-ifname"],
	"params": {"variable": "GLOO_SOCKET_IFNAME"},
	"evidence": logs.all_evidence(gloo_silent),
	"order": logs.first(gloo_silent).order,
} if {
	count(gloo_silent) > 0
	count(gloo_failures) == 0
	not networks.single_node
	count({f | some f in networks.failures; f.hard}) == 0
	not logs.said("gloo-interface-missing")
}

gloo_silent := logs.messages({"gloo-connect-trouble"})

gloo_asked := sprintf(", unless told otherwise (GLOO_SOCKET_IFNAME=%s)", [facts.env.GLOO_SOCKET_IFNAME]) if {
	facts.env.GLOO_SOCKET_IFNAME != ""
} else := ""

gloo_confidence := "confirmed" if {
	count(gloo_loopback) > 0
	some m in gloo_failures
	networks.loopback(m.fields.remote)
} else := "likely" if {
	count(gloo_loopback) > 0
} else := "likely" if {
	networks.multi_node
} else := "possible"

# An interface that ends inside of the machine was taken in a job over several
# machines, and the job did not come up.
findings contains {
	"subject": "network",
	"message": sprintf("%s uses %s (%s) in a job over several machines: %s%s", [speaker(c.message), c.name, c.address, why(c), told]),
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
	"evidence": array.concat([logs.evidence(c.message)], asked_evidence),
	"order": c.message.order,
} if {
	choice_told
	least := min({c.message.order | some c in networks.bad_choices})
	c := sort([c | some c in networks.bad_choices; c.message.order == least])[0]
}

# choice_told is true where the choice itself shows the fault.
choice_told if {
	networks.multi_node
	networks.troubled
	not_met
	count(networks.bad_choices) > 0
}

# An address that holds on one cable, or in one machine, cannot be met from
# another network: a job that shows both stands still without a word.
choice_told if {
	networks.multi_node
	not networks.met
	count(networks.bad_choices) > 0
	some c in networks.first_choices
	networks.link_local(c.address)
	some other in networks.first_choices
	networks.host_of(other.message) != networks.host_of(c.message)
	not networks.useless(other.address)
}

why(c) := "every machine has that address for itself" if {
	networks.loopback(c.address)
} else := "that address holds on one link only, and a peer cannot tell on which" if {
	networks.link_local(c.address)
} else := "that is the network of a bridge inside of the machine, from which no other machine can be reached; a container in it needs the network of its host" if {
	networks.bridge_address(c.address)
} else := "that interface ends inside of the machine"

told := sprintf(". NCCL_SOCKET_IFNAME=%s asked for it", [networks.asked]) if {
	networks.asked
	not networks.excludes(networks.asked)
} else := sprintf(". NCCL_SOCKET_IFNAME=%s leaves nothing better: lo and docker are to be left out too when names are left out by hand", [networks.asked]) if {
	networks.asked
} else := ""

speaker(m) := sprintf("NCCL on %s", [m.host]) if {
	m.host
} else := "NCCL"

# not_met: ranks that met on several machines did so over this interface. A
# connection that failed later counts all the same.
not_met if not networks.met

not_met if {
	some f in networks.failures
	networks.useless(f.remote)
}

# A connection was tried to an address that means something else on each
# machine.
findings contains {
	"subject": "network",
	"message": sprintf("A rank tried to connect to %s, and %s: %s. The peer took the wrong interface and told its address", [
		f.remote, networks.words[f.kind], why({"address": f.remote}),
	]),
	"severity": remote_grade[0],
	"confidence": remote_grade[1],
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
	"evidence": [logs.evidence(f.message)],
	"order": f.message.order,
} if {
	not choice_told
	count(gloo_failures) == 0
	not networks.single_node
	count(bad_remotes) > 0
	least := min({f.message.order | some f in bad_remotes})
	f := sort([f | some f in bad_remotes; f.message.order == least])[0]
	remote_grade := grade(f)
}

# bad_remotes leave the generic messages to themselves: what refuses a
# connection on 127.0.0.1 may be any service.
bad_remotes contains f if {
	some f in networks.failures
	f.hard
	networks.useless(f.remote)
}

# PyTorch gives up when its time is over. On one machine a container's address in
# the network of a bridge is as good as any.
bad_remotes contains f if {
	some f in networks.failures
	f.message.program == "pytorch"
	f.kind == "timed-out"
	networks.useless(f.remote)
	not networks.loopback(f.remote)
	networks.multi_node
}

# On one machine a refused connection to itself only says that the process at
# the other end is gone.
grade(f) := ["critical", "likely"] if {
	networks.multi_node
} else := ["critical", "likely"] if {
	not networks.loopback(f.remote)
} else := ["high", "possible"]

# Ranks took interfaces in different networks, and then did not connect.
findings contains {
	"subject": "network",
	"message": sprintf("The machines took interfaces in different networks (%s), and connections between them failed: one of them is likely the wrong one", [
		concat(", ", sort({sprintf("%s: %s %s", [networks.host_of(c.message), c.name, c.address]) | some c in networks.first_choices})),
	]),
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
	"evidence": array.concat(logs.all_evidence({c.message | some c in networks.first_choices}), [logs.evidence(f.message) | some f in networks.failures; f.hard]),
	"order": min({f.message.order | some f in networks.failures; f.hard}),
} if {
	count(networks.bad_choices) == 0
	count(bad_remotes) == 0
	networks.scattered
}

# No route into the network at all: the interface that was taken does not lead
# there.
findings contains {
	"subject": "network",
	"message": sprintf("This machine has no route into the network of a peer (%s): the ranks meet over an interface that not all of them have", [shown(f.remote)]),
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
	"evidence": [logs.evidence(f.message)],
	"order": f.message.order,
} if {
	count(networks.bad_choices) == 0
	count(bad_remotes) == 0
	not networks.scattered
	unreachable := [f | some f in networks.failures; f.hard; f.kind == "unreachable"]
	count(unreachable) > 0
	f := sort(unreachable)[0]
}

shown(remote) := remote if {
	remote != ""
} else := "not named"

# The variables against the list of interfaces.
findings contains {
	"subject": "network",
	"message": sprintf("%s=%s fits no interface%s: there are %s", [row.name, row.value, on(host), facts.list({n.name | some n in interfaces})]),
	"severity": listed_severity,
	"confidence": "likely",
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": row.name},
	"evidence": [
		{"fact": sprintf("env.variables[%s]", [row.name]), "value": row.value, "source": "the texts"},
		{"fact": "nics.interfaces", "value": sort({n.name | some n in interfaces}), "source": place(interfaces)},
	],
} if {
	some row in rows
	some host, interfaces in networks.listed
	count(taken(row, interfaces)) == 0
	not found(row)
}

# found is true when a program took an interface by that name: then the list is
# of another place, the host in place of the container, say.
found(row) if {
	some c in networks.chosen
	networks.selects(row.value, c.name)
}

findings contains {
	"subject": "network",
	"message": sprintf("%s=%s takes %s%s, which %s", [row.name, row.value, facts.list({n.name | some n in used}), on(host), state]),
	"severity": listed_severity,
	"confidence": "confirmed",
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": row.name},
	"evidence": array.concat(
		[{"fact": sprintf("env.variables[%s]", [row.name]), "value": row.value, "source": "the texts"}],
		[{"fact": sprintf("nics.interfaces[%s]", [n.name]), "value": object.filter(n, ["state", "carrier", "addresses"]), "source": logs.at(n)} | some n in sort(used)],
	),
} if {
	some row in rows
	some host, interfaces in networks.listed
	used := taken(row, interfaces)
	count(used) > 0
	state := useless(used)
}

rows contains {"name": "NCCL_SOCKET_IFNAME", "value": networks.asked} if networks.asked

rows contains {"name": "GLOO_SOCKET_IFNAME", "value": value} if {
	value := facts.env.GLOO_SOCKET_IFNAME
	value != ""
}

taken(row, interfaces) := {n |
	some n in interfaces
	row.name == "NCCL_SOCKET_IFNAME"
	networks.selects(row.value, n.name)
} if {
	row.name == "NCCL_SOCKET_IFNAME"
} else := {n |
	some n in interfaces
	some name in split(row.value, ",")
	n.name == trim_space(name)
}

useless(used) := "is down" if {
	every n in used {
		networks.dead(n)
	}
} else := "has no address" if {
	every n in used {
		not networks.dead(n)
		count(object.get(n, "addresses", [])) == 0
	}
	with_addresses
}

# with_addresses is false of lists of links, which show no address at all.
with_addresses if {
	some n in input.nics.interfaces
	count(n.addresses) > 0
}

on(host) := sprintf(" on %s", [host]) if {
	host != ""
} else := ""

place(interfaces) := logs.at(sort(interfaces)[0])

listed_severity := "critical" if {
	networks.troubled
} else := "high"

# The variable names what no other machine reaches, and the job has several.
findings contains {
	"subject": "network",
	"message": sprintf("NCCL_SOCKET_IFNAME=%s keeps NCCL to an interface that ends inside of the machine, and the job has several machines", [networks.asked]),
	"severity": listed_severity,
	"confidence": "likely",
	"remedies": ["set-socket-ifname", "unset-env"],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
	"evidence": asked_evidence,
} if {
	networks.multi_node
	count(networks.bad_choices) == 0
	not networks.excludes(networks.asked)
	every name in networks.patterns(networks.asked) {
		inside(name)
	}
}

inside("lo")

inside(name) if regex.match(`^(docker|virbr|br-|veth|cni|podman)`, name)

# NCCL_IB_HCA against the list of RDMA devices.
findings contains {
	"subject": "network",
	"message": sprintf("NCCL_IB_HCA=%s fits no RDMA device: there are %s", [value, facts.list(devices)]),
	"severity": "high",
	"confidence": "confirmed",
	"remedies": ["set-ib-hca", "unset-env"],
	"params": {"variable": "NCCL_IB_HCA"},
	"evidence": [
		{"fact": "env.variables[NCCL_IB_HCA]", "value": value, "source": "the texts"},
		{"fact": "nics.rdma", "value": sort(devices), "source": logs.at(sort({p | some p in input.nics.rdma})[0])},
	],
} if {
	value := facts.env.NCCL_IB_HCA
	value != ""
	devices := {p.device | some p in input.nics.rdma}
	count(devices) > 0
	count({d | some d in devices; networks.selects(value, d)}) == 0
}

# UCX says so itself. It goes on without the device, so that only a job that
# failed is sure to suffer.
findings contains {
	"subject": "network",
	"message": sprintf("UCX does not find the network device %s, which UCX_NET_DEVICES asks for", [object.get(m.fields, "device", "that it was told to use")]),
	"severity": ucx_severity,
	"confidence": "confirmed",
	"remedies": ["unset-env"],
	"params": {"variable": "UCX_NET_DEVICES"},
	"evidence": [logs.evidence(m)],
	"order": m.order,
} if {
	m := logs.first(logs.by_id["ucx-device-unavailable"])
}

ucx_severity := "high" if {
	logs.said("ucx-unreachable")
} else := "low"

missing contains {"fact": "logs", "words": "no log of a job was given"} if {
	not input.logs
	not input.nics
}
