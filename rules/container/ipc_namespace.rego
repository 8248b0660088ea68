# METADATA
# title: Ranks on one machine do not share namespaces
# description: >-
#   NCCL uses peer access and shared memory only between ranks with the same host identity and the same /dev/shm. Ranks
#   in separate containers, each with a private /dev/shm, use the network even within one machine, which is many times
#   slower than NVLink or PCIe. The Unix sockets that NCCL uses to pass memory handles belong to the network namespace.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: How containers share the host's namespaces
# custom:
#   severity: low
#   confidence: possible
#   needs: [container.inside, container.private_ipc]
#   remedies: [share-ipc, fix-visible-devices, nccl-p2p-disable, nccl-cumem-disable, fix-application, correct-launch, other]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     part: >-
#       This container has {given} of the machine's {total} GPUs and its own IPC namespace and /dev/shm. If the other
#       ranks of a job run in other containers of this machine, NCCL sends their traffic over the network instead of
#       NVLink, PCIe or shared memory
#     secluded:
#       severity: high
#       confidence: likely
#       text: >-
#         Two processes on {host} with different GPUs have the same process id, {pid}, and NCCL opens the memory of the one
#         in the other: they run in containers with separate PID namespaces, over which CUDA's IPC handles do not reach
#     apart:
#       severity: high
#       confidence: likely
#       text: >-
#         NCCL takes the ranks on {host} for those of {nodes} machines, and they exchange data over the network ({network}):
#         they run in containers with IPC namespaces and /dev/shm of their own
package gpudoctor.rules.ipc_namespace

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# From inside one container it cannot be seen whether ranks run in others. That is only supposed where a container was
# given a part of the machine's GPUs; containers with all of them are the usual and healthy way.
findings contains {
	"grade": "part",
	"subject": "IPC namespace",
	"about": {"given": given, "total": surroundings.on_host},
	"remedies": ["share-ipc"],
	"evidence": [
		{"fact": "container.private_ipc", "value": true, "source": "/proc/self/ns/ipc"},
		{"fact": "gpus.devices", "value": surroundings.on_host, "source": "/sys/bus/pci/devices, /proc/driver/nvidia/gpus"},
	],
} if {
	part_of_machine
	input.container.private_ipc == true
	given := count(surroundings.usable)
}

part_of_machine if {
	facts.in_container
	count(surroundings.usable) > 0
	count(surroundings.usable) < surroundings.on_host
}

# NCCL counts as one machine what shares the host's name, boot id and /dev/shm (src/misc/utils.cc, getHostHash), and all
# ranks, which one host's log shows, are apart. NCCL_HOSTID does it on purpose, and without its transports it looks alike.
findings contains {
	"grade": "apart",
	"subject": "IPC namespace",
	"about": {"host": c.hosts[0], "nodes": c.nodes, "network": t.network},
	"evidence": [{"fact": "logs.transports", "value": sprintf("%d channels via NET/%s", [t.channels, t.network]), "source": logs.at(t)}],
	"remedies": ["share-ipc"],
} if {
	some c in input.logs.communicators
	count(c.hosts) == 1
	c.hosts[0] != ""
	c.nodes == c.ranks
	c.started == c.ranks
	some t in input.logs.transports
	t.kind == "net"
	t.same_host == true
	count({"NCCL_HOSTID", "NCCL_SHM_DISABLE"} & {v.name | some v in input.env.variables}) == 0
}

# Two processes of one host have one process id, where NCCL opens memory by a handle, as it does only between processes
# (P2P/IPC, src/transport/p2p.cc), and something failed.
findings contains {
	"grade": "secluded",
	"subject": "PID namespace",
	"about": {"host": p.host, "pid": p.pid},
	"evidence": [{"fact": "logs.transports", "value": t.kind, "source": logs.at(t)}],
	"remedies": ["share-ipc", "nccl-p2p-disable"],
	"params": {"pid": "host"},
} if {
	logs.failed
	some t in input.logs.transports
	t.kind == "p2p-ipc"
	some p in input.logs.processes
	some other in input.logs.processes
	[p.host, p.pid] == [other.host, other.pid]
	p.device < other.device
}

asks contains "gpus.devices" if facts.in_container

not_applicable contains "not in a container" if input.container.inside == false

not_applicable contains "this container has all GPUs of the machine" if {
	facts.in_container
	not part_of_machine
	surroundings.usable
}
