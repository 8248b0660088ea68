# METADATA
# title: Ranks on one machine do not share namespaces
# description: >-
#   NCCL uses peer access and shared memory only between ranks with the same host identity and the same /dev/shm. Ranks
#   in separate containers, each with a private /dev/shm, use the network even within one machine, which is many times
#   slower than NVLink or PCIe. The Unix sockets that NCCL uses to pass memory handles belong to the network namespace.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: How containers share the host's namespaces
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-hostid
#     description: The identity by which NCCL distinguishes hosts
# custom:
#   severity: low
#   confidence: possible
#   needs: [container.inside, container.private_ipc]
#   remedies: [share-ipc, fix-visible-devices, nccl-p2p-disable, nccl-cumem-disable, fix-application, other]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     part: >-
#       This container has {given} of the machine's {total} GPUs and its own IPC namespace and /dev/shm. If the other
#       ranks of a job run in other containers of this machine, NCCL sends their traffic over the network instead of
#       NVLink, PCIe or shared memory[; NCCL_HOSTID={hostid} was set to make them one host, which needs a shared
#       /dev/shm]
#     unreached:
#       severity: high
#       text: >-
#         {who}: NCCL reached no process at the Unix socket of another rank on this host. Either that process had ended,
#         or the ranks run in containers with separate network namespaces, which the socket's name is local to. A
#         firewall is not the cause
#     walled:
#       severity: high
#       confidence: likely
#       text: >-
#         NCCL's own check finds that processes on one host cannot map each other's GPU memory ({handles}, {pairs}). The
#         usual cause is ranks in containers with separate namespaces or GPUs
#     secluded:
#       severity: high
#       confidence: likely
#       text: >-
#         Two processes on {host} with different GPUs have the same process id, {pid}, and NCCL opens the memory of the one
#         in the other: they run in containers with separate PID namespaces, over which CUDA's IPC handles do not reach
package gpudoctor.rules.ipc_namespace

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# From inside one container it cannot be seen whether ranks run in others. That is only supposed where a container was
# given a part of the machine's GPUs; containers with all of them are the usual and healthy way. Where the job itself
# says that it has several ranks and this container holds one GPU, the others run elsewhere.
findings contains {
	"grade": "part",
	"subject": "IPC namespace",
	"about": {"given": given, "total": surroundings.on_host, "hostid": [id | id := facts.env.NCCL_HOSTID]},
	"severity": {true: "medium", false: "low"}[[given, count(job) > 0] == [1, true]],
	"remedies": ["share-ipc"],
	"evidence": array.concat(
		[
			{"fact": "container.private_ipc", "value": true, "source": "/proc/self/ns/ipc"},
			{"fact": "gpus.devices", "value": surroundings.on_host, "source": "/sys/bus/pci/devices, /proc/driver/nvidia/gpus"},
		],
		[surroundings.variable_evidence(v) | some v in job],
	),
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

job contains facts.variable[name] if {
	some name in {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}
	regex.match("^([2-9]|[1-9][0-9]+)$", facts.env[name])
}

job contains facts.variable.NCCL_HOSTID if facts.env.NCCL_HOSTID != ""

# unreached are Unix sockets of processes of the same host on which no process listens (ECONNREFUSED). NCCL gives them
# abstract names (USE_ABSTRACT_SOCKET in src/misc/ipcsocket.cc), and these belong to the network namespace (unix(7),
# network_namespaces(7)). A process that had failed before no longer listens either.
unreached := {m |
	some m in logs.by_id["nccl-uds-send-failed"]
	m.fields.errno == "111"
	count({other | some other in logs.complaints; other.role == "cause"; other.order < m.order; other.id != m.id}) == 0
}

findings contains {
	"grade": "unreached",
	"subject": "network namespace",
	"about": {"who": logs.who(logs.first(unreached))},
	"confidence": {true: "likely", false: "possible"}[contained],
	"remedies": ["share-ipc", "fix-application"],
	"params": {"network": "host"},
	"messages": unreached,
} if count(unreached) > 0

default contained := false

contained if count(launches.enclosed) > 0
contained if facts.in_container

# walled are the pairs of GPUs of which one process cannot map the memory of the other, by NCCL's own check. cudaIpc
# needs a PID and an IPC namespace in common, and that each process sees the other's GPU; cuMem hands a file
# descriptor over a socket of the network namespace (src/misc/ipcsocket.cc). Fabric handles need neither.
walled := {m | some m in logs.by_id["nccl-diag-p2p-import"]; m.fields.handle != "CUMEM_FABRIC"}

findings contains {
	"grade": "walled",
	"subject": "IPC namespace",
	"about": {"handles": {m.fields.handle | some m in walled}, "pairs": {sprintf("GPU %s to %s", [m.fields.from, m.fields.to]) | some m in walled}},
	"remedies": ["share-ipc"],
	"messages": walled,
} if count(walled) > 0

# secluded are processes of one host with one process id, where NCCL opens memory by a handle, as it does only between
# processes (P2P/IPC, src/transport/p2p.cc), and something failed.
secluded contains [p.host, p.pid, t] if {
	logs.failed
	some t in input.logs.transports
	t.kind == "p2p-ipc"
	some p in input.logs.processes
	some other in input.logs.processes
	[p.host, p.pid] == [other.host, other.pid]
	p.device < other.device
}

findings contains {
	"grade": "secluded",
	"subject": "PID namespace",
	"about": {"host": host, "pid": pid},
	"evidence": [{"fact": "logs.transports", "value": t.kind, "source": logs.at(t)}],
	"remedies": ["share-ipc", "nccl-p2p-disable"],
	"params": {"pid": "host"},
} if some [host, pid, t] in secluded

asks contains "gpus.devices" if facts.in_container

not_applicable contains "not in a container" if input.container.inside == false

not_applicable contains "this container has all GPUs of the machine" if {
	facts.in_container
	not part_of_machine
	surroundings.usable
}
