# METADATA
# title: A job cannot lock the memory that RDMA needs
# description: >-
#   An RDMA NIC accesses memory that is locked. A container has the limit of its runtime on locked
#   memory, 64 KiB or 8 MiB by default, unless its description raises it or adds IPC_LOCK; a
#   script hands its ulimit on. NCCL then fails to register its buffers, or falls back to TCP.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: The limit on locked memory in containers
#   - ref: https://github.com/kubernetes/kubernetes/issues/56374
#     description: An added capability takes effect only for root
#   - ref: https://www.gnu.org/software/bash/manual/html_node/Bash-Builtins.html#index-ulimit
#     description: ulimit -l counts KiB
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   areas: [container, network]
#   needs: [launches]
#   remedies: [raise-memlock, add-ipc-lock, raise-memlock-limits]
#   profiles: [launch]
#   cause: memlock-limit
#   since: "0.4"
package gpudoctor.rules.job_memlock

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.tables.launch_files as words
import data.tables.limits

found(severity, remedies, message, evidence) := {"subject": "RLIMIT_MEMLOCK", "severity": severity, "remedies": remedies, "message": message, "evidence": evidence}

# bounded are containers with RDMA devices that nothing lets lock memory.
bounded contains l if {
	some l in job.containers
	count(job.rdma(l)) > 0
	launches.shows(l, {"privileged", "cap_add"})
	not l.privileged
	count({"IPC_LOCK", "ALL"} & {c | some c in l.cap_add}) == 0
	count({f | some f in job.rdma(l); job.matches(words.unlimited_memlock, f.value)}) == 0
}

findings contains found(
	"high", {true: ["add-ipc-lock", "raise-memlock"], false: ["raise-memlock", "add-ipc-lock"]}[l.kind == "kubernetes"],
	sprintf("%s gets RDMA devices (%s) and %s, so the container runtime's limit on locked memory applies (64 KiB or 8 MiB by default): the NIC cannot register NCCL's buffers, and the job fails with \"Cannot allocate memory\" or falls back to TCP", [job.opening(l), job.rdma_words(l), lacks[l.kind]]),
	job.rdma(l),
) if {
	some l in bounded
	launches.shows(l, {"memlock_bytes"})
	not l.memlock_bytes
}

lacks := {
	"kubernetes": "not the capability IPC_LOCK",
	"docker-run": "neither --ulimit memlock=-1 nor --cap-add IPC_LOCK",
	"compose": "neither ulimits.memlock: -1 nor cap_add: [IPC_LOCK]",
	"docker-inspect": "neither an unlimited memlock nor the capability IPC_LOCK",
}

# A capability that a container adds is not in force for a user other than root.
findings contains found(
	"medium", ["raise-memlock", "add-ipc-lock"],
	sprintf("%s adds IPC_LOCK but runs as user %s: an added capability takes effect only for root, so the limit on locked memory still applies. Run as root, or raise the limit of the container runtime", [job.opening(l), l.user]),
	array.concat([job.fact(l, "user", l.user)], job.rdma(l)),
) if {
	some l in job.containers
	count(job.rdma(l)) > 0
	"IPC_LOCK" in l.cap_add
	count({f | some f in job.rdma(l); job.matches(words.unlimited_memlock, f.value)}) == 0
	launches.shows(l, {"privileged", "memlock_bytes"})
	not l.privileged
	not l.memlock_bytes == -1
	regex.match(`^[1-9]\d*(:|$)`, l.user)
}

# A limit that the file itself sets: a script hands its own on to what it starts.
findings contains found(
	limit_severity(l), {true: ["raise-memlock-limits"], false: ["raise-memlock"]}[l.kind == "shell"],
	sprintf("%s limits locked memory to %s%s, and %s: memory registration with RDMA NICs fails", [job.opening(l), facts.bytes(l.memlock_bytes), units(l), use(l)]),
	[job.fact(l, "memlock_bytes", l.memlock_bytes)],
) if {
	some l in job.parts
	l.memlock_bytes >= 0
	l.memlock_bytes < limits.memlock_low_bytes
	free(l)
}

free(l) if l.kind == "shell"

free(l) if {
	l in job.containers
	launches.shows(l, {"privileged", "cap_add"})
	not l.privileged
	not "IPC_LOCK" in object.get(l, "cap_add", [])
}

units(l) := " (ulimit -l counts KiB)" if l.kind == "shell"

units(l) := "" if l.kind != "shell"

# use says why a job needs RDMA. On one node without it, the limit does no harm to communication.
use(l) := sprintf("gets RDMA devices (%s)", [job.rdma_words(l)]) if {
	count(job.rdma(l)) > 0
} else := sprintf("its job uses %d nodes", [nodes]) if {
	nodes > 1
} else := "the target has RDMA NICs" if {
	job.target_rdma
	some other in job.parts
	job.several(other)
}

nodes := max({l.nodes | some l in job.parts})

# Below 64 MiB not even the buffers of a few connections fit; many nodes need more than a GiB.
limit_severity(l) := "high" if l.memlock_bytes <= limits.memlock_too_low_bytes

limit_severity(l) := "medium" if l.memlock_bytes > limits.memlock_too_low_bytes

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"privileged", "devices", "mounts", "resources", "cap_add", "memlock_bytes", "user", "nodes"})
