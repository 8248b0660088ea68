# METADATA
# title: /dev/shm is too small or read-only
# description: >-
#   GPUs without direct access to each other exchange data through files in /dev/shm, and data loader workers pass
#   batches there. Container runtimes limit it to 64 MiB by default, less than the buffers of one NCCL communicator.
#   NCCL then fails with "unhandled system error" or "No space left on device", and data loaders die of a bus error.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL recommends 1 GiB of shared memory in containers
#   - {ref: https://docs.docker.com/reference/cli/docker/container/run/, description: The default of --shm-size is 64 MiB}
#   - {ref: https://docs.pytorch.org/docs/stable/notes/multiprocessing.html, description: Data loaders share tensors through /dev/shm}
# custom:
#   severity: high
#   confidence: likely
#   needs: [[container.shm, container.shm_mounted], [gpus.devices, container.device_nodes, transfers.devices]]
#   remedies: [increase-shm, share-ipc, remount-shm, clear-shm, nccl-shm-disable, free-memory, raise-process-limits]
#   explains: [stated > env-misconfig/mpi-component, collective-failed/shm, collective-failed/both, collective-failed/fallback]
#   first_of: [stated, hinted, implied, full, unexplained, launch]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     absent: "/dev/shm is not mounted: shared memory fails"
#     read-only: "/dev/shm is mounted read-only: shared memory fails"
#     small: >-
#       /dev/shm has {size_bytes:bytes}, of which {free_bytes:bytes} are free. One NCCL communicator over the GPUs here
#       uses about {need:bytes} when traffic goes through shared memory, and data loaders need more; the recommended
#       minimum is 1 GiB
#     refused: {confidence: confirmed, text: "A file of {bytes:bytes} could not be made in /dev/shm ({attempt}[: {why}])"}
#     launch:
#       confidence: possible
#       text: "{title} {shm}, and the job uses several GPUs: shared memory transfers, and data loaders with several workers, fail there"
package gpudoctor.rules.shm_too_small

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.codes
import data.tables.thresholds

place := input.container.shm

# need is the least that one communicator takes when all of its GPUs go through host memory: each rank receives on 2
# channels, from its neighbour in the ring and from one in the tree.
need := ((count(surroundings.usable) * 2) * 2) * thresholds.shm_connection_bytes

refused := attempts.refused.shared_memory

state := "absent" if {
	input.container.shm_mounted == false
} else := "read-only" if {
	place.read_only
} else := "small" if {
	place.free_bytes < thresholds.shm_recommended_bytes
} else := "refused" if refused

findings contains {
	"grade": state,
	"subject": "/dev/shm",
	"about": object.union(about, {"need": need, "bytes": thresholds.shm_connection_bytes}),
	"severity": severity,
	"remedies": remedies,
	"evidence": array.flatten([
		[{"fact": "container.shm_mounted", "value": false, "source": "/proc/self/mountinfo"} | state == "absent"],
		[{"fact": sprintf("container.shm.%s", [f]), "value": value, "source": "statfs /dev/shm"} | some f, value in place; f != "path"],
		[attempts.evidence("shared_memory") | refused],
	]),
} if count(surroundings.usable) > 0

about := {"attempt": attempts.told(refused), "why": [e.words | some e in codes.errno; e.name == refused.errno]} if {
	state == "refused"
} else := object.get(input.container, "shm", {})

# A file system that is large and full holds what is left of earlier jobs. /dev/shm gets its size from the container's
# runtime or, if it is the machine's own, from a remount. Without shared memory, NCCL uses the network, which is much
# slower, so that is advised only where peer access serves every pair.
remedies := ["clear-shm"] if {
	state == "small"
	roomy
} else := ["clear-shm", "free-memory", "raise-process-limits"] if {
	state == "refused"
} else := array.concat(["increase-shm", "share-ipc"], ["nccl-shm-disable" | surroundings.all_nvlinked]) if {
	surroundings.isolated
} else := ["remount-shm"]

roomy if place.size_bytes >= thresholds.shm_recommended_bytes

# One GPU needs no NCCL; a job with only data loaders gets a low finding. GPUs that NVLink connects exchange nothing
# through shared memory, but data loaders do.
severity := "low" if {
	state == "small"
	place.free_bytes >= need
} else := "low" if {
	count(surroundings.usable) == 1
} else := "medium" if {
	surroundings.all_nvlinked
} else := "high"

findings contains {
	"id": "launch",
	"subject": "/dev/shm",
	"about": {"title": launches.title(l), "shm": launches.shm_words(l)},
	"severity": launch_severity,
	"remedies": ["increase-shm", "share-ipc"],
	"evidence": [launches.evidence(l)],
} if {
	launches.several
	some l in launches.small_shm
	not roomy
}

default launch_severity := "low"

launch_severity := "medium" if {
	logs.failed
	not logs.cause_said
}

asks contains "container.shm" if not input.container.shm_mounted == false

# If it was not tried at all, sizes and mounts are judged.
asks contains "container.attempts.shared_memory" if input.container.attempts

not_applicable contains "no GPU is visible here" if count(surroundings.usable) == 0
