# METADATA
# title: Blocked NUMA calls
# description: >-
#   Containers block these calls unless they have the capability SYS_NICE, and
#   NCCL 2.24 to 2.26.3 uses them to allocate host memory. Each element of found
#   is a finding of rule container-caps, without the fields that all of them
#   share.
package gpudoctor.lib.numa_calls

import data.gpudoctor.lib.attempts
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peer_access
import data.gpudoctor.lib.surroundings

found contains {
	"message": sprintf("NUMA calls are blocked here (%s), and NCCL %s allocates host memory with them: transport through host memory fails (2.26.5 and newer fall back to /dev/shm)", [blocked, facts.list({l.version | some l in surroundings.nccl})]),
	"severity": severity,
	"evidence": array.concat(evidence, nccl_evidence),
	"remedies": array.concat(allow, ["nccl-cumem-host-disable", "upgrade-nccl"]),
} if {
	forbidden
	count(surroundings.usable) > 1
	affected_nccl
}

# Elsewhere only the placement of memory suffers, which matters where there is more
# than one node to place it on. If the calls were tried one by one, it is told anywhere.
found contains {
	"message": sprintf("NUMA calls are blocked here (%s): memory cannot be bound to the node of its GPU, and NCCL keeps its host buffers in /dev/shm", [blocked]),
	"severity": "info",
	"confidence": confidence,
	"evidence": evidence,
	"remedies": allow,
} if {
	forbidden
	count(surroundings.usable) > 0
	noticed
	not affects_many
}

noticed if count(tried) > 0

noticed if {
	count(surroundings.usable) > 1
	count(surroundings.cpu_nodes) > 1
}

affects_many if {
	affected_nccl
	count(surroundings.usable) > 1
}

default confidence := "likely"

confidence := "confirmed" if count(tried) > 0

affected_nccl if {
	surroundings.nccl_at_least([2, 24])
	surroundings.nccl_below([2, 26, 5])
}

# Where GPUs reach each other directly host memory is the exception.
default severity := "high"

severity := "medium" if peer_access.proven

severity := "medium" if surroundings.all_nvlinked

forbidden if {
	count(denied) > 0
	not cumem_host_off
}

# denials are what a seccomp filter or a security module answers. ENOSYS is the answer of
# a kernel without NUMA.
denials := {"EPERM", "EACCES", "SIGSYS"}

# denied are the calls that NCCL and CUDA make. Docker's filter allows them with the
# capability SYS_NICE, but never move_pages (moby/profiles, seccomp/default_linux.go).
denied["get_mempolicy"] := input.container.get_mempolicy if input.container.get_mempolicy in denials

denied[name] := tried[name].errno if some name in ["set_mempolicy", "mbind"]

# tried are the calls that place memory and were tried and denied.
tried[name] := a if {
	some name in ["set_mempolicy", "mbind", "move_pages"]
	a := attempts.refused[name]
	a.errno in denials
}

blocked := concat("; ", [sprintf("%s: %s", [facts.list({n | some n, e in denied; e == errno}), errno]) | some errno in sort({e | some e in denied})])

# allow is what lifts the filter of a container's runtime; where the capability is there, another
# filter is in force.
allow := ["other"] if {
	"SYS_NICE" in input.container.capabilities
} else := ["add-sys-nice"]

cumem_host_off if facts.env.NCCL_CUMEM_HOST_ENABLE == "0"

cumem_host_off if facts.env.NCCL_CUMEM_ENABLE == "0"

evidence := array.concat(
	array.concat(
		[{"fact": "container.get_mempolicy", "value": input.container.get_mempolicy, "source": "get_mempolicy(2)"} | denied.get_mempolicy],
		[attempts.evidence(name) | some name, _ in tried],
	),
	[{"fact": "container.seccomp", "value": object.get(input.container, "seccomp", ""), "source": "/proc/self/status"}],
)

nccl_evidence := [{
	"fact": sprintf("libraries.files[%s].version", [l.path]),
	"value": l.version,
	"source": l.path,
} |
	some l in surroundings.nccl
]
