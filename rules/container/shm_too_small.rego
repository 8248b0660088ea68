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
#   explains: [collective-failed/shm, collective-failed/both, collective-failed/fallback]
#   first_of: [stated, hinted, implied, full, unexplained, launch]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     absent: "/dev/shm is not mounted: shared memory fails"
#     read-only: "/dev/shm is mounted read-only: shared memory fails"
#     small: >-
#       /dev/shm has {size:bytes}, of which {free:bytes} are free. One NCCL communicator over the GPUs here uses about
#       {need:bytes} when traffic goes through shared memory, and data loaders need more; the recommended minimum is 1 GiB
#     refused: "A file of {bytes:bytes} could not be made in /dev/shm ({attempt}[: {why}])"
#     stated: {severity: critical, confidence: confirmed, text: "{who}: /dev/shm has too little space, according to the program"}
#     warned: {confidence: confirmed, text: "{who}: /dev/shm has only {size}, according to Ray: NCCL and data loader workers also need it"}
#     unnamed:
#       severity: critical
#       text: "{who}: NCCL could not create or enlarge its file in /dev/shm; the usual cause is too little space"
#     bus-error:
#       severity: critical
#       text: "{who}: A process died. A write to a file in /dev/shm causes this (bus error) when there is no space for it"
#     bus-error-alone:
#       severity: medium
#       confidence: possible
#       text: "{who}: A process died of a bus error. With several GPUs, the most frequent cause is too little space in /dev/shm"
#     wordless:
#       confidence: possible
#       text: "{who}: NCCL failed in a system call, without details: in containers, the usual cause is too little shared memory"
#     full: {severity: critical, text: '{who}: "No space left on device": /dev/shm, which is small here, is the likely device'}
#     full-alone:
#       severity: low
#       confidence: possible
#       text: '{who}: "No space left on device" without a path: the device may be /dev/shm or a disk'
#     launch:
#       confidence: possible
#       text: "{title} {shm}, and the job uses several GPUs: shared memory transfers, and data loaders with several workers, fail there"
package gpudoctor.rules.shm_too_small

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.codes
import data.tables.thresholds

place := input.container.shm

# need is the least that one communicator takes when all of its GPUs go through host memory: each rank receives on 2
# channels, from its neighbour in the ring and from one in the tree.
need := ((count(surroundings.usable) * 2) * 2) * thresholds.shm_connection_bytes

finding(grade, severity, remedies, about, evidence) := object.union(
	{
		"grade": grade,
		"subject": "/dev/shm",
		"about": about,
		"severity": severity,
		"remedies": remedies,
		"evidence": array.concat(evidence, [attempts.evidence("shared_memory") | refused]),
	},
	{"confidence": "confirmed" | refused},
) if count(surroundings.usable) > 0

refused := attempts.refused.shared_memory

findings contains finding("absent", absent_severity, enlarge, {}, [
	{"fact": "container.shm_mounted", "value": false, "source": "/proc/self/mountinfo"},
]) if input.container.shm_mounted == false

findings contains finding("read-only", absent_severity, enlarge, {}, [
	{"fact": "container.shm.read_only", "value": true, "source": "/proc/self/mountinfo"},
]) if place.read_only == true

# A file system that is large and full holds what is left of earlier jobs.
findings contains finding(
	"small", severity, {true: ["clear-shm"], false: enlarge}[place.size_bytes >= thresholds.shm_recommended_bytes],
	{"size": place.size_bytes, "free": place.free_bytes, "need": need}, sizes,
) if {
	not place.read_only
	place.free_bytes < thresholds.shm_recommended_bytes
}

sizes := [{"fact": sprintf("container.shm.%s", [f]), "value": place[f], "source": "statfs /dev/shm"} |
	some f in ["size_bytes", "free_bytes"]
]

findings contains finding(
	"refused", absent_severity, refused_remedies, {
		"bytes": thresholds.shm_connection_bytes,
		"attempt": attempts.told(refused),
		"why": [e.words | some e in codes.errno; e.name == refused.errno],
	},
	[],
) if {
	not input.container.shm_mounted == false
	not place.read_only
	not exhausted
}

exhausted if {
	refused.errno == "ENOSPC"
	place.free_bytes < thresholds.shm_recommended_bytes
}

