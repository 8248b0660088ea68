# METADATA
# title: /dev/shm is too small or read-only
# description: >-
#   GPUs without direct access to each other exchange data through files in
#   /dev/shm, and data loader workers pass batches there. Container runtimes
#   limit it to 64 MiB by default, less than the buffers of one NCCL
#   communicator. NCCL then fails with "unhandled system error" or "No space
#   left on device", and data loaders die of a bus error.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL recommends 1 GiB of shared memory in containers
#   - ref: https://docs.docker.com/reference/cli/docker/container/run/
#     description: The default of --shm-size is 64 MiB
#   - ref: https://docs.pytorch.org/docs/stable/notes/multiprocessing.html
#     description: Data loaders share tensors through /dev/shm
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - [container.shm, container.shm_mounted]
#     - [gpus.devices, container.device_nodes, transfers.devices]
#   remedies: [increase-shm, share-ipc, remount-shm, clear-shm, nccl-shm-disable, free-memory, raise-process-limits]
#   explains: [collective-failed/shm, collective-failed/both, collective-failed/fallback]
#   first_of: [stated, hinted, implied, full, unexplained, launch]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.shm_too_small

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.shm
import data.gpudoctor.lib.surroundings
import data.tables.limits

# need is the least that one communicator takes when all of its GPUs go through
# host memory: each rank receives on 2 channels, from its neighbour in the ring
# and from one in the tree.
need := ((count(surroundings.usable) * 2) * 2) * limits.shm_connection_bytes

findings contains finding("/dev/shm is not mounted: shared memory fails", grade_absent, enlarge, [{
	"fact": "container.shm_mounted",
	"value": false,
	"source": "/proc/self/mountinfo",
}]) if {
	count(surroundings.usable) > 0
	input.container.shm_mounted == false
}

findings contains finding(
	"/dev/shm is mounted read-only: shared memory fails", grade_absent, enlarge,
	[{"fact": "container.shm.read_only", "value": true, "source": "/proc/self/mountinfo"}],
) if {
	count(surroundings.usable) > 0
	shm.place.read_only == true
}

findings contains finding(message, grade, remedies, evidence) if {
	count(surroundings.usable) > 0
	not shm.place.read_only
	shm.place.free_bytes < limits.shm_recommended_bytes
	evidence := [
		{"fact": "container.shm.size_bytes", "value": shm.place.size_bytes, "source": "statfs /dev/shm"},
		{"fact": "container.shm.free_bytes", "value": shm.place.free_bytes, "source": "statfs /dev/shm"},
	]
}

# A file that was really refused, for another reason than the size and the mount.
findings contains finding(
	sprintf("A file of %s could not be made in /dev/shm (%s): %s", [
		facts.bytes(limits.shm_connection_bytes), attempts.told(refused),
		object.get(shm.refusals, object.get(refused, "errno", ""), "shared memory fails"),
	]),
	grade_absent, refused_remedies, [],
) if {
	count(surroundings.usable) > 0
	refused
	not input.container.shm_mounted == false
	not shm.place.read_only
	not exhausted
}

exhausted if {
	refused.errno == "ENOSPC"
	shm.place.free_bytes < limits.shm_recommended_bytes
}

refused := attempts.refused.shared_memory

refused_remedies := ["raise-process-limits"] if {
	refused.errno in attempts.reached
} else := ["free-memory"] if {
	refused.errno == "ENOMEM"
} else := ["clear-shm"] if {
	refused.errno in {"ENOSPC", "EDQUOT"}
} else := enlarge

finding(message_, grade_, remedies_, evidence) := {
	"subject": "/dev/shm",
	"message": message_,
	"severity": grade_,
	"confidence": confidence,
	"remedies": remedies_,
	"evidence": array.concat(evidence, [attempts.evidence("shared_memory") | refused]),
}

default confidence := "likely"

confidence := "confirmed" if refused

# enlarge is how /dev/shm gets its size: from the container's runtime or, if it is the
# machine's own, from a remount. Without shared memory, NCCL uses the network, which is
# much slower, so that is advised only where peer access serves every pair.
enlarge := array.concat(["increase-shm", "share-ipc"], [r | some r in ["nccl-shm-disable"]; surroundings.all_nvlinked]) if {
	surroundings.isolated
} else := ["remount-shm"]

# If the size is sufficient, files of ended jobs fill it.
remedies := ["clear-shm"] if {
	shm.place.size_bytes >= limits.shm_recommended_bytes
} else := enlarge

grade_absent := "high" if {
	count(surroundings.usable) > 1
	not surroundings.all_nvlinked
}

grade_absent := "medium" if {
	count(surroundings.usable) > 1
	surroundings.all_nvlinked
}

grade_absent := "low" if count(surroundings.usable) == 1

