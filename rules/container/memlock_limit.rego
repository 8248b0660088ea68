# METADATA
# title: The limit on locked memory is too low for RDMA
# description: >-
#   An RDMA NIC reads and writes memory that is locked and registered with it,
#   and the kernel counts this memory against RLIMIT_MEMLOCK. With the default
#   of 64 KiB or 8 MiB, registration fails with "Cannot allocate memory" as soon
#   as NCCL, MPI or UCX open their buffers, or the job falls back to TCP.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL requires an unlimited memlock in containers
#   - ref: https://slurm.schedmd.com/faq.html#memlock
#     description: How Slurm propagates the limit to jobs
#   - ref: https://github.com/torvalds/linux/blob/v6.12/drivers/infiniband/core/umem.c
#     description: Registration counts pinned pages against the limit unless the caller has CAP_IPC_LOCK
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - container.memlock_soft_bytes
#     - container.device_nodes
#   remedies: [raise-memlock, raise-memlock-limits, add-ipc-lock]
#   first_of: [refused, unexplained]
#   explains: [refused > memlock-limit/raise-refused]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.memlock_limit

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpudirect
import data.gpudoctor.lib.locked_memory as locked
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.limits as table

soft := locked.soft

findings contains {
	"subject": "RLIMIT_MEMLOCK",
	"message": sprintf(
		"The limit on locked memory is %s here%s, and RDMA devices are available (%s): %s",
		[facts.bytes(soft), locked.hard_remark, facts.list(surroundings.rdma_nodes), consequence],
	),
	"severity": severity,
	"confidence": confidence,
	"evidence": array.concat(locked.limits, locked.tried),
	"remedies": remedies,
} if {
	soft >= 0
	soft < table.memlock_low_bytes
	not locked.lifted
	count(surroundings.rdma_nodes) > 0
	count(gpudirect.unlocked) == 0
}

# A NIC really refused to register memory of the host.
findings contains {
	"id": "registration",
	"subject": "RLIMIT_MEMLOCK",
	"message": sprintf("Registering memory of the host with %s was refused (%s). %s", [denied.device, attempts.told(denied.host), limit_remark]),
	"severity": {"confirmed": "high", "likely": "medium"}[denied_confidence],
	"confidence": denied_confidence,
	"evidence": array.concat([gpudirect.host_evidence(denied)], limits_read),
	"remedies": remedies,
} if {
	denied := sort(gpudirect.unlocked)[0]
}

denied_confidence := "confirmed" if {
	locked.low
} else := "likely"

# The kernel refused to lock memory, although the limit allows it.
findings contains {
	"subject": "RLIMIT_MEMLOCK",
	"message": sprintf("Locking %s of memory was refused here (%s), and RDMA devices are available (%s): memory registration with the NIC probably fails as well", [facts.bytes(locked.denied.bytes), attempts.told(locked.denied), facts.list(surroundings.rdma_nodes)]),
	"severity": "medium",
	"evidence": [attempts.evidence("locked_memory")],
	"remedies": remedies,
} if {
	count(surroundings.rdma_nodes) > 0
	locked.denied
	not locked.low
	count(gpudirect.unlocked) == 0
}

# Without RDMA, nothing in CUDA and NCCL needs the limit: the NVIDIA driver pins pages without
# counting them (os_lock_user_pages in open-gpu-kernel-modules, kernel-open/nvidia/os-mlock.c).
# In a container that has less than the kernel's default, it is worth a note: NVIDIA's guide asks
# for it, and the next container may be given a NIC.
findings contains {
	"subject": "RLIMIT_MEMLOCK",
	"message": sprintf("The limit on locked memory is %s in this container: CUDA's pinned memory does not count against it, but memory registration with an RDMA NIC would fail", [facts.bytes(soft)]),
	"severity": "info",
	"confidence": confidence,
	"evidence": array.concat(locked.limits, locked.tried),
	"remedies": remedies,
} if {
	surroundings.isolated
	count(surroundings.usable) > 0
	count(surroundings.rdma_nodes) == 0
	count(((refused | unexplained) | users)) == 0
	locked.low
	soft < table.memlock_default_bytes
}

# refused are the messages that the kernel refused to lock memory for a NIC, or that a program found the limit too low.
refused := logs.messages([
	"ibv-no-memory", "ibv-memlock-warning", "rdma-register-no-memory", "nccl-ib-register-no-memory", "nccl-ib-create-no-memory",
	"mpi-queue-no-memory", "mscclpp-no-memory", "efa-no-memory",
])

# unexplained are the messages that a queue of the NIC could not be made, without
# the kernel's reason. A limit that is too low is the first of them: queues are
# made of locked memory, before anything else is.
unexplained contains m if some m in logs.by_id["mpi-queue-refused"]

unexplained contains m if {
	some m in logs.by_id["nccl-ib-create-failed"]
	object.get(m, ["fields", "error"], "") == ""
}

# Memory of a buffer has more reasons to be refused: a low limit must be known.
unexplained contains m if {
	some m in logs.by_id["nccl-ib-register-failed"]
	object.get(m, ["fields", "error"], "") == ""
	soft >= 0
	soft < table.memlock_low_bytes
}

