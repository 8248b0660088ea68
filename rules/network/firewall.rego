# METADATA
# title: Connections between hosts are blocked
# description: >-
#   Ranks connect to each other on ports that the kernel picks, in both directions. If a host firewall, a cloud security
#   group or a Kubernetes network policy allows only some ports, connections time out or are rejected with "No route to
#   host". With EFA, which needs a rule for all traffic of the security group to itself, peers never respond.
# related_resources:
#   - ref: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
#     description: EFA needs a security group that allows all traffic to and from itself
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL opens TCP ports at random; a firewall must allow them
#   - {ref: https://github.com/kubeflow/website/issues/2011, description: Istio's proxies block jobs over several pods}
# custom:
#   severity: critical
#   confidence: likely
#   needs: [job-connected]
#   remedies: [open-firewall, set-socket-ifname, other]
#   explains: [named > wrong-nic, turned-away > wrong-nic/unreached, app-mismatch/missing, collective-hang/between-hosts, launch-failed/host-lost, failure-area]
#   first_of: [security-group > efa-silent > efa-failed, named > turned-away > blocked > doubtful > tried]
#   since: "0.1"
#   grades:
#     failed: "A connection[ to {remote}] failed: {words}. {reading}"
package gpudoctor.rules.firewall

import data.gpudoctor.lib.connections
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.networks

findings contains {
	"id": id,
	"grade": "failed",
	"subject": "network",
	"about": {"remote": f.remote, "words": connections.words[f.kind], "reading": readings[f.kind]},
	"severity": severity,
	"confidence": confidence,
	"remedies": array.concat(["open-firewall"], ["set-socket-ifname" | id != "named"]),
	"messages": {f.message},
	"evidence": logs.all_evidence(firewalls - {f.message}),
} if some [id, f, severity, confidence] in verdicts

# firewalls are what else shows that a firewall is on.
firewalls := logs.messages({"kernel-ufw-block", "firewall-ufw-active", "firewall-iptables-drops", "firewall-counts", "kubernetes-network-policy"})

# Ranks that took interfaces which do not lead to each other need no firewall.
verdicts contains ["blocked", f, "critical", {true: "possible", false: "likely"}[count(connections.bad_choices) > 0]] if {
	f := connections.earliest({f | some f in told; f.hard; f.kind in {"timed-out", "no-route"}})
}

# A program that only says that it could not connect, and a firewall that is known to turn packets away.
verdicts contains ["turned-away", {"kind": "untold", "remote": connections.remote(m), "hard": true, "message": m}, "critical", "likely"] if {
	count(firewalls) > 0
	some m in logs.by_id["openmpi-tcp-connect-failed"]
	not m.fields.error
}

# The log of a firewall, and a program that names the address and the port to which the packets that it dropped went.
verdicts contains ["named", {"kind": "dropped", "remote": to, "hard": true, "message": m}, "critical", "likely"] if {
	some m in logs.by_id["kernel-ufw-block"]
	to := m.fields.to
	some other in input.logs.messages
	other.id != m.id
	other.fields.remote == to
	other.fields.port == m.fields.port
}

# A network policy opens a few ports, and none of them is the one that the job sought.
verdicts contains ["named", {"kind": "policy", "remote": f.remote, "hard": true, "message": f.message}, "critical", "likely"] if {
	count(opened) > 0
	f := connections.earliest({f | some f in connections.failures; f.message.fields.port; not connections.to_itself(f)})
	not f.message.fields.port in opened
}

opened := {m.fields.port | some m in logs.by_id["kubernetes-policy-port"]}

# What is refused, broken off or only told in passing has other explanations as well.
verdicts contains ["doubtful", f, doubtful_severity(f), "possible"] if {
	count(connections.bad_choices) == 0
	networks.troubled
	not networks.single_node
	f := connections.earliest(told)
}

# On one machine a refused connection only says that a process is gone.
doubtful_severity(f) := "low" if {
	f.kind in {"refused", "aborted"}
	not networks.multi_node
} else := {true: "high", false: "medium"}[f.hard]

# told are the connections to addresses that other machines can reach, which no earlier failure explains.
told contains f if {
	some f in connections.failures
	readings[f.kind]
	not connections.useless(f.remote)
	not connections.beside(f)
	not connections.to_itself(f)
	not connections.died_before(f.message)
}

readings := {
	"timed-out": "Dropped packets suggest a firewall, a security group or a network policy between the machines, or an address that the other machine does not use",
	"no-route": "This is how firewalld and other firewalls with a REJECT rule respond; a machine that is down, or on another network, looks the same",
	"refused": "Nothing listens on that port: the peer has exited or not started, or advertised the wrong address, or a firewall rejects the connection",
	"dropped": "The firewall's log names the address and the port that the job uses",
	"policy": "A network policy lists the ports that are open, and this one is not among them: NCCL, Gloo and MPI connect on ports that the kernel picks",
	"untold": "A firewall that turns packets away is on",
	"aborted": "The cause may be a firewall, or another service at that address",
}
