# METADATA
# title: A job's memory or processors do not suffice
# description: /dev/shm counts against the memory of its container, whose processes are killed when it is full. Each rank needs a
#   processor of its own to start kernels and serve the network; data loaders need more.
# related_resources:
#   - ref: https://kubernetes.io/docs/concepts/storage/volumes/#emptydir
#     description: A volume in memory counts against the memory limit of the container
# custom:
#   severity: medium
#   remedies: [correct-launch]
#   since: "0.4"
package gpudoctor.rules.job_resources

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches

scarce(l, subject, part, message) := {"subject": subject, "message": message, "params": {"scarce": "yes"}, "evidence": [job.fact(l, part, l[part])]}

# limited is true where a number is a limit, which stands in another line than a pod's request: that one it may exceed.
limited(l, part, name) if {
	launches.shows(l, {part, "requests"})
	not l.lines[part] == object.get(l, ["lines", job.entry("requests", name)], -1)
}

findings contains scarce(l, "memory", "shm_bytes", sprintf("%s asks for %s of /dev/shm but is limited to %s of memory, against which /dev/shm counts: it gets less, and is killed before that is full", [job.opening(l), facts.bytes(l.shm_bytes), facts.bytes(l.memory_bytes)])) if {
	some l in job.containers
	limited(l, "memory_bytes", "memory")
	l.shm_bytes > l.memory_bytes
}

# A step may need few of the processors of its job.
findings contains scarce(l, "cpu", "cpus", sprintf("%s is limited to %v processors for %d GPUs: each rank needs at least one to start kernels and serve the network, and data loaders need more", [job.opening(l), l.cpus, job.gpus(l)])) if {
	some l in (job.parts - job.steps)
	limited(l, "cpus", "cpu")
	job.gpus(l) > 1
	l.cpus < job.gpus(l)
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"shm_bytes", "memory_bytes", "cpus", "gpus"})
