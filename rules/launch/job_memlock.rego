# METADATA
# title: A job cannot lock the memory that RDMA needs
# description: RDMA needs locked memory, of which a container gets 64 KiB or 8 MiB unless its description raises the limit.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#   - {ref: https://github.com/kubernetes/kubernetes/issues/56374, description: An added capability takes effect only for root}
# custom:
#   severity: high
#   areas: [container, network]
#   remedies: [raise-memlock, add-ipc-lock, raise-memlock-limits]
#   cause: memlock-limit
#   since: "0.4"
#   grades:
#     default: "{opening} gets RDMA devices and {lacking}: the runtime's limit on locked memory applies, 64 KiB or 8 MiB by default"
#     user: {severity: medium, text: "{opening} adds IPC_LOCK but runs as user {user}: an added capability takes effect only for root"}
#     limit: "{opening} limits locked memory to {memlock_bytes:bytes}: memory registration with RDMA NICs fails"
package gpudoctor.rules.job_memlock

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.tables.launch_files as words
import data.tables.thresholds

# bounded are the containers with RDMA devices whose runtime sets a limit, and that do not lift it.
bounded contains l if {
	some l in job.confined
	count(job.rdma(l)) > 0
	launches.shows(l, {"memlock_bytes"})
	count({f | some f in job.rdma(l); job.matches(words.unlimited_memlock, f.value)}) == 0
}

# unlocked are containers without a capability that lifts the limit.
unlocked := {l | some l in job.confined; launches.shows(l, {"cap_add"}); count({"IPC_LOCK", "ALL"} & {c | some c in l.cap_add}) == 0}

of(l, grade, facts, remedies) := object.union({"remedies": remedies}, job.finding(
	l, grade, "RLIMIT_MEMLOCK", array.concat(facts, job.rdma(l)), {},
	{"lacking": object.get(words.lacking.memlock, l.kind, "")},
))

findings contains of(l, "default", [], remedies) if {
	some l in (bounded & unlocked)
	not l.memlock_bytes
	remedies := {true: ["add-ipc-lock", "raise-memlock"], false: ["raise-memlock", "add-ipc-lock"]}[l.kind == "kubernetes"]
}

findings contains of(l, "user", [job.fact(l, "user", l.user)], ["raise-memlock", "add-ipc-lock"]) if {
	some l in bounded
	not l.memlock_bytes == -1
	"IPC_LOCK" in l.cap_add
	regex.match(`^[1-9]\d*(:|$)`, l.user)
}

# A script hands its own limit on to what it starts. In 64 MiB not even the buffers of a few connections fit.
findings contains of(l, "limit", [job.fact(l, "memlock_bytes", l.memlock_bytes)], [remedy]) if {
	some l in job.parts
	l.memlock_bytes >= 0
	l.memlock_bytes <= thresholds.memlock_too_low_bytes
	remedy := in_force(l)
	uses_rdma(l)
}

in_force(l) := "raise-memlock-limits" if l.kind == "shell"
in_force(l) := "raise-memlock" if l in unlocked

# On one node without RDMA, the limit does no harm to communication.
uses_rdma(l) if count(job.rdma(l)) > 0
uses_rdma(_) if job.parts[_].nodes > 1

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"privileged", "devices", "mounts", "resources", "cap_add", "memlock_bytes", "user", "nodes"})
