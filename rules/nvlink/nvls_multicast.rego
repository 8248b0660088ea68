# METADATA
# title: Multicast over the NVSwitches (NVLS) fails
# description: >-
#   NCCL uses multicast objects for reductions and copies in the NVSwitches (NVLink SHARP). The driver offers them, but
#   creating or binding one fails, usually because the fabric manager was stopped, started or updated while GPUs were in
#   use, and the GPUs have not been reset since. NCCL then fails to start with "unhandled cuda error".
# related_resources:
#   - ref: https://github.com/NVIDIA/nccl-tests/issues/276
#     description: 'NVIDIA on CUDA failures in nvls.cc: the fabric manager was restarted without a GPU reset'
#   - ref: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
#     description: GPUs must be reset after the fabric manager was restarted
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-nvls-enable
#     description: NCCL does not use it if NCCL_NVLS_ENABLE is 0
# custom:
#   severity: critical
#   confidence: confirmed
#   texts_only: true
#   needs: [job-told]
#   first_of: [failed, exhausted, stopped]
#   remedies: [reset-all-gpus, nccl-nvls-disable, reboot-or-reload-driver, start-fabric-manager, match-fabric-manager, downgrade-nccl, reset-gpu]
#   explains: [collective-hang, failure-area]
#   since: "0.2"
#   grades:
#     stopped:
#       severity: high
#       confidence: possible
#       remedies: [nccl-nvls-disable, reset-all-gpus, start-fabric-manager]
#       text: >-
#         NCCL's log stops where memory is bound to a multicast object of the NVSwitches ({at}): no rank gets past it. The
#         fabric manager may hang, be of another version than the driver, or have been restarted without a GPU reset;
#         NCCL_NVLS_ENABLE=0 lets the job run; {loss}
#     failed: >-
#       A multicast object of the NVSwitches could not be created or bound, although the driver supports multicast.
#       According to NVIDIA, the usual cause is a fabric manager that was restarted without a GPU reset. Until the GPUs are
#       reset, NCCL_NVLS_ENABLE=0 lets the job run; {loss}.
package gpudoctor.rules.nvls_multicast

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.tables.variables

# failures are CUDA's errors in NCCL's own file for NVLS (transport/nvls.cc), NCCL's message for it since 2.27, and the
# calls with which others do the same. Out of memory has rows of its own, and 802 is a fabric that never was ready.
failures contains m if {
	some m in logs.complaints
	endswith(m.fields.file, "nvls.cc")
	not m.id in {"nccl-cuda-out-of-memory", "nccl-cuda-system-not-ready"}
}

failures contains m if {
	some m in logs.messages({"nccl-nvls-bind-failed", "cuda-multicast-failed", "fm-multicast-team"})
	not m.fields.error == "802"
}

findings contains {
	"id": "failed",
	"subject": "host",
	"about": {"loss": variables.losses.nvls},
	"messages": failures,
	"remedies": remedies,
} if count(failures) > 0

# The ranks of a communicator began and none came to the end, and the last step that NCCL tells is this one.
findings contains {
	"id": "stopped",
	"grade": "stopped",
	"subject": "host",
	"about": {"at": logs.at(binding), "loss": variables.losses.nvls},
	"messages": {binding},
} if {
	binding := logs.first(logs.by_id["nccl-nvls-binding"])
	not logs.said("nccl-nvls-connected")
	not logs.failed
	some c in input.logs.communicators
	c.source == binding.source
	c.started > 1
	c.completed == 0
}

# Where fewer GPUs are visible than a board with NVSwitches has (8), others may use the machine too, and its users cannot
# reset the fabric. Otherwise a reset fixes it at no later cost.
remedies := ["nccl-nvls-disable", "reset-all-gpus", "reboot-or-reload-driver"] if {
	count(facts.gpus) in numbers.range(2, 7)
	some p in facts.gpu_pairs
	p.nvlinks > 0
} else := ["reset-all-gpus", "nccl-nvls-disable", "reboot-or-reload-driver", "match-fabric-manager"]