# One GPU needs no NCCL; a job with only data loaders gets a low finding. GPUs that NVLink
# connects exchange nothing through shared memory, but data loaders do.
grade := "low" if {
	count(surroundings.usable) == 1
} else := "medium" if {
	surroundings.all_nvlinked
	shm.place.free_bytes < need
} else := "low" if {
	surroundings.all_nvlinked
} else := "high" if {
	shm.place.free_bytes < need
} else := "medium" if {
	# A second communicator (tensor and data parallel, say) takes as much again.
	shm.place.free_bytes < need * 2
} else := "low"

# A file system that is large and full holds what is left of earlier jobs.
message := sprintf(
	"/dev/shm has %s, of which %s are free: unused files of earlier jobs (nccl-*, torch_*, sem.*) can be deleted. %s",
	[facts.bytes(shm.place.size_bytes), facts.bytes(shm.place.free_bytes), consequence],
) if {
	shm.place.size_bytes >= limits.shm_recommended_bytes
} else := sprintf("/dev/shm has %s (the default of container runtimes), %s free. %s", [
	facts.bytes(shm.place.size_bytes),
	facts.bytes(shm.place.free_bytes), consequence,
]) if {
	shm.place.size_bytes == limits.shm_default_bytes
} else := sprintf("/dev/shm has %s, %s free. %s", [
	facts.bytes(shm.place.size_bytes),
	facts.bytes(shm.place.free_bytes), consequence,
])

consequence := "With one GPU, only data loaders with several workers need it" if {
	count(surroundings.usable) == 1
} else := "NVLink connects all GPUs here, so only data loaders with several workers need it, and NCCL between machines; the recommended minimum is 1 GiB" if {
	surroundings.all_nvlinked
} else := sprintf(
	"One NCCL communicator over %d GPUs uses about %s when traffic goes through shared memory, and data loaders need more; the recommended minimum is 1 GiB",
	[count(surroundings.usable), facts.bytes(round(need / surroundings.mib) * surroundings.mib)],
)

# Messages of programs, with the launches that confirm them.
findings contains object.union(
	{
		"subject": "/dev/shm",
		"message": sprintf("%s: %s", [logs.who(logs.first(told.messages)), told.text]),
		"remedies": told_remedies,
		"messages": (told.messages | shm.in_nccl),
		"evidence": [launches.evidence(l) | some l in launches.small_shm],
	},
	object.filter(told, ["id", "severity", "confidence"]),
) if {
	some told in shm.told
	count(told.messages) > 0
}

# A machine's own /dev/shm is remounted; a large one is full because of files of ended
# jobs.
told_remedies := ["remount-shm", "clear-shm", "increase-shm"] if {
	input.container.inside == false
	count(launches.containers) == 0
} else := ["clear-shm", "increase-shm", "share-ipc"] if {
	shm.roomy
} else := ["increase-shm", "share-ipc", "clear-shm"]

# A container with the default, for a job of several GPUs, and nothing that
# says how it ended.
findings contains {
	"id": "launch",
	"subject": "/dev/shm",
	"message": sprintf("%s %s, and the job uses several GPUs: shared memory transfers, and data loaders with several workers, fail there", [
		launches.title(l),
		launches.shm_words(l),
	]),
	"severity": launch_severity,
	"confidence": "possible",
	"remedies": ["increase-shm", "share-ipc"],
	"evidence": [launches.evidence(l)],
} if {
	launches.several
	some l in launches.small_shm
	not shm.roomy
}

default launch_severity := "low"

launch_severity := "medium" if {
	logs.failed
	not cause_stated
}

cause_stated if {
	some m in input.logs.messages
	m.role == "cause"
}

# The size from a text, if no text shows GPUs.
findings contains {
	"id": "launch",
	"subject": "/dev/shm",
	"message": sprintf("/dev/shm has %s, and the job uses several GPUs. NVIDIA's guide recommends at least 1 GiB", [facts.bytes(shm.place.size_bytes)]),
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["increase-shm", "share-ipc"],
	"evidence": [{"fact": "container.shm.size_bytes", "value": shm.place.size_bytes, "source": "/dev/shm"}],
} if {
	shm.place.size_bytes < limits.shm_recommended_bytes
	not counted
	launches.several
}

counted if count(surroundings.usable) > 0

missing contains {"fact": "container", "words": "/dev/shm and limits were not read"} if not input.container

missing contains {"fact": "gpus", "words": "it is not known how many GPUs are used here"} if not surroundings.usable

missing contains {"fact": "container.shm", "words": "the size of /dev/shm is not known"} if {
	input.container
	not input.container.shm
	not input.container.shm_mounted == false
	not no_gpu
}

# If it was not tried at all, sizes and mounts are judged.
missing contains {"fact": "container.attempts.shared_memory", "words": "it is not known whether a file can be made in /dev/shm"} if {
	input.container.attempts
	not input.container.attempts.shared_memory
	not no_gpu
}

not_applicable contains "no GPU is visible here" if no_gpu

no_gpu if count(surroundings.usable) == 0