refused_remedies := ["raise-process-limits"] if {
	refused.errno in attempts.reached
} else := ["free-memory"] if {
	refused.errno == "ENOMEM"
} else := ["clear-shm"] if {
	refused.errno in {"ENOSPC", "EDQUOT"}
} else := enlarge

# enlarge is how /dev/shm gets its size: from the container's runtime or, if it is the machine's own, from a remount.
# Without shared memory, NCCL uses the network, which is much slower, so that is advised only where peer access serves
# every pair.
enlarge := array.concat(["increase-shm", "share-ipc"], ["nccl-shm-disable" | surroundings.all_nvlinked]) if {
	surroundings.isolated
} else := ["remount-shm"]

# One GPU needs no NCCL; a job with only data loaders gets a low finding. GPUs that NVLink connects exchange nothing
# through shared memory, but data loaders do.
absent_severity := "low" if {
	count(surroundings.usable) == 1
} else := "medium" if {
	surroundings.all_nvlinked
} else := "high"

severity := absent_severity if {
	place.free_bytes < need
} else := "low"

findings contains {
	"id": id,
	"grade": grade,
	"subject": "/dev/shm",
	"about": {
		"who": logs.who(first),
		"size": [facts.bytes(to_number(b)) | b := first.fields.bytes],
	},
	"remedies": told_remedies,
	"messages": (messages | in_nccl),
	"evidence": array.concat([launches.evidence(l) | some l in launches.small_shm], [s | small; some s in sizes]),
} if {
	some [id, grade, messages] in told
	first := logs.first(messages)
}

# told are the messages about it, with the id and the grade of what they tell. First, what the program says itself.
told contains ["stated", "stated", logs.messages({
	"dataloader-bus-error", "shm-no-space", "shm-object-failed", "ray-shm-refused", "ucx-shm-no-space",
	"mpi-shm-no-space", "triton-shm-no-space", "paddle-shm-no-space", "nccl-shm-no-space",
})]

# Ray continues elsewhere, other users of /dev/shm cannot.
told contains ["hinted", "warned", {m |
	some m in logs.by_id["ray-shm-too-small"]
	to_number(m.fields.bytes) < thresholds.shm_recommended_bytes
}]

# NCCL names the file and not the error, as releases before 2.17 do, and as the last error that PyTorch repeats does.
told contains ["hinted", "unnamed", {m |
	some m in logs.messages({"nccl-shm-create-failed", "nccl-shm-extend-failed"})
	not m.fields.error
	not m.fields.text
}]

# A process gets a bus error if it writes where a file in /dev/shm has no space behind it. On its own, it leaves other
# causes open.
died := logs.messages({"process-bus-error", "bus-error"}) | {m | some m in logs.by_id["dataloader-exited"]; small}

told contains ["implied", "bus-error", died] if implied
told contains ["implied", "bus-error-alone", died] if not implied

# NCCL's messages about a failed call without its name: the log was not written, and containers usually lack shared
# memory.
told contains ["implied", "wordless", logs.by_id["nccl-unhandled-system-error"]] if {
	small
	count(explained) == 0
}

explained := {m |
	some m in logs.complaints
	m.program in {"nccl", "libibverbs", "linux", "pytorch"}
	m.id != "nccl-unhandled-system-error"
}

full := logs.messages({"no-space-left"})

told contains ["full", "full", full] if small
told contains ["full", "full-alone", full] if not small

in_nccl := logs.messages({"stack-in-nccl"})

implied if small
implied if count(in_nccl) > 0
implied if count(full) > 0

small if place.size_bytes < thresholds.shm_recommended_bytes
small if place.free_bytes < thresholds.shm_default_bytes
small if count(launches.small_shm) > 0

# NVIDIA's image found the default of 64 MB there at startup.
small if logs.said("ngc-shm-default")

# Semaphores are files there, and nowhere else (glibc sem_open).
small if logs.said("python-semaphore-refused")

# A machine's own /dev/shm is remounted; a large one is full because of files of ended jobs.
told_remedies := ["remount-shm", "clear-shm", "increase-shm"] if {
	input.container.inside == false
	count(launches.containers) == 0
} else := ["clear-shm", "increase-shm", "share-ipc"] if {
	roomy
} else := ["increase-shm", "share-ipc", "clear-shm"]

roomy if place.size_bytes >= thresholds.shm_recommended_bytes

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
