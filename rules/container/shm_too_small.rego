# METADATA
# title: Shared memory at /dev/shm is too small
# description: >-
#   GPUs that do not reach each other directly exchange data through files in
#   /dev/shm, and the workers of data loaders hand over batches there. Container
#   runtimes give 64 MiB, which is less than one communicator of NCCL takes for
#   its buffers: it then fails with «unhandled system error» or «No space left
#   on device», and data loaders die of a bus error.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL asks for 1 GiB of shared memory in containers
#   - ref: https://docs.docker.com/reference/cli/docker/container/run/
#     description: The default of --shm-size is 64 MiB
#   - ref: https://docs.pytorch.org/docs/stable/notes/multiprocessing.html
#     description: Data loaders share tensors through /dev/shm
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - [container.shm, container.shm_mounted]
#     - [gpus.devices, container.device_nodes, transfers.devices]
#   remedies: [increase-shm, share-ipc, remount-shm, clear-shm, nccl-shm-disable]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.shm_too_small

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.tables.limits

# need is the least that one communicator takes when all of its GPUs go through
# host memory: each rank receives on 2 channels, from its neighbour in the ring
# and from one in the tree.
need := ((count(surroundings.usable) * 2) * 2) * limits.shm_connection_bytes

shm := input.container.shm

findings contains finding("/dev/shm is not mounted: what goes through shared memory fails", grade_absent, enlarge, [{
	"fact": "container.shm_mounted",
	"value": false,
	"source": "/proc/self/mountinfo",
}]) if {
	count(surroundings.usable) > 0
	input.container.shm_mounted == false
}

findings contains finding(
	"/dev/shm is mounted read-only: what goes through shared memory fails", grade_absent, enlarge,
	[{"fact": "container.shm.read_only", "value": true, "source": "/proc/self/mountinfo"}],
) if {
	count(surroundings.usable) > 0
	shm.read_only == true
}

findings contains finding(message, grade, remedies, evidence) if {
	count(surroundings.usable) > 0
	not shm.read_only
	shm.free_bytes < limits.shm_recommended_bytes
	evidence := [
		{"fact": "container.shm.size_bytes", "value": shm.size_bytes, "source": "statfs /dev/shm"},
		{"fact": "container.shm.free_bytes", "value": shm.free_bytes, "source": "statfs /dev/shm"},
	]
}

finding(message_, grade_, remedies_, evidence) := {
	"subject": "/dev/shm",
	"message": message_,
	"severity": grade_,
	"remedies": remedies_,
	"evidence": evidence,
}

# enlarge is how /dev/shm gets its size: from the container's runtime, or, where
# it is the machine's own, by mounting it anew. NCCL without shared memory takes
# the network, which is slower by far; that is left to where peer access serves
# every pair.
enlarge := array.concat(["increase-shm", "share-ipc"], [r | some r in ["nccl-shm-disable"]; surroundings.all_nvlinked]) if {
	surroundings.isolated
} else := ["remount-shm"]

