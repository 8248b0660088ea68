# METADATA
# title: A job's memory or processors do not suffice
# description: /dev/shm counts against the memory of its container, and each rank needs a processor to start kernels.
# related_resources:
#   - {ref: https://kubernetes.io/docs/concepts/storage/volumes/#emptydir, description: A volume in memory counts against the limit}
# custom:
#   severity: medium
#   remedies: [correct-launch]
#   since: "0.4"
#   grades:
#     memory: "{opening} asks for {shm_bytes:bytes} of /dev/shm but is limited to {memory_bytes:bytes} of memory, which includes /dev/shm"
#     cpu: "{opening} is limited to {cpus} processors for {n} GPUs: each rank needs at least one, and data loaders need more"
package gpudoctor.rules.job_resources

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches

scarce(l, name, part, about) := job.finding(l, name, name, [job.fact(l, part, l[part])], {"scarce": "yes"}, about)

# limited is true where a number is a limit, which stands in another line than a pod's request: that one it may exceed.
limited(l, part, name) if {
	launches.shows(l, {part, "requests"})
	not l.lines[part] == object.get(l, ["lines", job.entry("requests", name)], -1)
}

findings contains scarce(l, "memory", "shm_bytes", {}) if {
	some l in job.containers
	limited(l, "memory_bytes", "memory")
	l.shm_bytes > l.memory_bytes
}

# A step may need few of the processors of its job.
findings contains scarce(l, "cpu", "cpus", {"n": job.gpus(l)}) if {
	some l in (job.parts - job.steps)
	limited(l, "cpus", "cpu")
	job.gpus(l) > 1
	l.cpus < job.gpus(l)
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"shm_bytes", "memory_bytes", "cpus", "gpus"})
