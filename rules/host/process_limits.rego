# METADATA
# title: A limit on open files, processes or segments was reached
# description: >-
#   Connections, shared memory objects and data loaders use file descriptors and threads. When RLIMIT_NOFILE, the number
#   of processes, pids.max of a control group or the kernel's limit on System V segments is reached, ranks fail while
#   they connect or start workers.
# related_resources:
#   - {ref: https://man7.org/linux/man-pages/man2/getrlimit.2.html, description: RLIMIT_NOFILE and RLIMIT_NPROC}
# custom:
#   severity: critical
#   confidence: confirmed
#   needs: [job-told-if-given, [texts-given, container.nofile_soft]]
#   remedies: [raise-process-limits, other]
#   explains: [file-size > app-failure, file-size > job-failed, address-space > oom, address-space > gpu-visibility, signal > app-failure/signal]
#   since: "0.2"
package gpudoctor.rules.process_limits

import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.thresholds

# A soft limit below what the kernel gives to every process: somebody lowered it.
findings contains {
	"id": "low-limit",
	"subject": "RLIMIT_NOFILE",
	"message": sprintf("Processes here can open %d files, fewer than the kernel's default of %d. Each rank opens a file for every connection, shared segment and GPU, and data loaders open more", [soft, thresholds.open_files]),
	"severity": "low",
	"confidence": "possible",
	"evidence": [{"fact": "container.nofile_soft", "value": soft, "source": "/proc/self/limits"}],
} if {
	soft := input.container.nofile_soft
	soft >= 0
	soft < thresholds.open_files
	not logs.given
}

# Under a limit of 16 GB, PyTorch 2.11 on an H200 with 141 GB free said that memory ran out.
findings contains {
	"id": "address-space",
	"subject": "RLIMIT_AS",
	"message": sprintf("The address space of the job's processes is limited to %d GiB (ulimit -v, or h_vmem of a scheduler), and %s: CUDA and ROCm need address space for the memory of all GPUs and of the host, MPI for its segments and the copies that it makes", [round(limited / ((1024 * 1024) * 1024)), words]),
	"confidence": "likely",
	"evidence": [{"fact": "container.address_space_soft_bytes", "value": limited, "source": "/proc/self/limits"}],
	"messages": exhausted,
} if {
	limited := input.container.address_space_soft_bytes
	limited >= 0
	some words, ids in {
		"a GPU reported that memory ran out": {"torch-out-of-memory", "nccl-cuda-out-of-memory"},
		"MPI failed inside": {"mpi-internal-error"},
	}
	exhausted := logs.messages(ids)
	count(exhausted) > 0
}

# PyTorch's writer does not say why a file ends.
findings contains {
	"id": "file-size",
	"subject": "RLIMIT_FSIZE",
	"message": sprintf("A file could not be written to its end, and the shell limits files to %s KiB (ulimit -f): the checkpoint is larger", [limit.fields.blocks]),
	"confidence": "likely",
	"messages": {limit},
	"evidence": [{"fact": "logs.deaths", "value": cut.text, "source": logs.at(cut)}],
} if {
	limit := logs.first(logs.by_id["file-size-limited"])
	cut := input.logs.job.first
	some said in array.concat([cut.text], object.get(cut, "behind", []))
	regex.match(`PytorchStreamWriter failed writing|File too large`, said)
}

# The kernel ends a process with such a signal only where it reaches that limit.
findings contains {
	"id": "signal",
	"subject": limit[0],
	"message": sprintf("A process of the job was ended by %s: its limit of %s was reached (%s)", array.concat([input.logs.job.first.class], limit[1])),
	"evidence": [{"fact": "logs.deaths", "value": input.logs.job.first.text, "source": logs.at(input.logs.job.first)}],
} if limit := {
	"SIGXCPU": ["RLIMIT_CPU", ["CPU time", "ulimit -t"]],
	"SIGXFSZ": ["RLIMIT_FSIZE", ["the size of files", "ulimit -f"]],
}[input.logs.job.first.class]

findings contains {
	"subject": "pids.max",
	"message": sprintf("%d of %d processes and threads are left to this container or job: the ranks of a job with data loader workers need more", [left, tasks.limit]),
	"severity": "low",
	"confidence": "possible",
	"evidence": [{"fact": "container.tasks", "value": tasks, "source": "/sys/fs/cgroup: pids.max, pids.current"}],
} if {
	count(surroundings.usable) > 0
	tasks := input.container.tasks
	left := max([tasks.limit - tasks.used, 0])
	left < thresholds.group_tasks_left
}