# Where the size is right, what ended jobs left is in the way.
remedies := ["clear-shm"] if {
	shm.size_bytes >= limits.shm_recommended_bytes
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

# One GPU needs no NCCL; data loaders alone are worth knowing of. GPUs that
# NVLink joins exchange nothing through shared memory, but data loaders do.
grade := "low" if {
	count(surroundings.usable) == 1
} else := "medium" if {
	surroundings.all_nvlinked
	shm.free_bytes < need
} else := "low" if {
	surroundings.all_nvlinked
} else := "high" if {
	shm.free_bytes < need
} else := "medium" if {
	# A second communicator (tensor and data parallel, say) takes as much again.
	shm.free_bytes < need * 2
} else := "low"

# A file system that is large and full holds what is left of earlier jobs.
message := sprintf(
	"/dev/shm has %s, of which %s are free: files of earlier jobs (nccl-*, torch_*, sem.*) that nobody uses can be deleted. %s",
	[facts.bytes(shm.size_bytes), facts.bytes(shm.free_bytes), consequence],
) if {
	shm.size_bytes >= limits.shm_recommended_bytes
} else := sprintf("/dev/shm has %s (the default of container runtimes), %s free. %s", [
	facts.bytes(shm.size_bytes),
	facts.bytes(shm.free_bytes), consequence,
]) if {
	shm.size_bytes == limits.shm_default_bytes
} else := sprintf("/dev/shm has %s, %s free. %s", [
	facts.bytes(shm.size_bytes),
	facts.bytes(shm.free_bytes), consequence,
])

consequence := "With one GPU only data loaders with several workers need it" if {
	count(surroundings.usable) == 1
} else := "NVLink joins all GPUs here, so that only data loaders with several workers need it, and NCCL between machines; 1 GiB is the least that is advised" if {
	surroundings.all_nvlinked
} else := sprintf(
	"One NCCL communicator over %d GPUs takes about %s when traffic goes through shared memory, and data loaders need more; 1 GiB is the least that is advised",
	[count(surroundings.usable), facts.bytes(round(need / surroundings.mib) * surroundings.mib)],
)

# stated are the messages by which programs say that /dev/shm is full or too
# small.
stated := {m |
	some m in logs.messages({
		"dataloader-bus-error", "shm-no-space", "shm-object-failed", "ray-shm-refused", "ucx-shm-no-space",
		"mpi-shm-no-space", "triton-shm-no-space", "paddle-shm-no-space", "nccl-shm-no-space",
	})
}

# warned are Ray's: it goes on elsewhere, what else needs /dev/shm does not.
warned := {m |
	some m in logs.by_id["ray-shm-too-small"]
	to_number(m.fields.bytes) < limits.shm_recommended_bytes
}

# unexplained are NCCL's that name the file and not the error, as releases before
# 2.17 do, and as the last error that PyTorch repeats does.
unexplained := {m |
	some m in logs.messages({"nccl-shm-create-failed", "nccl-shm-extend-failed"})
	not m.fields.error
	not m.fields.text
}

# died are a bus error: what a process gets that writes where a file in /dev/shm
# has no space behind it.
died := logs.messages({"process-bus-error", "bus-error"})

in_nccl := logs.messages({"bus-error-in-nccl"})

full := logs.messages({"no-space-left"})

# small is true where the place itself is known to be small.
small if count(launches.small_shm) > 0

small if shm.size_bytes < limits.shm_recommended_bytes

small if logs.said("ngc-shm-default")

findings contains said(stated, "critical", "confirmed", "/dev/shm has too little space, as the program says itself") if count(stated) > 0

findings contains said(warned, "high", "confirmed", sprintf(
	"/dev/shm has only %s, as Ray says: NCCL and the workers of data loaders need it, too",
	[facts.bytes(to_number(logs.first(warned).fields.bytes))],
)) if {
	count(stated) == 0
	count(warned) > 0
}

findings contains said(unexplained, "critical", "likely", "NCCL could not make or enlarge its file in /dev/shm, for which too little space is the usual reason") if {
	count(stated) == 0
	count(unexplained) > 0
}

findings contains said(died, "critical", "likely", sprintf("A process died of a bus error%s: that is how writing to a file in /dev/shm ends when there is no space for it", [implied])) if {
	unsaid
	count(died) > 0
	implied != ""
}

findings contains said(full, "critical", "likely", sprintf("«No space left on device»%s: of the devices meant, /dev/shm is the likely one", [implied_small])) if {
	unsaid
	count(died) == 0
	count(full) > 0
	small
}

# wordless are NCCL's word for a call that failed, where nothing says which: the
# log was not written, and shared memory is what lacks in containers.
wordless := {m |
	some m in logs.by_id["nccl-unhandled-system-error"]
	count(told) == 0
}

told := {m |
	some m in logs.complaints
	m.program in {"nccl", "libibverbs", "linux", "pytorch"}
	not m.id in {"nccl-unhandled-system-error", "nccl-return-code", "nccl-failed", "torch-nccl-failed"}
}

findings contains said(wordless, "high", "likely", sprintf("NCCL failed in a call of the system, of which nothing more is told, and /dev/shm is full (%s free)", [facts.bytes(shm.free_bytes)])) if {
	unsaid
	count(wordless) > 0
	shm.free_bytes < limits.shm_default_bytes
}

findings contains said(wordless, "high", "possible", sprintf("NCCL failed in a call of the system, of which nothing more is told%s: shared memory is what containers lack mostly", [implied_small])) if {
	unsaid
	count(wordless) > 0
	small
	not shm_full
}

shm_full if shm.free_bytes < limits.shm_default_bytes

# By itself a bus error, or a full device, leaves other reasons open.
findings contains said(died, "medium", "possible", "A process died of a bus error. Too little space in /dev/shm is the most frequent reason where several GPUs are used") if {
	unsaid
	count(died) > 0
	implied == ""
}

findings contains said(full, "low", "possible", "«No space left on device» without a path: it may be /dev/shm as well as a disk") if {
	unsaid
	count(died) == 0
	count(full) > 0
	not small
}

# A container with the default, for a job of several GPUs, and nothing that
# says how it ended.
findings contains {
	"subject": "/dev/shm",
	"message": sprintf("%s %s, and the job is for several GPUs: what goes through shared memory, and data loaders with several workers, fail there", [
		launches.title(l),
		launches.shm_words(l),
	]),
	"severity": launch_severity,
	"confidence": "possible",
	"remedies": ["increase-shm", "share-ipc"],
	"evidence": [launches.evidence(l)],
} if {
	unsaid
	count(wordless) == 0
	count(died) == 0
	count(full) == 0
	launches.several
	some l in launches.small_shm
	not roomy
}

# roomy is true where the size is known to be enough.
roomy if shm.size_bytes >= limits.shm_recommended_bytes

default launch_severity := "low"

launch_severity := "medium" if {
	logs.failed
	not other_cause
}

# other_cause is true where a program states a cause of its own.
other_cause if {
	some m in input.logs.messages
	m.role == "cause"
}

unsaid if {
	count(stated) == 0
	count(warned) == 0
	count(unexplained) == 0
}

default implied := ""

implied := implied_small if {
	small
} else := " inside of NCCL" if {
	count(in_nccl) > 0
} else := ", and no space was left on a device" if {
	count(full) > 0
}

implied_small := sprintf(", and /dev/shm has %s", [facts.bytes(shm.size_bytes)]) if {
	shm.size_bytes < limits.shm_recommended_bytes
} else := sprintf(", and %s %s", [launches.title(first_small), launches.shm_words(first_small)]) if {
	first_small
} else := ", and NVIDIA's image found the default of 64 MB there as it started" if {
	logs.said("ngc-shm-default")
}

first_small := sort(launches.small_shm)[0]

# said is a finding from messages, with the launches that bear them out.
said(set_, severity_, confidence_, message_) := {
	"subject": "/dev/shm",
	"message": sprintf("%s: %s", [logs.who(first), message_]),
	"severity": severity_,
	"confidence": confidence_,
	"remedies": told_remedies,
	"evidence": array.concat(logs.all_evidence(set_), array.concat(
		logs.all_evidence(in_nccl),
		[launches.evidence(l) | some l in launches.small_shm],
	)),
	"order": first.order,
} if {
	first := logs.first(set_)
}

# A machine's own /dev/shm is mounted anew; what a large one lacks is what ended
# jobs left there.
told_remedies := ["remount-shm", "clear-shm", "increase-shm"] if {
	input.container.inside == false
	count(launches.containers) == 0
} else := ["clear-shm", "increase-shm", "share-ipc"] if {
	roomy
} else := ["increase-shm", "share-ipc", "clear-shm"]

# The size from a text, where no text tells of GPUs.
findings contains {
	"subject": "/dev/shm",
	"message": sprintf("/dev/shm has %s, and the job is for several GPUs. NVIDIA's guide asks for 1 GiB at least", [facts.bytes(shm.size_bytes)]),
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["increase-shm", "share-ipc"],
	"evidence": [{"fact": "container.shm.size_bytes", "value": shm.size_bytes, "source": "/dev/shm"}],
} if {
	unsaid
	count(died) == 0
	shm.size_bytes < limits.shm_recommended_bytes
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

not_applicable contains "no GPU is visible here" if no_gpu

no_gpu if count(surroundings.usable) == 0
