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
#   - {ref: https://github.com/torvalds/linux/blob/v6.12/drivers/infiniband/core/umem.c, description: What counts, and for whom}
# custom:
#   severity: high
#   confidence: likely
#   needs: [container.memlock_soft_bytes, container.device_nodes]
#   remedies: [raise-memlock, raise-memlock-limits, add-ipc-lock]
#   explains: [refused > memlock-limit/raise-refused, refused > env-misconfig/mpi-component]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     limit: >-
#       The limit on locked memory is {soft:bytes} here[ (a program can raise it itself: the hard limit is {hard})], and
#       RDMA devices are available ({nodes}): memory registration with the NIC fails as soon as it exceeds that
#     registration: >-
#       Registering memory of the host with {device} was refused ({attempt})[. The limit on locked memory is {soft:bytes}].
#       If that is enough, check the free memory, the size of huge pages and the limits of the NIC's driver
package gpudoctor.rules.memlock_limit

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.gpudirect
import data.gpudoctor.lib.surroundings
import data.tables.thresholds as table

soft := input.container.memlock_soft_bytes

default low := false

low if {
	soft >= 0
	soft < table.memlock_low_bytes
	not lifted
}

# lifted is true for a process to which the kernel does not apply the limit: it has CAP_IPC_LOCK in the initial user
# namespace (ib_umem_get asks capable(), which no other namespace can give), or a NIC registered more.
lifted if {
	"IPC_LOCK" in input.container.capabilities
	input.container.private_user == false
}

lifted if gpudirect.locked_bytes > soft

# A trial that failed is told; one that succeeded says only that its few pages fitted.
evidence := array.flatten([
	[{"fact": "container.memlock_soft_bytes", "value": soft, "source": "/proc/self/limits"} | soft],
	[attempts.evidence("locked_memory") | attempts.refused.locked_memory],
	[{"fact": "container.mlock", "value": input.container.mlock, "source": "mlock(2)"} | input.container.mlock != "ok"],
])

findings contains {
	"grade": "limit",
	"subject": "RLIMIT_MEMLOCK",
	"about": {
		"soft": soft,
		"hard": ["unlimited" | input.container.memlock_hard_bytes == -1],
		"nodes": surroundings.rdma_nodes,
	},
	"severity": graded[0],
	"confidence": graded[1],
	"evidence": evidence,
	"remedies": remedies,
} if {
	low
	not jobless
	count(surroundings.rdma_nodes) > 0
	count(gpudirect.unlocked) == 0
	graded := {true: ["high", "likely"], false: ["medium", "possible"]}[soft < table.memlock_too_low_bytes]
}

# Without GPUs there is no job to fail.
jobless if count(surroundings.usable) == 0

findings contains {
	"grade": "registration",
	"subject": "RLIMIT_MEMLOCK",
	"about": object.union({"device": n.device, "attempt": attempts.told(n.host)}, {"soft": soft | is_number(soft)}),
	"severity": graded[0],
	"confidence": graded[1],
	"evidence": array.concat([gpudirect.host_evidence(n)], evidence),
	"remedies": remedies,
} if {
	n := sort(gpudirect.unlocked)[0]
	graded := {true: ["high", "confirmed"], false: ["medium", "likely"]}[low]
}

# enroot and Apptainer hand on the limit of the session.
remedies := ["raise-memlock", "add-ipc-lock"] if {
	surroundings.isolated
} else := ["raise-memlock-limits"]

not_applicable contains "no RDMA device is available: only RDMA needs locked memory" if count(surroundings.rdma_nodes) == 0
