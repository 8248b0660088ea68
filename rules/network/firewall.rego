# METADATA
# title: Something between the machines lets connections not through
# description: >-
#   Ranks connect to each other on ports that the kernel picks, in both
#   directions. A firewall on a machine, a security group of a cloud or a network
#   policy of Kubernetes that lets only some ports through shows as connections
#   that time out or that are rejected with «No route to host», and with EFA, which needs
#   a rule for all traffic of the security group to itself, as peers that never
#   answer.
# related_resources:
#   - ref: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
#     description: EFA needs a security group that allows all traffic to and from itself
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL opens TCP ports at random; a firewall must allow them
#   - ref: https://github.com/aws/aws-ofi-nccl/issues/156
#     description: How a security group without such a rule shows itself
#   - ref: https://github.com/kubeflow/website/issues/2011
#     description: Istio's proxies stop jobs over several pods
#   - ref: https://github.com/NVIDIA/nccl/issues/352
#     description: A firewall on one machine
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: likely
#   needs:
#     - job-connected
#   remedies: [open-firewall, set-socket-ifname, other]
#   since: "0.1"
package gpudoctor.rules.firewall

import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks

# Open MPI guesses it itself, where its daemons do not reach each other. A
# daemon that did not report back may have other reasons.
findings contains {
	"subject": "network",
	"message": "Open MPI's daemons do not reach each other: a firewall on one of the hosts, as it says itself, or no network interface that they have in common",
	"severity": "critical",
	"confidence": "likely",
	"remedies": ["open-firewall", "set-socket-ifname"],
	"evidence": array.concat(logs.all_evidence(logs.by_id["openmpi-firewall"]), support_evidence),
	"order": logs.first(logs.by_id["openmpi-firewall"]).order,
} if {
	logs.said("openmpi-firewall")
}

# EFA got no answer from a peer. Where nothing had gone wrong before, the peer
# was there and could not be reached.
findings contains {
	"subject": "network",
	"message": sprintf("EFA got no answer from a peer: the security group of an instance does not allow all traffic to and from itself, or the instances are in different subnets%s", [efa_doubt]),
	"severity": "critical",
	"confidence": efa_confidence,
	"remedies": ["open-firewall"],
	"evidence": logs.all_evidence(silent),
	"order": first_silent.order,
} if {
	not logs.said("ofi-security-group")
	first_silent
}

silent := logs.messages({"ofi-peer-unreachable"})

first_silent := logs.first(silent) if count(silent) > 0

efa_confidence := "possible" if {
	died_before(first_silent)
} else := "likely"

efa_doubt := "; but other ranks had failed before, and a peer that is gone does not answer either" if {
	died_before(first_silent)
} else := ""

# A transfer over EFA failed, and the error says no more. The people who make the
# plugin ask for the security group first.
findings contains {
	"subject": "network",
	"message": "A transfer over EFA failed, and the error does not say why. A security group that does not allow all traffic to and from itself is a frequent reason; a peer that ended is another",
	"severity": "medium",
	"confidence": "possible",
	"remedies": ["open-firewall"],
	"evidence": [logs.evidence(m)],
	"order": m.order,
} if {
	not logs.said("ofi-security-group")
	not first_silent
	failed := logs.messages({"ofi-request-failed", "ofi-libfabric-error", "ofi-address-insert-failed"})
	count(failed) > 0
	m := logs.first(failed)
	count({other | some other in logs.complaints; other.order < m.order}) == 0
}

# died_before is true where a complaint of another kind came earlier: a rank that
# ended for another reason no longer answers.
died_before(m) if first_death < m.order

first_death := min({other.order |
	some other in logs.complaints
	other.role == "cause"
	not other.id in connecting
	not startswith(other.id, "ofi-")
})

# connecting are the messages that are themselves about connections.
connecting contains f.message.id if some f in networks.failures

# A connection between machines got no answer, or was rejected.
findings contains {
	"subject": "network",
	"message": sprintf("A connection%s failed: %s. %s%s", [to(f), networks.words[f.kind], meaning[f.kind], supported]),
	"severity": "critical",
	"confidence": tcp_confidence(f),
	"remedies": ["open-firewall", "set-socket-ifname"],
	"evidence": array.concat([logs.evidence(f.message)], support_evidence),
	"order": f.message.order,
} if {
	f := first_of(blocked)
}

meaning := {
	"timed-out": "Packets that vanish speak for a firewall, a security group or a network policy between the machines, or for an address that the other machine does not use",
	"no-route": "That is how firewalld and other firewalls with a REJECT rule answer; a machine that is down, or in another network, looks the same",
}

