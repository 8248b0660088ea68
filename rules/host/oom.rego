# METADATA
# title: Out of memory
# description: >-
#   A GPU or the machine had too little free memory. The process that requested it fails, or the kernel kills one; the
#   ranks that wait for it then report a lost connection or a collective timeout.
# related_resources:
#   - ref: https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
#     description: How PyTorch allocates and caches GPU memory
#   - {ref: https://docs.kernel.org/admin-guide/cgroup-v2.html#memory, description: The memory limit of a control group}
# custom:
#   severity: critical
#   confidence: confirmed
#   needs: [job-told-if-given, [texts-given, kernel_log.events]]
#   remedies: [free-memory, fix-application, other]
#   first_of: [host, killed, ended]
#   explains: [device > oom/ended, told > app-failure/signal]
#   since: "0.2"
package gpudoctor.rules.oom

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.known_faults
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.thresholds

# device are the messages that a GPU's memory ran out. What else programs say of memory is in the rows of the catalogue.
device := logs.messages({"torch-out-of-memory", "vllm-memory-short"}) | {m |
	some m in logs.by_id["nccl-cuda-out-of-memory"]
	not known_faults.of_host_memory(m)
}

findings contains {
	"id": "device",
	"subject": "GPU memory",
	"message": sprintf("%s: the GPU had too little free memory", [logs.who(logs.first(device))]),
	"messages": device,
} if count(device) > 0

findings contains {
	"subject": "memory limit",
	"message": sprintf("%s of the memory limit of %s are left to this container or job: files in /dev/shm count against it, and the kernel ends a process that exceeds it", [facts.bytes(left), facts.bytes(group.limit_bytes)]),
	"severity": "low",
	"confidence": "possible",
	"remedies": ["free-memory", "other"],
	"evidence": [{"fact": "container.memory", "value": group, "source": "/sys/fs/cgroup: memory.max, memory.current"}],
} if {
	count(surroundings.usable) > 0
	group := input.container.memory
	left := max([group.limit_bytes - group.in_use_bytes, 0])
	left < thresholds.group_memory_left_bytes
}
