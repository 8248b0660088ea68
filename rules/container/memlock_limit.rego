# METADATA
# title: The limit on locked memory is too low for RDMA
# description: >-
#   An RDMA NIC reads and writes memory that is locked and registered with it, and the kernel counts this memory against
#   RLIMIT_MEMLOCK. With the default of 64 KiB or 8 MiB, registration fails with "Cannot allocate memory" as soon as
#   NCCL, MPI or UCX open their buffers, or the job falls back to TCP.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL requires an unlimited memlock in containers
#   - {ref: https://slurm.schedmd.com/faq.html#memlock, description: How Slurm propagates the limit to jobs}
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/infiniband/core/umem.c
#     description: Registration counts pinned pages against the limit unless the caller has CAP_IPC_LOCK
# custom:
#   severity: high
#   confidence: likely
#   needs: [container.memlock_soft_bytes, container.device_nodes]
#   remedies: [raise-memlock, raise-memlock-limits, add-ipc-lock]
#   explains: [refused > memlock-limit/raise-refused]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     limit: >-
#       The limit on locked memory is {soft:bytes} here[ (a program can raise it itself: the hard limit is {hard})], and
#       RDMA devices are available ({nodes}): memory registration with the NIC fails as soon as it exceeds that
#     registration: >-
#       Registering memory of the host with {device} was refused ({attempt})[. The limit on locked memory is {soft:bytes}].
#       If that is enough, check the free memory, the size of huge pages and the limits of the NIC's driver
#     note:
#       severity: info
#       text: >-
#         The limit on locked memory is {soft:bytes} in this container: CUDA's pinned memory does not count against it,
#         but memory registration with an RDMA NIC would fail
#     refused: >-
#       A NIC did not get the locked memory that it needs ({at}). The usual cause is the limit on locked memory[, which
#       is {soft:bytes} there]: ulimit -l in the same session or service shows it. If it is unlimited, check the free
#       memory, the size of huge pages and the limits of the NIC's driver
package gpudoctor.rules.memlock_limit

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.gpudirect
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.thresholds as table

soft := input.container.memlock_soft_bytes

low if {
	soft >= 0
	soft < table.memlock_low_bytes
}

default in_force := false

in_force if {
	low
	not lifted
}

# lifted is true for a process to which the kernel does not apply the limit: it has CAP_IPC_LOCK in the initial user
# namespace (ib_umem_get asks capable(), which no other namespace can give).
lifted if {
	"IPC_LOCK" in input.container.capabilities
	input.container.private_user == false
}

# A NIC that registered more than the limit shows that it does not apply.
lifted if gpudirect.locked_bytes > soft

denied := attempts.refused.locked_memory

# A trial that failed is told; one that succeeded says only that its few pages fitted.
evidence := array.flatten([
	[{"fact": "container.memlock_soft_bytes", "value": soft, "source": "/proc/self/limits"} | soft],
	[attempts.evidence("locked_memory") | denied],
	[{"fact": "container.mlock", "value": errno, "source": "mlock(2)"} |
		errno := input.container.mlock
		errno in {"EPERM", "ENOMEM", "EAGAIN"}
		not denied
	],
])

finding(grade, fields) := object.union(
	{"grade": grade, "subject": "RLIMIT_MEMLOCK", "evidence": evidence, "remedies": remedies},
	fields,
)

findings contains finding("limit", {
	"about": {
		"soft": soft,
		"hard": ["unlimited" | input.container.memlock_hard_bytes == -1],
		"nodes": surroundings.rdma_nodes,
	},
	"severity": severity,
	"confidence": confidence,
}) if {
	in_force
	count(surroundings.rdma_nodes) > 0
	count(gpudirect.unlocked) == 0
}

findings contains finding("registration", {
	"id": "registration",
	"about": object.union({"device": n.device, "attempt": attempts.told(n.host)}, {"soft": soft | is_number(soft)}),
	"severity": graded[0],
	"confidence": graded[1],
	"evidence": array.concat([gpudirect.host_evidence(n)], evidence),
}) if {
	n := sort(gpudirect.unlocked)[0]
	graded := {true: ["high", "confirmed"], false: ["medium", "likely"]}[in_force]
}

# Without RDMA, nothing in CUDA and NCCL needs the limit: the NVIDIA driver pins pages without counting them
# (os_lock_user_pages in open-gpu-kernel-modules, kernel-open/nvidia/os-mlock.c). In a container that has less than
# the kernel's default, it is worth a note: NVIDIA's guide asks for it, and the next container may be given a NIC.
findings contains finding("note", {"about": {"soft": soft}, "confidence": confidence}) if {
	surroundings.isolated
	count(surroundings.usable) > 0
	count(surroundings.rdma_nodes) == 0
	count(refused) == 0
	in_force
	soft < table.memlock_default_bytes
}

# stated are the messages that the kernel refused to lock memory for a NIC, or that a program found the limit too low.
stated := logs.messages([
	"ibv-no-memory", "ibv-memlock-warning", "rdma-register-no-memory", "nccl-ib-register-no-memory", "nccl-ib-create-no-memory",
	"mpi-queue-no-memory", "mpi-endpoint-no-memory", "mscclpp-no-memory", "efa-no-memory",
])

refused contains m if some m in stated

# A queue of the NIC is made of locked memory before anything else is: where the kernel gives no reason, a limit that is
# too low is the first one. Memory of a buffer has more reasons, so that a low limit must be known.
refused contains m if {
	some m in logs.messages({"mpi-queue-refused", "nccl-ib-create-failed"})
	object.get(m, ["fields", "error"], "") == ""
	unlimited == false
}

refused contains m if {
	some m in logs.messages({"nccl-ib-register-failed", "ucx-worker-failed", "perftest-no-mr"})
	object.get(m, ["fields", "error"], "") == ""
	low
}

findings contains finding("refused", {
	"id": "refused",
	"about": object.union({"at": logs.at(logs.first(refused))}, {"soft": soft | is_number(soft)}),
	"severity": {true: "medium", false: "critical"}[unlimited],
	"confidence": refusal_confidence,
	"messages": refused,
	"remedies": failure_remedies,
}) if count(refused) > 0

# Unlimited here, or by the description of the job.
default unlimited := false

unlimited if soft == -1
unlimited if {l.memlock_bytes | some l in input.launches} == {-1}

# With the limit lifted, other limits of the NIC's driver are left.
refusal_confidence := "confirmed" if {
	low
	count(stated) > 0
} else := {true: "possible", false: "likely"}[unlimited]

# enroot and Apptainer hand on the limit of the session. A pod's description has no field for the limit.
remedies := ["add-ipc-lock", "raise-memlock"] if {
	surroundings.isolated
	input.container.runtime == "kubernetes"
} else := ["raise-memlock", "add-ipc-lock"] if {
	surroundings.isolated
} else := ["raise-memlock-limits"]

failure_remedies := remedies if {
	surroundings.isolated
} else := ["raise-memlock", "raise-memlock-limits"]

# Without GPUs there is no job to fail.
severity := "low" if {
	count(surroundings.usable) == 0
} else := {true: "high", false: "medium"}[soft < table.memlock_too_low_bytes]

confidence := "confirmed" if {
	denied.bytes <= table.memlock_too_low_bytes
} else := {true: "likely", false: "possible"}[soft < table.memlock_too_low_bytes]

not_applicable contains "no RDMA device is available: only RDMA needs locked memory" if count(surroundings.rdma_nodes) == 0
