# METADATA
# title: Limits and devices in files that describe a job
# description: >-
#   Shared memory, locked memory and RDMA devices that a file grants or
#   forgets. Each element of shm, memlock and devices is a finding of rule
#   shm-too-small, memlock-limit or container-caps, without the fields that all
#   of them share.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.launch_limits

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launch_files as lf
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.surroundings
import data.tables.limits

# shm are containers with several GPUs whose /dev/shm is of the default size or too small.
shm contains {
	"message": sprintf("%s %s and uses several GPUs: NCCL's shared memory transfers, and data loaders with several workers, fail there. The recommended minimum is 1 GiB", [lf.opening(l), launches.shm_words(l)]),
	"severity": shm_severity,
	"confidence": "likely",
	"remedies": ["increase-shm", "share-ipc"],
	"evidence": [lf.fact(l, "shm_bytes", object.get(l, "shm_bytes", "the default of 64 MiB"))],
} if {
	some l in lf.contained
	lf.several(l)
	l in launches.small_shm
}

# GPUs that NVLink connects exchange nothing through it.
default shm_severity := "high"

shm_severity := "medium" if surroundings.all_nvlinked

# A volume of the node's disk in its place.
shm contains {
	"message": sprintf("%s mounts an emptyDir without medium: Memory at /dev/shm, so shared memory is a file on the disk of the node", [lf.opening(l)]),
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["increase-shm"],
	"evidence": [lf.fact(l, "mounts", "emptyDir:/dev/shm")],
} if {
	some l in lf.contained
	lf.several(l)
	"emptyDir:/dev/shm" in l.mounts
}

# bounded is true of a container in which locked memory is limited, as far as its
# description says.
bounded(l) if {
	launches.shows(l, {"privileged", "cap_add", "memlock_bytes"})
	not l.privileged
	not "IPC_LOCK" in object.get(l, "cap_add", [])
	not "ALL" in object.get(l, "cap_add", [])
	not l.memlock_bytes
}

# memlock are containers with RDMA devices whose locked memory is limited.
memlock contains {
	"message": sprintf("%s gets RDMA devices (%s) and %s: the NIC cannot register NCCL's buffers, and the job fails with \"Cannot allocate memory\" or falls back to TCP", [lf.opening(l), facts.list({r.value | some r in lf.rdma[l]}), lacks[l.kind]]),
	"severity": "high",
	"confidence": "likely",
	"remedies": memlock_remedies(l),
	"evidence": lf.rdma_facts(l),
} if {
	some l in lf.contained
	count(lf.rdma[l]) > 0
	bounded(l)
}

lacks := {
	"kubernetes": "not the capability IPC_LOCK, so the container runtime's limit on locked memory applies (64 KiB or 8 MiB by default)",
	"docker-run": "neither --ulimit memlock=-1 nor --cap-add IPC_LOCK, so the engine's limit on locked memory applies (64 KiB or 8 MiB by default)",
	"compose": "neither ulimits.memlock: -1 nor cap_add: [IPC_LOCK], so the engine's limit on locked memory applies (64 KiB or 8 MiB by default)",
	"docker-inspect": "neither an unlimited memlock nor the capability IPC_LOCK, so the engine's limit on locked memory applies (64 KiB or 8 MiB by default)",
}

memlock_remedies(l) := ["add-ipc-lock", "raise-memlock"] if {
	l.kind == "kubernetes"
} else := ["raise-memlock", "add-ipc-lock"]

# A capability that a container adds is not in force for a user other than root: the
# runtime puts it into the bounding set only (kubernetes issue 56374).
memlock contains {
	"message": sprintf("%s adds IPC_LOCK but runs as user %s: an added capability takes effect only for root, so the limit on locked memory still applies. Run as root, or raise the limit of the container runtime", [lf.opening(l), l.user]),
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["raise-memlock", "add-ipc-lock"],
	"evidence": array.concat([lf.fact(l, "user", l.user)], lf.rdma_facts(l)),
} if {
	some l in lf.contained
	count(lf.rdma[l]) > 0
	"IPC_LOCK" in l.cap_add
	launches.shows(l, {"privileged", "memlock_bytes"})
	not l.privileged
	not l.memlock_bytes == -1
	regex.match(`^[1-9]\d*(:|$)`, l.user)
}

# A limit that the file itself sets.
memlock contains {
	"message": sprintf("%s limits locked memory to %s, and %s: memory registration with the NIC fails", [lf.opening(l), facts.bytes(l.memlock_bytes), why]),
	"severity": "high",
	"confidence": "likely",
	"remedies": ["raise-memlock"],
	"evidence": [lf.fact(l, "memlock_bytes", l.memlock_bytes)],
} if {
	some l in lf.contained
	low(l)
	launches.shows(l, {"privileged", "cap_add"})
	not l.privileged
	not "IPC_LOCK" in object.get(l, "cap_add", [])
	why := uses_rdma(l)
}

