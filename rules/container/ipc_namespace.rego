# METADATA
# title: One GPU of several, in a container with its own IPC and /dev/shm
# description: >-
#   NCCL uses peer access and shared memory only between ranks that see the same
#   host identity and the same /dev/shm. Ranks in containers of their own, each
#   with a private /dev/shm, talk over the network even inside one machine,
#   which is many times slower than NVLink or PCIe.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: Sharing of the host's resources between containers
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-hostid
#     description: The identity by which NCCL tells hosts apart
# schemas:
#   - input: schema.facts
# custom:
#   severity: low
#   confidence: possible
#   remedies: [share-ipc]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.ipc_namespace

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.surroundings

# From inside one container it cannot be seen whether ranks run in others. That
# is only supposed where a container was given a part of the machine's GPUs;
# containers with all of them are the usual and healthy way.
findings contains {
	"subject": "IPC namespace",
	"message": sprintf(
		"This container was given %d of the machine's %d GPUs and has an IPC namespace and a /dev/shm of its own. If the other ranks of a job run in other containers of this machine, NCCL sends their traffic over the network in place of NVLink, PCIe or shared memory%s",
		[count(surroundings.usable), surroundings.on_host, identity],
	),
	"severity": severity,
	"evidence": array.concat(evidence, job_evidence),
} if {
	part_of_machine
	private
}

part_of_machine if {
	facts.in_container
	count(surroundings.usable) > 0
	count(surroundings.usable) < surroundings.on_host
}

private if input.container.private_ipc == true

# Where the job itself says that it has several ranks and this container holds
# one GPU, the others run elsewhere.
default severity := "low"

severity := "medium" if {
	count(job) > 0
	count(surroundings.usable) == 1
}

# job are the variables that tell of several ranks on this machine.
job contains facts.variable[name] if {
	some name in {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}
	regex.match(`^[1-9][0-9]*$`, facts.env[name])
	to_number(facts.env[name]) > 1
}

job contains facts.variable.NCCL_HOSTID if facts.env.NCCL_HOSTID != ""

identity := sprintf("; NCCL_HOSTID=%s was set to make them one host, which needs a shared /dev/shm", [facts.env.NCCL_HOSTID]) if {
	facts.env.NCCL_HOSTID != ""
} else := ""

evidence := [
	{"fact": "container.private_ipc", "value": true, "source": "/proc/self/ns/ipc"},
	{"fact": "gpus.devices", "value": surroundings.on_host, "source": "/sys/bus/pci/devices, /proc/driver/nvidia/gpus"},
]

job_evidence := [surroundings.variable_evidence(v) | some v in job]

missing contains "container: namespaces were not read" if not input.container

missing contains "container.inside: it is not known whether this is a container" if {
	input.container
	not inside_known
}

missing contains "container.private_ipc: it is not known whether the IPC namespace is shared" if {
	part_of_machine
	not private_known
}

missing contains "gpus: it is not known which GPUs are used here" if {
	facts.in_container
	not surroundings.usable
}

inside_known if is_boolean(input.container.inside)

private_known if is_boolean(input.container.private_ipc)

not_applicable contains "not in a container" if input.container.inside == false

not_applicable contains "this container has all GPUs of the machine" if {
	facts.in_container
	not part_of_machine
	surroundings.usable
}
