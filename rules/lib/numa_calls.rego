# METADATA
# title: Blocked NUMA calls
# description: >-
#   Containers block these calls unless they have the capability SYS_NICE, and
#   NCCL 2.24 to 2.26.3 uses them to allocate host memory. Each element of found
#   is a finding of rule container-caps, without the fields that all of them
#   share.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.numa_calls

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.peer_access
import data.gpudoctor.lib.surroundings

found contains {
	"message": sprintf("NUMA calls are blocked here (get_mempolicy gives EPERM), and NCCL %s allocates host memory with them: transport through host memory fails (2.26.5 and newer fall back to /dev/shm)", [facts.list({l.version | some l in surroundings.nccl})]),
	"severity": severity,
	"evidence": array.concat(evidence, nccl_evidence),
	"remedies": ["add-sys-nice", "nccl-cumem-host-disable", "upgrade-nccl"],
} if {
	forbidden
	count(surroundings.usable) > 1
	affected_nccl
}

# Elsewhere only the placement of memory suffers, which matters where there is more
# than one node to place it on.
found contains {
	"message": "NUMA calls are blocked here (get_mempolicy gives EPERM): memory cannot be bound to the node of its GPU, and NCCL keeps its host buffers in /dev/shm",
	"severity": "info",
	"evidence": evidence,
	"remedies": ["add-sys-nice"],
} if {
	forbidden
	count(surroundings.usable) > 1
	count(surroundings.cpu_nodes) > 1
	not affected_nccl
}

affected_nccl if {
	surroundings.nccl_at_least([2, 24])
	surroundings.nccl_below([2, 26, 5])
}

# Where GPUs reach each other directly host memory is the exception.
default severity := "high"

severity := "medium" if peer_access.proven

severity := "medium" if surroundings.all_nvlinked

forbidden if {
	input.container.get_mempolicy == "EPERM"
	not cumem_host_off
}

cumem_host_off if facts.env.NCCL_CUMEM_HOST_ENABLE == "0"

cumem_host_off if facts.env.NCCL_CUMEM_ENABLE == "0"

evidence := [
	{"fact": "container.get_mempolicy", "value": "EPERM", "source": "get_mempolicy(2)"},
	{"fact": "container.seccomp", "value": object.get(input.container, "seccomp", ""), "source": "/proc/self/status"},
]

nccl_evidence := [{
	"fact": sprintf("libraries.files[%s].version", [l.path]),
	"value": l.version,
	"source": l.path,
} |
	some l in surroundings.nccl
]
