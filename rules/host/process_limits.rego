# METADATA
# title: A limit on open files, processes or segments was reached
# description: >-
#   Connections, shared memory objects and data loaders use file descriptors and threads. When RLIMIT_NOFILE, the number
#   of processes, pids.max of a control group or the kernel's limit on System V segments is reached, ranks fail while
#   they connect or start workers.
# related_resources:
#   - ref: https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies
#     description: Sharing with file descriptors, and what to do when they run out
#   - ref: https://man7.org/linux/man-pages/man2/getrlimit.2.html
#     description: RLIMIT_NOFILE and RLIMIT_NPROC
# custom:
#   severity: critical
#   confidence: confirmed
#   needs:
#     - job-told-if-given
#     - [texts-given, container.nofile_soft]
#   remedies: [raise-process-limits, other]
#   since: "0.2"
package gpudoctor.rules.process_limits

import data.gpudoctor.lib.logs
import data.gpudoctor.lib.own_connection
import data.gpudoctor.lib.surroundings
import data.tables.thresholds

# Programs say themselves which limit they reached: the verdicts of these messages are rows of the catalogue.

# A soft limit below what the kernel gives to every process: somebody lowered it.
findings contains {
	"id": "low-limit",
	"subject": "RLIMIT_NOFILE",
	"message": sprintf("Processes here can open %d files, fewer than the kernel's default of %d. Each rank opens a file for every connection, shared segment and GPU, and data loaders open more", [soft, thresholds.open_files]),
	"severity": "low",
	"confidence": "possible",
	"evidence": [{"fact": "container.nofile_soft", "value": soft, "source": "/proc/self/limits"}],
	"remedies": ["raise-process-limits"],
} if {
	soft := input.container.nofile_soft
	soft >= 0
	soft < thresholds.open_files
	not logs.given
}

findings contains object.union({"subject": "network"}, found) if some found in own_connection.limited

findings contains {
	"subject": "pids.max",
	"message": sprintf("%d of %d processes and threads are left to this container or job: the ranks of a job with data loader workers need more", [left, tasks.limit]),
	"severity": "low",
	"confidence": "possible",
	"remedies": ["raise-process-limits"],
	"evidence": [{"fact": "container.tasks", "value": tasks, "source": "/sys/fs/cgroup: pids.max, pids.current"}],
} if {
	count(surroundings.usable) > 0
	left < thresholds.group_tasks_left
}

tasks := input.container.tasks

left := max([tasks.limit - tasks.used, 0])
