# METADATA
# title: A job's /dev/shm is too small
# description: NCCL exchanges data through /dev/shm between GPUs without direct access to each other, and data loaders pass batches
#   there. Both fail in the 64 MiB that a container gets unless its description asks for more.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL recommends 1 GiB of shared memory in containers
# custom:
#   severity: high
#   remedies: [increase-shm, share-ipc]
#   cause: shm-too-small
#   since: "0.4"
package gpudoctor.rules.job_shm

import data.gpudoctor.lib.job
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.surroundings
import data.tables.launch_files as words

# sharing are the containers whose programs exchange data between several GPUs.
sharing contains l if {
	some l in job.containers
	job.several(l)
	count({word | some word in array.concat([object.get(l, "image", "")], object.get(l, "command", [])); job.matches(words.without_nccl, word)}) == 0
}

findings contains {
	"subject": "/dev/shm", "severity": severity(l), "evidence": [job.fact(l, "shm_bytes", object.get(l, "shm_bytes", "the default of 64 MiB"))],
	"message": sprintf("%s %s and uses several GPUs: NCCL's shared memory transfers, and data loaders with several workers, fail there. The recommended minimum is 1 GiB", [job.opening(l), launches.shm_words(l)]),
} if some l in (sharing & launches.small_shm)

# GPUs that NVLink connects exchange nothing through it, as in Google's machines for GPUDirect.
severity(l) := "low" if {
	some provider in words.providers
	provider.name == "Google"
	job.of_provider(l, provider)
} else := "medium" if {
	surroundings.all_nvlinked
} else := "high"

findings contains {
	"subject": "/dev/shm", "severity": "medium", "remedies": ["increase-shm"], "evidence": [job.fact(l, "mounts", "emptyDir:/dev/shm")],
	"message": sprintf("%s mounts an emptyDir without medium: Memory at /dev/shm, so shared memory is a file on the disk of the node", [job.opening(l)]),
} if {
	some l in sharing
	"emptyDir:/dev/shm" in l.mounts
}

missing contains {"fact": "launches", "words": text} if some text in job.undecided({"shm_bytes", "ipc", "mounts", "gpus", "processes", "tensor_parallel"})
