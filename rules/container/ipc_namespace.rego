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
#   explains: [one-gpu-each > gpu-visibility/gpu-of-another, one-gpu-each > ipc-namespace/unopened, one-gpu-each > ipc-namespace/memory-of-another]
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
#     over-network:
#       severity: medium
#       confidence: likely
#       text: >-
#         {channels} channels between ranks of one host use the network ({networks:comma}): NCCL treats the ranks as on
#         different hosts, or found neither peer access nor a shared /dev/shm between them, as with containers that have
#         separate IPC namespaces
#     one-gpu-each:
#       severity: critical
#       confidence: likely
#       text: >-
#         {title} has only its own GPU, and {opener} opens the memory of a GPU in another container ({at}), which CUDA
#         allows only if both GPUs are visible. Give every container all GPUs of the machine and a shared IPC namespace,
#         and select GPUs in the program
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

# job are the variables that show several ranks on this machine.
job contains facts.variable[name] if {
	some name in {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}
	regex.match(`^[1-9][0-9]*$`, facts.env[name])
	to_number(facts.env[name]) > 1
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
# descriptor over a socket of the network namespace (src/misc/ipcsocket.cc).
walled := {m |
	some m in logs.by_id["nccl-diag-p2p-import"]
	m.fields.handle in {"LEGACY_CUDA_IPC", "CUMEM_POSIX_FD", "CUMEM_OTHER"}
}

findings contains {
	"grade": "walled",
	"subject": "IPC namespace",
	"about": {"handles": {m.fields.handle | some m in walled}, "pairs": {sprintf("GPU %s to %s", [m.fields.from, m.fields.to]) | some m in walled}},
	"remedies": ["share-ipc"],
	"messages": walled,
} if count(walled) > 0

# Ranks of one host that use the network although no setting requires it.
over_network := {t | some t in input.logs.transports; t.kind == "net"; t.same_host == true}

findings contains {
	"grade": "over-network",
	"subject": "IPC namespace",
	"about": {"channels": sum([t.channels | some t in detours]), "networks": {object.get(t, "network", "NET") | some t in detours}},
	"remedies": ["share-ipc"],
	"evidence": array.concat(
		[{"fact": "logs.transports", "value": sprintf("%d -> %d via NET/%s", [t.a, t.b, object.get(t, "network", "")]), "source": logs.at(t)} | some t in detours],
		[{"fact": sprintf("launches[%s].ipc", [object.get(l, "name", l.kind)]), "value": object.get(l, "ipc", "private"), "source": logs.at(l)} | some l in separate],
	),
} if {
	count(detours) > 0
	not shm_off
}

# detours are those channels, or, if the log does not distinguish hosts, those of containers that one file starts side
# by side.
detours := over_network if {
	count(over_network) > 0
} else := {t | some t in input.logs.transports; t.kind == "net"; not t.same_host == false} if {
	count(separate) > 1
	count({l.source | some l in separate}) == 1
	{l.kind | some l in separate} == {"docker-run"}
}

# Two containers in one file that are ranks of one job, each with its own /dev/shm and IPC namespace, and channels
# over the network: if the log does not distinguish hosts, the descriptions do.
separate contains l if {
	some l in launches.containers
	launches.with_gpu(l)
	not launches.shares(l)
	not l.shm_mounted
	count({v | some v in object.get(l, "mounts", []); endswith(v, ":/dev/shm")}) == 0
}

# shm_off is true where variables forbid what would serve such ranks.
shm_off if "1" in {facts.env[name] | some name in ["NCCL_SHM_DISABLE", "NCCL_P2P_DISABLE"]}

# lone are the containers that each have one GPU, or named ones.
lone contains l if {
	some l in launches.containers
	l.gpus == 1
}

lone contains l if {
	some l in launches.containers
	regex.match(`^[0-9]$`, l.variables.NVIDIA_VISIBLE_DEVICES)
}

# unshared are failures of opening a GPU's memory in another process: CUDA does that only where a process sees both
# GPUs.
unshared contains m if some m in logs.messages({"nccl-ipc-open-failed", "ucx-ipc-open-failed"})

unshared contains m if {
	some m in logs.messages({"nccl-cuda-invalid-device", "nccl-cuda-invalid-argument"})
	regex.match(`(^|/)(p2p|transport)\.cc$`, m.fields.file)
}

findings contains {
	"id": "one-gpu-each",
	"subject": "IPC namespace",
	"about": {"title": launches.title(sort(lone)[0]), "opener": opener[0], "at": logs.at(first)},
	"remedies": array.concat(["share-ipc", "fix-visible-devices"], opener[1]),
	"messages": unshared,
	"evidence": [launches.evidence(l) | some l in sort(lone)],
} if {
	first := logs.first(unshared)

	# The libraries that say so, each with what makes it do without.
	opener := {"nccl": ["NCCL", ["nccl-p2p-disable"]], "ucx": ["UCX", []]}[split(first.id, "-")[0]]
}

missing contains {"fact": "container", "words": "namespaces were not read"} if not input.container

missing contains {"fact": "container.inside", "words": "it is not known whether this is a container"} if {
	input.container
	not inside_known
}

inside_known if is_boolean(input.container.inside)

missing contains {"fact": "container.private_ipc", "words": "it is not known whether the IPC namespace is shared"} if {
	part_of_machine
	not private_known
}

private_known if is_boolean(input.container.private_ipc)

missing contains {"fact": "gpus", "words": "it is not known which GPUs are used here"} if {
	facts.in_container
	not surroundings.usable
}

not_applicable contains "not in a container" if input.container.inside == false

not_applicable contains "this container has all GPUs of the machine" if {
	facts.in_container
	not part_of_machine
	surroundings.usable
}