low(l) if {
	l.memlock_bytes >= 0
	l.memlock_bytes < limits.memlock_too_low_bytes
}

uses_rdma(l) := sprintf("gets RDMA devices (%s)", [facts.list({r.value | some r in lf.rdma[l]})]) if {
	count(lf.rdma[l]) > 0
} else := sprintf("runs on %d nodes", [l.nodes]) if {
	lf.multi_node(l)
} else := "the target has RDMA NICs" if {
	lf.target_rdma
	lf.several(l)
}

# A script's own limit holds for what it starts. On one node without RDMA it does no harm
# to communication.
memlock contains {
	"message": sprintf("The script limits locked memory to %s (ulimit -l)%s", [facts.bytes(l.memlock_bytes), script_effect(l)]),
	"severity": script_severity(l),
	"confidence": "likely",
	"remedies": ["raise-memlock-limits"],
	"evidence": [lf.fact(l, "memlock_bytes", l.memlock_bytes)],
} if {
	some l in lf.files
	l.kind == "shell"
	low(l)
}

default script_severity(_) := "low"

script_severity(l) := "high" if remote(l)

default script_effect(_) := ": RDMA between nodes does not work with it"

script_effect(l) := ", and its job uses several nodes: memory registration with RDMA NICs fails in every program that it starts" if remote(l)

remote(l) if {
	some other in by_source[l.source]
	lf.multi_node(other)
}

remote(_) if lf.target_rdma

by_source[l.source] contains l if some l in lf.files

# granting are the parts that pass RDMA devices.
granting := {"privileged", "devices", "mounts", "resources"}

# given is true of a container that RDMA devices reach.
given(l) if l.privileged

given(l) if count(lf.rdma[l]) > 0

given(l) if {
	some name, _ in l.resources
	regex.match(`efa|claims`, name)
}

# devices are containers without the RDMA devices that their variables call for.
devices contains {
	"message": sprintf("%s sets %s=%s but gets no RDMA device: %s", [lf.opening(l), name, s.value, consequence]),
	"severity": severity,
	"confidence": "likely",
	"remedies": ["pass-rdma-devices", "add-ipc-lock"],
	"evidence": [lf.setting_fact(l, name)],
} if {
	some l in lf.contained
	launches.shows(l, granting)
	not given(l)
	some name, s in lf.settings(l)
	[severity, consequence] := needs_rdma(name, s.value)
}

needs_rdma("NCCL_NET", value) := ["high", "NCCL then ends instead of using TCP"] if upper(value) == "IB"

needs_rdma("NCCL_IB_HCA", value) := ["medium", "NCCL finds none of these NICs and uses TCP"] if {
	value != ""
}

# Several nodes, RDMA on each, and no way to it.
devices contains {
	"message": sprintf("%s runs on %d nodes and gets no RDMA device, but the target has RDMA NICs: traffic between nodes uses TCP", [lf.opening(l), l.nodes]),
	"severity": "medium",
	"confidence": "likely",
	"remedies": ["pass-rdma-devices", "add-ipc-lock"],
	"evidence": [lf.fact(l, "devices", object.get(l, "devices", []))],
} if {
	some l in lf.contained
	lf.target_rdma
	lf.multi_node(l)
	requests_gpus(l)
	launches.shows(l, granting)
	not given(l)
}

requests_gpus(l) if l.gpus > 0

requests_gpus(l) if l.gpus == -1

# Enroot leaves /dev empty but for what its hooks add; the hook for RDMA devices asks for
# a variable (conf/hooks/99-mellanox.sh).
devices contains {
	"message": sprintf("ENROOT_RESTRICT_DEV=%s keeps the host's /dev out of containers: without MELLANOX_VISIBLE_DEVICES=all, RDMA devices are missing there", [value]),
	"severity": "low",
	"confidence": "possible",
	"remedies": ["pass-rdma-devices"],
	"evidence": [lf.fact(l, "variables[ENROOT_RESTRICT_DEV]", value)],
} if {
	some l in lf.files
	l.kind == "enroot-conf"
	value := l.variables.ENROOT_RESTRICT_DEV
	lower(value) in {"y", "yes", "1", "true", "t", "on"}
}

# memlock_open are the parts that decide about locked memory whose value the files do not show.
memlock_open := lf.undecided({
	"privileged", "devices", "mounts", "resources", "cap_add", "memlock_bytes", "user", "nodes", "gpus", "processes",
	"tensor_parallel",
})
