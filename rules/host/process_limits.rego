# METADATA
# title: A limit of open files, processes or segments was reached
# description: >-
#   Each connection, each shared memory object and each data loader takes file
#   descriptors and threads. Where RLIMIT_NOFILE, the number of processes, a
#   control group's pids.max or the kernel's limit of System V segments is
#   reached, ranks fail while they connect or start workers.
# related_resources:
#   - ref: https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies
#     description: The sharing by file descriptor, and what to do when they run out
#   - ref: https://man7.org/linux/man-pages/man2/getrlimit.2.html
#     description: RLIMIT_NOFILE and RLIMIT_NPROC
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: confirmed
#   needs:
#     - job-told
#   remedies: [raise-process-limits, other]
#   cause: other
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.process_limits

import data.gpudoctor.lib.logs

limits := {
	"open files": {
		"ids": {"too-many-open-files", "shm-object-too-many-files", "nccl-too-many-open-files"},
		"text": "the process may open no more files (RLIMIT_NOFILE)",
	},
	"processes": {
		"ids": {"too-many-processes", "nccl-thread-creation-failed"},
		"text": "no more processes or threads may be started (RLIMIT_NPROC, or pids.max of the container)",
	},
	"segments": {
		"ids": {"sysv-shm-no-space"},
		"text": "the kernel gives out no more System V shared memory (ipcs -l shows its limits)",
	},
}

findings contains {
	"subject": subject,
	"message": sprintf("%s: %s", [logs.who(first), limit.text]),
	"severity": "critical",
	"confidence": "confirmed",
	"evidence": array.concat(logs.all_evidence(list), known),
	"order": first.order,
} if {
	some subject, limit in limits
	list := logs.messages(limit.ids)
	first := logs.first(list)
}

known := [{"fact": "container.nofile_soft", "value": input.container.nofile_soft, "source": "/proc/self/limits"}] if {
	input.container.nofile_soft > 0
} else := []

missing contains {"fact": "logs", "words": "no log of a job was given"} if not logs.given