# UCX also has other reasons, so a low limit must be known.
unexplained contains m if {
	some m in logs.by_id["ucx-worker-failed"]
	soft >= 0
	soft < table.memlock_low_bytes
}

findings contains {
	"id": "unexplained",
	"subject": "RLIMIT_MEMLOCK",
	"message": sprintf("An allocation of memory or of a NIC queue failed (%s), and the line gives no reason. %s", [logs.at(first), limit_remark]),
	"severity": "high",
	"confidence": unexplained_confidence,
	"evidence": array.concat(array.slice(logs.all_evidence(unexplained), 0, 4), limits_read),
	"remedies": refusal_remedies,
	"order": first.order,
} if {
	count(unexplained) > 0
	not unlimited
	first := logs.first(unexplained)
}

unexplained_confidence := "likely" if {
	soft >= 0
	soft < table.memlock_low_bytes
} else := "possible"

findings contains {
	"id": "refused",
	"subject": "RLIMIT_MEMLOCK",
	"message": sprintf("Memory registration with a NIC failed (%s). %s", [logs.at(first), limit_remark]),
	"severity": "critical",
	"confidence": refusal_confidence,
	"evidence": array.concat(array.slice(logs.all_evidence(refused), 0, 4), limits_read),
	"remedies": refusal_remedies,
	"order": first.order,
} if {
	count(refused) > 0
	first := logs.first(refused)
}

# asked is the limit that a description of the job asks for.
asked contains l.memlock_bytes if some l in input.launches

# limit_remark and refusal_confidence: with the limit lifted, other limits of
# the NIC's driver are left.
limit_remark := sprintf("The limit on locked memory is %s there", [facts.bytes(soft)]) if {
	soft >= 0
} else := "Locked memory is unlimited there, so check the free memory, the size of huge pages and the limits of the NIC's driver" if {
	unlimited
} else := sprintf("The line itself names a limit of %s KiB", [kib]) if {
	some m in refused
	kib := m.fields.kbytes
} else := "The usual cause is the limit on locked memory: ulimit -l in the same session or service shows it"

unlimited if soft == -1

unlimited if asked == {-1}

refusal_confidence := "confirmed" if {
	soft >= 0
	soft < table.memlock_low_bytes
} else := "possible" if {
	unlimited
} else := "confirmed" if {
	some m in refused
	m.id == "ibv-memlock-warning"
} else := "confirmed" if {
	some m in refused
	m.fields.kbytes
} else := "likely"

refusal_remedies := remedies if {
	surroundings.isolated
} else := ["raise-memlock", "raise-memlock-limits"]

limits_read := locked.limits if {
	soft
} else := []

# Only the limit, as a text showed it, where texts mention RDMA and no list of device nodes was given.
findings contains {
	"subject": "RLIMIT_MEMLOCK",
	"message": sprintf("The limit on locked memory is %s here, and RDMA is in use (%s): %s", [facts.bytes(soft), facts.list(users), consequence]),
	"severity": text_severity,
	"confidence": confidence,
	"evidence": locked.limits,
	"remedies": refusal_remedies,
} if {
	soft >= 0
	soft < table.memlock_low_bytes
	not locked.lifted
	not surroundings.rdma_nodes
	count(refused | unexplained) == 0
	count(users) > 0
}

# users are the signs of RDMA.
users contains "NCCL's network IB" if {
	some n in input.logs.networks
	startswith(n.name, "IB")
}

users contains "active RDMA ports" if {
	some p in input.nics.rdma
	p.state == "active"
}

text_severity := "medium" if {
	soft < table.memlock_too_low_bytes
} else := "low"

# remedies: enroot and Apptainer hand on the limit of the session.
# A pod's description has no field for the limit.
remedies := ["add-ipc-lock", "raise-memlock"] if {
	surroundings.isolated
	input.container.runtime == "kubernetes"
} else := ["raise-memlock", "add-ipc-lock"] if {
	surroundings.isolated
} else := ["raise-memlock-limits"]

# Without GPUs there is no job to fail.
severity := "low" if {
	count(surroundings.usable) == 0
} else := "high" if {
	soft < table.memlock_too_low_bytes
} else := "medium"

confidence := "confirmed" if {
	locked.denied.bytes <= table.memlock_too_low_bytes
} else := "likely" if {
	soft < table.memlock_too_low_bytes
} else := "possible"

consequence := "memory registration with the NIC fails" if {
	soft < table.memlock_too_low_bytes
} else := "a job with many connections exceeds it"

missing contains {"fact": "container", "words": "limits were not read"} if {
	not input.container
	count(refused | unexplained) == 0
}

missing contains {"fact": "container.memlock_soft_bytes", "words": "the limit on locked memory is not known"} if {
	input.container
	not input.container.memlock_soft_bytes
	count(refused | unexplained) == 0
}

missing contains {"fact": "container.device_nodes", "words": "it is not known whether RDMA devices are available"} if {
	input.container
	not surroundings.rdma_nodes
	not locked.enough
	count(((refused | unexplained) | users)) == 0
}

not_applicable contains "no RDMA device is available: only RDMA needs locked memory" if {
	count(surroundings.rdma_nodes) == 0
}
