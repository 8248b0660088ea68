# METADATA
# title: The limit on locked memory
# description: >-
#   RLIMIT_MEMLOCK of this process, whether it applies, and what came of an
#   attempt to lock memory.
package gpudoctor.lib.locked_memory

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.gpudirect
import data.tables.limits as table

soft := input.container.memlock_soft_bytes

low if {
	soft >= 0
	soft < table.memlock_low_bytes
	not lifted
}

enough if soft < 0

enough if soft >= table.memlock_low_bytes

# lifted is true for a process to which the kernel does not apply the limit: it
# has CAP_IPC_LOCK in the initial user namespace (ib_umem_get asks capable(),
# which no other namespace can give).
lifted if {
	"IPC_LOCK" in input.container.capabilities
	input.container.private_user == false
}

# A NIC that registered more than the limit shows that it does not apply.
lifted if gpudirect.locked_bytes > soft

denied := attempts.refused.locked_memory

hard_remark := " (a program can raise it itself: the hard limit is unlimited)" if {
	input.container.memlock_hard_bytes == -1
} else := ""

limits := [{
	"fact": "container.memlock_soft_bytes",
	"value": soft,
	"source": "/proc/self/limits",
}]

# A trial that failed is told; one that succeeded says only that its few pages
# fitted.
tried := [attempts.evidence("locked_memory")] if {
	denied
} else := [{"fact": "container.mlock", "value": input.container.mlock, "source": "mlock(2)"}] if {
	input.container.mlock in {"EPERM", "ENOMEM", "EAGAIN"}
} else := []
