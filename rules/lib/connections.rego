# Interfaces and connections. Which network interfaces the ranks of a job chose, which connections failed, and which
# choices do not reach the peers.
package gpudoctor.lib.connections

import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks

# chosen are the interfaces that NCCL says it takes, with the message that says so. place is the place in its list.
chosen contains {"name": item[1], "address": item[2], "place": i, "message": m} if {
	some m in logs.messages({"nccl-bootstrap-interface", "nccl-net-interface"})
	some i, item in regex.find_all_string_submatch_n(`([A-Za-z][\w.-]*):([0-9a-fA-F.:]+)(?:%[\w.-]+)?<`, m.fields.interfaces, 32)
}

first_choices := {c | some c in chosen; c.place == 0; c.message.id == "nccl-bootstrap-interface"}

words := {
	"refused": "the peer's machine refused the connection",
	"timed-out": "no response came",
	"no-route": "there is no route to the host, or a firewall on the path rejects the connection",
	"unreachable": "this machine has no route to that network",
	"aborted": "the connection was aborted",
	"untold": "the program does not say why",
	"dropped": "a firewall dropped its packets",
	"policy": "the pod did not answer on that port",
}

# kinds are how it failed: by the kernel's words in the field error, or by the row.
kinds := {
	"Connection refused": "refused", "socket-refused": "refused",
	"Connection timed out": "timed-out", "socket-timed-out": "timed-out", "torch-store-timed-out": "timed-out",
	"torch-store-try-timed-out": "timed-out", "torch-store-silent": "timed-out", "torch-store-not-listening": "refused",
	"ray-gcs-unreachable": "timed-out", "gloo-connect-timeout": "timed-out", "socket-unanswered": "timed-out",
	"-111": "refused", "-110": "timed-out", "-113": "no-route", "-101": "unreachable",
	"No route to host": "no-route", "socket-no-route": "no-route",
	"Network is unreachable": "unreachable", "socket-unreachable": "unreachable",
	"Software caused connection abort": "aborted", "Host is down": "aborted",
}

# last_words are the rows with which a program gives up on a connection that was never established; tries are those for
# one of several attempts, for an established connection that was lost, or for an error only.
last_words := {
	"nccl-connect-refused", "nccl-connect-timed-out", "nccl-connect-no-route", "nccl-connect-failed", "nccl-connect-retries-exhausted",
	"nccl-net-connect-timeout", "gloo-connect-failed", "gloo-connect-loopback", "gloo-connect-timeout", "gloo-dial-failed",
	"gloo-dial-loopback", "hydra-connect-failed", "openmpi-tcp-connect-failed", "ucx-connect-failed", "libfabric-connect-failed",
}

# bare are the rows for the kernel's words alone.
bare := {"socket-refused", "socket-timed-out", "socket-no-route", "socket-unreachable"}

tries := {
	"nccl-connect-retrying", "nccl-connect-retried-often", "nccl-socket-timed-out", "nccl-socket-failed", "nccl-syscall-failed",
	"torch-store-connect-failed", "torch-store-timed-out", "torch-store-try-timed-out", "torch-store-silent", "torch-store-not-listening", "ray-gcs-unreachable",
	"socket-unanswered",
} | bare

# failures are the connections that failed: how, to which address, and whether at a program's last attempt ("hard").
failures contains {"kind": kinds[said], "remote": remote(m), "hard": m.id in (last_words | attempted), "message": m} if {
	some m in logs.messages((last_words | tries) - answered)
	object.get(m, "steps_after", 0) == 0 # Who goes on to work has connected.
	some said in [object.get(m, ["fields", "error"], ""), m.id]
}

# A rank that starts before the store is refused, and tries again; that there is no route to it does not pass by itself.
failures contains {"kind": "no-route", "remote": remote(m), "hard": true, "message": m} if {
	some m in logs.by_id["torch-store-retry"]
	m.fields.error == "No route to host"
	m.count > 2
	object.get(m, "steps_after", 0) == 0
	not networks.met
}

# A store that says which keys nobody wrote has answered.
answered := {"torch-store-silent" | logs.said("torch-store-key-missing")}

remote(m) := m.fields.remote if {
	m.fields.remote
} else := m.fields.host if {
	networks.address(m.fields.host)
} else := tried[max(object.keys(tried))] if {
	m.id in attempted
	tried := {a.line: a.fields.remote | some a in attempts; a.source == m.source; a.line < m.line}
} else := ""

