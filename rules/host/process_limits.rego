# METADATA
# title: A limit on open files, processes or segments was reached
# description: >-
#   Connections, shared memory objects and data loaders use file descriptors and
#   threads. When RLIMIT_NOFILE, the number of processes, pids.max of a control
#   group or the kernel's limit on System V segments is reached, ranks fail
#   while they connect or start workers.
# related_resources:
#   - ref: https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies
#     description: Sharing with file descriptors, and what to do when they run out
#   - ref: https://man7.org/linux/man-pages/man2/getrlimit.2.html
#     description: RLIMIT_NOFILE and RLIMIT_NPROC
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: confirmed
#   needs:
#     - job-told-if-given
#     - [texts-given, container.nofile_soft]
#   remedies: [raise-process-limits, other]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.process_limits

import data.gpudoctor.lib.logs
import data.tables.limits

# Programs say themselves which limit they reached: the verdicts of these messages are
# rows of the catalogue.

missing contains {"fact": "logs", "words": "no log of a job was given"} if {
	input.texts
	not logs.given
}

# A soft limit below what the kernel gives to every process: somebody lowered it.
findings contains {
	"id": "low-limit",
	"subject": "RLIMIT_NOFILE",
	"message": sprintf("Processes here can open %d files, fewer than the kernel's default of %d. Each rank opens a file for every connection, shared segment and GPU, and data loaders open more", [soft, limits.open_files]),
	"severity": "low",
	"confidence": "possible",
	"evidence": [{"fact": "container.nofile_soft", "value": soft, "source": "/proc/self/limits"}],
	"remedies": ["raise-process-limits"],
} if {
	soft := input.container.nofile_soft
	soft >= 0
	soft < limits.open_files
	not logs.given
}
