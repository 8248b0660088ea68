# METADATA
# title: A job cannot lock the memory that RDMA needs
# description: An RDMA NIC accesses locked memory. A container may lock 64 KiB or 8 MiB unless its description raises the limit or
#   adds IPC_LOCK, and a script hands its ulimit on. NCCL fails to register more, or uses TCP.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: The limit on locked memory in containers
#   - ref: https://github.com/kubernetes/kubernetes/issues/56374
#     description: An added capability takes effect only for root
# custom:
#   severity: high
#   areas: [container, network]
#   remedies: [raise-memlock, add-ipc-lock, raise-memlock-limits]
#   cause: memlock-limit
#   since: "0.4"
package gpudoctor.rules.job_memlock

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.tables.launch_files as words
import data.tables.thresholds

# bounded are containers with RDMA devices that the limit of their runtime or a capability concerns.
bounded contains l if {
	some l in job.confined
	count(job.rdma(l)) > 0
	launches.shows(l, {"memlock_bytes"})
	count({f | some f in job.rdma(l); job.matches(words.unlimited_memlock, f.value)}) == 0
}

# unlocked are containers without a capability that lifts the limit.
unlocked := {l | some l in job.confined; launches.shows(l, {"cap_add"}); count({"IPC_LOCK", "ALL"} & {c | some c in l.cap_add}) == 0}

findings contains {
	"subject": "RLIMIT_MEMLOCK", "evidence": job.rdma(l),
	"message": sprintf("%s gets RDMA devices (%s) and %s, so the container runtime's limit on locked memory applies (64 KiB or 8 MiB by default): the NIC cannot register NCCL's buffers, and the job fails with \"Cannot allocate memory\" or falls back to TCP", [job.opening(l), job.rdma_words(l), words.lacking.memlock[l.kind]]),
	"remedies": {true: ["add-ipc-lock", "raise-memlock"], false: ["raise-memlock", "add-ipc-lock"]}[l.kind == "kubernetes"],
} if {
	some l in (bounded & unlocked)
	not l.memlock_bytes
}

# A capability that a container adds is not in force for a user other than root.
findings contains {
	"subject": "RLIMIT_MEMLOCK", "severity": "medium", "remedies": ["raise-memlock", "add-ipc-lock"],
	"message": sprintf("%s adds IPC_LOCK but runs as user %s: an added capability takes effect only for root, so the limit on locked memory still applies. Run as root, or raise the limit of the container runtime", [job.opening(l), l.user]),
	"evidence": array.concat([job.fact(l, "user", l.user)], job.rdma(l)),
} if {
	some l in bounded
	not l.memlock_bytes == -1
	"IPC_LOCK" in l.cap_add
	regex.match(`^[1-9]\d*(:|$)`, l.user)
}

# A limit that the file itself sets: a script hands its own on to what it starts, in KiB. Below 64 MiB not even the buffers
# of a few connections fit; many nodes need more than a GiB.
findings contains {
	"subject": "RLIMIT_MEMLOCK", "remedies": [remedy], "evidence": [job.fact(l, "memlock_bytes", l.memlock_bytes)],
	"message": sprintf("%s limits locked memory to %s: memory registration with RDMA NICs fails", [job.opening(l), facts.bytes(l.memlock_bytes)]),
	"severity": {true: "high", false: "medium"}[l.memlock_bytes <= thresholds.memlock_too_low_bytes],
} if {
	some l in job.parts
	l.memlock_bytes >= 0
	l.memlock_bytes < thresholds.memlock_low_bytes
	remedy := in_force(l)
	uses_rdma(l)
}

in_force(l) := "raise-memlock-limits" if l.kind == "shell"
in_force(l) := "raise-memlock" if l in unlocked

# On one node without RDMA, the limit does no harm to communication.
uses_rdma(l) if count(job.rdma(l)) > 0
uses_rdma(_) if job.parts[_].nodes > 1

uses_rdma(_) if {
	job.target_rdma
	job.several(job.parts[_])
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"privileged", "devices", "mounts", "resources", "cap_add", "memlock_bytes", "user", "nodes"})
