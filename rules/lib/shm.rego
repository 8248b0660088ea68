# METADATA
# title: Messages about /dev/shm
# description: >-
#   Log messages that /dev/shm is too small, or that it may be, and what is
#   known about its size. Each element of told is a finding of rule
#   shm-too-small, without the fields that all of them share.
package gpudoctor.lib.shm

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.logs
import data.tables.limits

place := input.container.shm

# refusals are what the errors mean with which a file in it was refused (open(2),
# fallocate(2), mmap(2)).
refusals := {
	"EACCES": "this user, or a security module, may not write there",
	"EPERM": "a seccomp filter or a security module forbids it",
	"SIGSYS": "shared memory fails",
	"EROFS": "it is read-only",
	"ENOSPC": "the number of its files, or its space, is used up",
	"EDQUOT": "the quota of this user is used up",
	"ENOMEM": "memory ran out, or the memory limit of the container or job",
	"EMFILE": "the limit on open files is reached",
	"ENFILE": "the machine's limit on open files is reached",
	"EFBIG": "the limit on the size of a file is lower (ulimit -f)",
	"ENOTSUP": "its file system cannot reserve space for a file, which NCCL needs",
	"ENOTDIR": "it is no folder",
	"ENOENT": "it does not exist",
}

# exhausted is true where less is free than the default of container runtimes.
exhausted if place.free_bytes < limits.shm_default_bytes

# small is true where the place itself is known to be small, and roomy where it is
# known to be large enough.
small if count(launches.small_shm) > 0

small if place.size_bytes < limits.shm_recommended_bytes

small if logs.said("ngc-shm-default")

roomy if place.size_bytes >= limits.shm_recommended_bytes

# The program says so itself.
told contains {
	"id": "stated",
	"messages": logs.messages({
		"dataloader-bus-error", "shm-no-space", "shm-object-failed", "ray-shm-refused", "ucx-shm-no-space",
		"mpi-shm-no-space", "triton-shm-no-space", "paddle-shm-no-space", "nccl-shm-no-space",
	}),
	"severity": "critical",
	"confidence": "confirmed",
	"text": "/dev/shm has too little space, according to the program",
}

# warned are Ray's messages: Ray continues elsewhere, other users of /dev/shm cannot.
warned := {m |
	some m in logs.by_id["ray-shm-too-small"]
	to_number(m.fields.bytes) < limits.shm_recommended_bytes
}

told contains {
	"id": "hinted",
	"messages": warned,
	"severity": "high",
	"confidence": "confirmed",
	"text": sprintf("/dev/shm has only %s, according to Ray: NCCL and data loader workers also need it", [facts.bytes(to_number(logs.first(warned).fields.bytes))]),
}

# NCCL names the file and not the error, as releases before 2.17 do, and as the last
# error that PyTorch repeats does.
told contains {
	"id": "hinted",
	"messages": {m |
		some m in logs.messages({"nccl-shm-create-failed", "nccl-shm-extend-failed"})
		not m.fields.error
		not m.fields.text
	},
	"severity": "critical",
	"confidence": "likely",
	"text": "NCCL could not create or enlarge its file in /dev/shm; the usual cause is too little space",
}

# A process gets a bus error if it writes where a file in /dev/shm has no space behind it.
# On its own, it leaves other causes open.
died := logs.messages({"process-bus-error", "bus-error"})

in_nccl := logs.messages({"bus-error-in-nccl"})

told contains {
	"id": "implied",
	"messages": died,
	"severity": "critical",
	"confidence": "likely",
	"text": sprintf("A process died of a bus error%s: a write to a file in /dev/shm causes this when there is no space for it", [implied]),
}

told contains {
	"id": "implied",
	"messages": died,
	"severity": "medium",
	"confidence": "possible",
	"text": "A process died of a bus error. With several GPUs, the most frequent cause is too little space in /dev/shm",
} if {
	not implied
}

# wordless are NCCL's messages about a failed call without its name: the log was not
# written, and containers usually lack shared memory.
wordless := {m |
	some m in logs.by_id["nccl-unhandled-system-error"]
	count(explained) == 0
}

explained := {m |
	some m in logs.complaints
	m.program in {"nccl", "libibverbs", "linux", "pytorch"}
	m.id != "nccl-unhandled-system-error"
}

told contains {
	"id": "implied",
	"messages": wordless,
	"severity": "high",
	"confidence": "likely",
	"text": sprintf("NCCL failed in a system call, without details, and /dev/shm is full (%s free)", [facts.bytes(place.free_bytes)]),
} if {
	exhausted
}

told contains {
	"id": "implied",
	"messages": wordless,
	"severity": "high",
	"confidence": "possible",
	"text": sprintf("NCCL failed in a system call, without details%s: in containers, the usual cause is too little shared memory", [implied_small]),
} if {
	not exhausted
}

# A full device without its path.
full := logs.messages({"no-space-left"})

told contains {
	"id": "full",
	"messages": full,
	"severity": "critical",
	"confidence": "likely",
	"text": sprintf("\"No space left on device\"%s: /dev/shm is the likely device", [implied_small]),
}

told contains {
	"id": "full",
	"messages": full,
	"severity": "low",
	"confidence": "possible",
	"text": "\"No space left on device\" without a path: the device may be /dev/shm or a disk",
} if {
	not small
}

# implied is other evidence that /dev/shm is too small, and implied_small how its size is
# known.
implied := implied_small if {
	small
} else := " in NCCL" if {
	count(in_nccl) > 0
} else := ", and no space was left on a device" if {
	count(full) > 0
}

implied_small := sprintf(", and /dev/shm has %s", [facts.bytes(place.size_bytes)]) if {
	place.size_bytes < limits.shm_recommended_bytes
} else := sprintf(", and %s %s", [launches.title(first_small), launches.shm_words(first_small)]) if {
	first_small
} else := ", and NVIDIA's image found the default of 64 MB there at startup" if {
	logs.said("ngc-shm-default")
}

first_small := sort(launches.small_shm)[0]