# attempts are the connections that Open MPI's daemons try. What fails behind one does not say again to which address.
attempts := logs.by_id["openmpi-oob-connecting"]

attempted := {id | some id in bare; attempts}

hard_failures := {f | some f in failures; f.hard}

# earliest is the first of a set of failures, or of choices: of several at one place any, but always the same.
earliest(set_) := f if {
	least := min({f.message.order | some f in set_})
	f := sort([f | some f in set_; f.message.order == least])[0]
}

# died_before is true of a message after a complaint of another kind: a rank that ended no longer answers.
died_before(m) if first_death < m.order

first_death := min({m.order |
	some m in logs.complaints
	m.role == "cause"
	not m.id in (last_words | tries)
	not startswith(m.id, "ofi-")
})

# reached are networks over which ranks are known to have connected: NCCL's, and that of the store.
reached contains network(c.address) if {
	networks.met
	some c in first_choices
}

reached contains network(address) if {
	networks.met
	some i in input.nics.interfaces
	i.host # As a program's log names it.
	some address in i.addresses
}

reached contains network(m.fields.address) if {
	logs.said("torch-store-connected")
	some m in logs.by_id["torch-store-address"]
}

# network is that of an address, as such are usually cut: 192.168 in 256 parts, and others by their first half.
network(address) := concat(".", array.slice(split(address, "."), 0, parts)) if {
	regex.match(`^\d+(\.\d+){3}$`, address)
	not networks.local(address)
	parts := {true: 3, false: 2}[startswith(address, "192.168.")]
}

# beside is true of a connection that had no answer in another network than that in which ranks meet.
beside(f) if {
	f.kind in {"timed-out", "no-route"}
	count(reached) > 0
	at := network(f.remote)
	not at in reached
}

# useless is true of the address of a peer that the peer should not have told. A cloud may give the network of a bridge to
# real interfaces; a container has its own end of the bridge as eth0.
useless(address) if networks.local(address)

useless(address) if {
	networks.bridge_address(address)
	not bridge_networks_taken
}

bridge_networks_taken if {
	some c in chosen
	networks.bridge_address(c.address)
	not networks.bridge(c.name)
	not regex.match(`^eth\d`, c.name)
}

# to_itself is true of a connection that a machine refused itself, or whose process was gone: no firewall stands between.
to_itself(f) if {
	f.kind == "refused"
	some c in chosen
	c.address == f.remote
	networks.host_of(f.message) in ({networks.host_of(c.message)} | {"" | count(networks.hosts) == 1})
}

# bad_choices are those that the peers do not reach. What is first in the list is used; what follows only where a
# connection over it failed.
bad_choices contains c if {
	some c in chosen
	astray(c)
	used(c)
}

used(c) if c.place == 0
used(c) if c.name in {f.message.fields.interface | some f in failures}
used(_) if useless(failures[_].remote)

astray(c) if networks.local(c.address)

# Two machines cannot have one address, unless it is of a network inside each.
astray(c) if count(owners[c.address]) > 1

owners[c.address] contains c.message.host if some c in chosen

# A veth may have an address that the peers reach, as in a pod. Names that bridges and private networks have are surer.
astray(c) if {
	networks.virtual(c.name)
	not strings.any_prefix_match(c.name, ["veth", "ip6tnl"])
}

# choice_told is true if a bad choice itself shows the fault. Ranks that connected on several machines did so over it.
choice_told if {
	networks.troubled
	not networks.met
}

# bad_remotes are connections to an address that means something else on each machine. They leave the generic messages
# to themselves: what refuses a connection on 127.0.0.1 may be any service.
bad_remotes := {f | some f in (hard_failures | at_other_meeting); useless(f.remote)}

# The configured rendezvous is not an address that a peer chose itself. On one machine, a container's address in the
# network of a bridge works like any other.
at_other_meeting := {f | some f in at_meeting; not networks.loopback(f.remote)}

# at_meeting are the connections to the rendezvous of ranks on several machines: the store
# of PyTorch at MASTER_ADDR, and the head of Ray.
at_meeting contains f if {
	networks.multi_node
	some f in failures
	f.message.id in {"torch-store-timed-out", "torch-store-connect-failed", "ray-gcs-unreachable"}
}
