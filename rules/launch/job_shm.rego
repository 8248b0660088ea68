# METADATA
# title: A job's /dev/shm is too small
# description: NCCL and data loaders exchange data in /dev/shm, of which a container gets 64 MiB unless its description asks for more.
# related_resources:
#   - {ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html, description: NCCL recommends 1 GiB}
# custom:
#   severity: high
#   remedies: [increase-shm, share-ipc]
#   cause: shm-too-small
#   since: "0.4"
#   grades:
#     small: "{opening} {shm} and uses several GPUs: NCCL's shared memory transfers and data loaders fail there below about 1 GiB"
#     disk: {severity: medium, remedies: [increase-shm], text: "{opening} mounts an emptyDir at /dev/shm that is on disk, not in memory"}
package gpudoctor.rules.job_shm

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.tables.launch_files as words

# sharing are the containers whose programs exchange data between several GPUs.
sharing contains l if {
	some l in job.containers
	job.several(l)

	# In Google's machines for GPUDirect, NVLink connects the GPUs, and nothing goes through /dev/shm.
	count({p | some p in words.providers; p.name == "Google"; job.of_provider(l, p)}) == 0
	count({word | some word in array.concat([object.get(l, "image", "")], object.get(l, "command", [])); job.matches(words.without_nccl, word)}) == 0
}

findings contains job.finding(l, "small", "/dev/shm", [launches.evidence(l)], {}, {"shm": launches.shm_words(l)}) if {
	some l in (sharing & launches.small_shm)
}

findings contains job.finding(l, "disk", "/dev/shm", [job.fact(l, "mounts", "emptyDir:/dev/shm")], {}, {}) if {
	some l in sharing
	"emptyDir:/dev/shm" in l.mounts
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"shm_bytes", "ipc", "mounts", "gpus", "processes", "tensor_parallel"})
