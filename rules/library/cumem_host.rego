# METADATA
# title: NCCL cannot share host memory through cuMem
# description: >-
#   Since 2.24, NCCL allocates the host memory that its ranks share with the CUDA driver (cuMem) instead of a file in
#   /dev/shm. This needs NUMA calls, which containers block without the capability SYS_NICE, and on GPUs without peer
#   access some drivers refuse to map it. Up to 2.26.2, NCCL then fails. Since 2.26.3, each rank tests it first and falls
#   back to /dev/shm, unless ranks get different results.
# related_resources:
#   - ref: https://github.com/NVIDIA/nccl/issues/1838
#     description: Error 217 of shm.cc on GPUs without peer access
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
#   grades:
#     mapping:
#       remedies: [nccl-cumem-host-disable, upgrade-driver, upgrade-nccl]
#       text: >-
#         NCCL shares host memory through cuMem, and CUDA denies a GPU access to it ({line}). Peer access between GPUs is
#         not the problem, because this path does not use it. With NCCL_CUMEM_HOST_ENABLE=0, NCCL uses /dev/shm
#     allocation: >-
#       NCCL {version} allocates host memory through cuMem without a test whether it works, and an allocation failed
#       ({line}); containers without SYS_NICE block the NUMA calls that it needs
package gpudoctor.rules.cumem_host

import data.gpudoctor.lib.library_versions
import data.gpudoctor.lib.logs

# failed are failures of CUDA in a file of NCCL. In the transport by shared memory, older versions cannot have them: a file
# in /dev/shm needs no access of a GPU to another's memory. An allocation does not say whether host memory was asked for.
failed(file, id) := {m |
	some m in logs.messages({
		id, "nccl-cuda-invalid-argument", "nccl-cuda-not-permitted", "nccl-cuda-not-supported", "nccl-cuda-os-call-failed",
		"nccl-cuda-invalid-device",
	})
	endswith(m.fields.file, file)
}

too_old if library_versions.in_range({"fixed": "2.23.4"}, library_versions.used.nccl[_].version)

findings contains {
	"grade": "mapping",
	"subject": "nccl",
	"about": {"line": m.text},
	"confidence": {true: "confirmed", false: "likely"}[m.id == "nccl-cuda-peer-access-unsupported"],
	"messages": {m},
} if {
	m := logs.first(failed("shm.cc", "nccl-cuda-peer-access-unsupported"))
	not library_versions.cumem_host_off
	not too_old
}

findings contains {
	"grade": "allocation",
	"subject": "nccl",
	"about": {"version": use.version, "line": m.text},
	"messages": {m},
	"evidence": [use.evidence],
} if {
	m := logs.first(failed("alloc.h", "nccl-cuda-out-of-memory"))
	not library_versions.cumem_host_off
	some use in library_versions.cumem_untested
}

not_applicable contains "no NCCL is installed here" if library_versions.no_nccl
not_applicable contains "NCCL_CUMEM_HOST_ENABLE or NCCL_CUMEM_ENABLE disables it" if library_versions.cumem_host_off
