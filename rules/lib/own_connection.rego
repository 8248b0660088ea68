# A TCP connection of a process to itself, at the address where NCCL's ranks of one machine find each other. Each element
# of blocked, limited and missing is a finding of the rules firewall, process-limits and wrong-nic.
package gpudoctor.lib.own_connection

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.surroundings

refused := attempts.refused.connection

exhausted if refused.errno in attempts.reached

blocked contains object.union(found, {
	"remedies": ["open-firewall", "set-socket-ifname"],
	"params": {"variable": "NCCL_SOCKET_IFNAME"},
}) if {
	refused.interface != ""
	not exhausted
}

limited contains object.union(found, {"remedies": ["raise-process-limits", "other"]}) if {
	refused.interface
	exhausted
}

missing contains object.union(found, {"message": "No network interface is up that NCCL takes for its rendezvous: it fails even between ranks of one machine. Bring up at least the loopback interface (ip link set lo up)"}) if not refused.interface

# found is what a refusal says where there are GPUs that need the connection.
found := {
	"subject": "network",
	"message": sprintf("A process cannot connect to itself over TCP at %s (%s), which NCCL takes for its rendezvous: %s. %s", [
		object.get(refused, "address", ""), object.get(refused, "interface", ""), attempts.told(refused),
		object.get(meanings, object.get(refused, "errno", ""), "The ranks of one machine cannot reach each other there either"),
	]),
	"severity": {true: "high", false: "medium"}[count(surroundings.usable) > 1],
	"confidence": "confirmed",
	"evidence": [attempts.evidence("connection")],
} if count(surroundings.usable) > 0

# meanings are what the errors say here (connect(2), tcp(7)). The packets pass the loopback interface.
meanings := {
	"ETIMEDOUT": "A firewall of this machine drops the packets, or the loopback interface is down (ip link show lo)",
	"ECONNREFUSED": "A firewall of this machine rejects the packets: the process listens there",
	"ENETUNREACH": "The loopback interface is down, or there is no route (ip link show lo)",
	"EADDRNOTAVAIL": "No local port is free: other processes hold all of them (ss -s; sysctl net.ipv4.ip_local_port_range)",
	"EMFILE": "The limit on open files is reached (ulimit -n)",
}