# A proxy of a service mesh takes each connection of a pod, accepts it itself and
# then drops it, where it does not know the port or wants encryption. So what a
# rank sees is a connection that stood and broke.
findings contains {
	"subject": "service mesh",
	"message": sprintf("A proxy of a service mesh (Istio, Linkerd) stands before the pods (%s), and a connection between ranks broke or was refused: it lets through only the ports that it knows, and ranks pick theirs freely. Pods of such a job are to run without it (sidecar.istio.io/inject: \"false\")", [logs.at(logs.first(logs.by_id["kubernetes-sidecar"]))]),
	"severity": "high",
	"confidence": "likely",
	"remedies": ["open-firewall", "other"],
	"evidence": [logs.evidence(m), logs.evidence(logs.first(logs.by_id["kubernetes-sidecar"]))],
	"order": m.order,
} if {
	logs.said("kubernetes-sidecar")
	count(broken) > 0
	m := logs.first(broken)
	not died_before(m)
}

# The same without a word: the ranks began to build a communicator over several pods
# and nothing followed (NVIDIA/nccl issue 1638).
findings contains {
	"subject": "service mesh",
	"message": sprintf("A proxy of a service mesh (Istio, Linkerd) stands before the pods (%s), and ranks on several of them began to build a communicator, after which nothing is said: the proxy accepts a connection itself and holds what is sent over it. Pods of such a job are to run without it (sidecar.istio.io/inject: \"false\"), or with their ports left out of it (traffic.sidecar.istio.io/excludeInboundPorts, excludeOutboundPorts)", [logs.at(logs.first(logs.by_id["kubernetes-sidecar"]))]),
	"severity": "high",
	"confidence": "possible",
	"remedies": ["open-firewall", "other"],
	"evidence": [logs.evidence(logs.first(logs.by_id["kubernetes-sidecar"]))],
} if {
	logs.said("kubernetes-sidecar")
	networks.multi_node
	count(broken) == 0
	count(logs.complaints) == 0
	some c in input.logs.communicators
	c.started > c.completed
}

broken contains m if {
	some m in logs.complaints
	m.program in {"pytorch", "gloo", "nccl", "rccl", "socket"}
	not networks.of_one_host(m)
	regex.match(`(?i)got 0 bytes|connection (reset|closed|refused)|connection to the C10d store has failed|socket has timed out|Socket Timeout`, m.text)
}

# blocked are a program's last words on a connection to an address that other
# machines can reach.
blocked contains f if {
	some f in networks.failures
	f.hard
	f.kind in {"timed-out", "no-route"}
	reachable(f)
	not died_before(f.message)
}

reachable(f) if f.remote == ""

reachable(f) if {
	f.remote != ""
	not networks.useless(f.remote)
}

first_of(set_) := f if {
	least := min({f.message.order | some f in set_})
	f := sort([f | some f in set_; f.message.order == least])[0]
}

tcp_confidence(f) := "confirmed" if {
	some m in logs.by_id["kernel-ufw-block"]
	f.remote in {m.fields.from, m.fields.to}
} else := "possible" if {
	astray
} else := "likely"

# astray is true when the ranks took interfaces that do not lead to each other:
# then nothing needs to block them.
astray if networks.scattered

astray if count(networks.bad_choices) > 0

astray if count(networks.narrow_used) > 0

astray if count(networks.off_meeting) > 0

# What else shows that a firewall is on.
support := logs.messages({"kernel-ufw-block", "firewall-ufw-active", "firewall-iptables-drops", "kubernetes-network-policy"})

support_evidence := logs.all_evidence(support)

supported := ". A firewall is on, as the texts show" if {
	count(support) > 0
} else := ""

to(f) := sprintf(" to %s", [f.remote]) if {
	f.remote != ""
} else := ""

# What is refused, broken off or only told in passing has other explanations as
# well.
findings contains {
	"subject": "network",
	"message": sprintf("A connection%s failed: %s. %s%s", [to(f), networks.words[f.kind], doubts[f.kind], supported]),
	"severity": doubtful_severity(f),
	"confidence": "possible",
	"remedies": ["open-firewall", "set-socket-ifname"],
	"evidence": array.concat([logs.evidence(f.message)], support_evidence),
	"order": f.message.order,
} if {
	count(blocked) == 0
	not astray
	f := first_of(doubtful)
}

doubtful contains f if {
	some f in networks.failures
	f.kind in {"refused", "aborted", "timed-out", "no-route"}
	reachable(f)
	not networks.single_node
	not died_before(f.message)
	networks.troubled
}

doubts := {
	"refused": "Nobody listens at that port: the peer has ended or not begun, or has another address than it told, or a firewall rejects",
	"aborted": "A firewall, or another service at that address, may have done that",
	"timed-out": meaning["timed-out"],
	"no-route": meaning["no-route"],
}

# On one machine a refused connection only says that a process is gone.
# Where a firewall is known to be on, that is the likelier reading.
doubtful_severity(f) := "high" if {
	f.hard
	count(support) > 0
} else := "low" if {
	f.kind in {"refused", "aborted"}
	not networks.multi_node
} else := "high" if {
	f.hard
} else := "medium"

missing contains {"fact": "logs", "words": "no log of a job was given"} if not input.logs
