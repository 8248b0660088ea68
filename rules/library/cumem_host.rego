# METADATA
# title: NCCL cannot share host memory through cuMem
# description: >-
#   Since 2.24, NCCL allocates the host memory that its ranks share with the CUDA driver (cuMem) instead of a file in
#   /dev/shm, if the driver supports CUDA 12.6 or newer. This needs NUMA calls, which containers block without the
#   capability SYS_NICE, and on GPUs without peer access some drivers refuse to map it. Up to 2.26.2, NCCL then fails.
#   Since 2.26.3, each rank tests it first and falls back to /dev/shm, unless ranks get different results.
# related_resources:
#   - ref: https://github.com/NVIDIA/nccl/issues/1838
#     description: Error 217 of shm.cc on GPUs without peer access
#   - ref: https://github.com/NVIDIA/nccl/issues/2190
#     description: Ranks that get different results, and an invalid file name
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-cumem-host-enable
#     description: NCCL_CUMEM_HOST_ENABLE
#   - ref: https://github.com/NVIDIA/nccl/releases/tag/v2.26.3-1
#     description: The version since which NCCL tests it first
# custom:
#   severity: critical
#   confidence: likely
#   needs: [job-told-if-given, [texts-given, container.get_mempolicy], [texts-given, libraries.files]]
#   remedies: [nccl-cumem-host-disable, add-sys-nice, upgrade-nccl, upgrade-driver]
#   explains: [p2p-unsupported-gpu]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.cumem_host

import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs

# mapping are failures of CUDA in the transport by shared memory that older versions of NCCL cannot have: a file in
# /dev/shm needs no access of a GPU to another's memory.
mapping := of_file("shm.cc", {"nccl-cuda-peer-access-unsupported"})

# refused are failures to allocate, which do not say whether host memory was asked for.
refused := of_file("alloc.h", {"nccl-cuda-out-of-memory"})

of_file(name, more) := {m |
	some m in logs.messages(more | {
		"nccl-cuda-invalid-argument", "nccl-cuda-not-permitted", "nccl-cuda-not-supported", "nccl-cuda-os-call-failed", "nccl-cuda-invalid-device",
	})
	endswith(m.fields.file, name)
}

too_old if {
	some use in library_versions.used.nccl
	not library_versions.in_range({"since": "2.23.4"}, use.version)
}

findings contains {
	"subject": "nccl",
	"message": sprintf("NCCL shares host memory through cuMem, and CUDA denies a GPU access to it (%s). Peer access between GPUs is not the problem, because this path does not use it. With NCCL_CUMEM_HOST_ENABLE=0, NCCL uses /dev/shm", [m.text]),
	"confidence": {true: "confirmed", false: "likely"}[m.id == "nccl-cuda-peer-access-unsupported"],
	"messages": {m},
	"remedies": ["nccl-cumem-host-disable", "upgrade-driver", "upgrade-nccl"],
} if {
	m := logs.first(mapping)
	not library_versions.cumem_host_off
	not too_old
}

findings contains {
	"subject": "nccl",
	"message": sprintf("NCCL %s allocates host memory through cuMem without a test whether it works, and an allocation failed (%s); containers without SYS_NICE block the NUMA calls that it needs", [use.version, m.text]),
	"messages": {m},
	"evidence": [use.evidence],
	"remedies": ["nccl-cumem-host-disable", "add-sys-nice", "upgrade-nccl"],
} if {
	m := logs.first(refused)
	not library_versions.cumem_host_off
	some use in library_versions.cumem_untested
}

not_applicable contains "no NCCL is installed here" if library_versions.no_nccl
not_applicable contains "NCCL_CUMEM_HOST_ENABLE or NCCL_CUMEM_ENABLE disables it" if library_versions.cumem_host_off
