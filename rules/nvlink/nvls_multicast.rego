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
#   needs:
#     - job-told
#   first_of: [failed, exhausted]
#   remedies: [reset-all-gpus, nccl-nvls-disable, reboot-or-reload-driver, start-fabric-manager, match-fabric-manager, downgrade-nccl, reset-gpu]
#   explains: [collective-hang]
#   since: "0.2"
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

manager := input.gpus.driver.fabric_manager

# slice is true if fewer GPUs are visible than a board with NVSwitches has (8): a part of
# a machine that others also use. Its users cannot reset the fabric.
slice if {
	count(facts.gpus) > 1
	count(facts.gpus) < 8
	some p in facts.gpu_pairs
	p.nvlinks > 0
}

slice if input.container.inside == true

# A reset fixes a whole machine at no later cost; NVLS off costs bandwidth for as long as it lasts, and is part of the
# message. NCCL itself names the way around since 2.27.
remedies := ["start-fabric-manager", "reset-all-gpus", "reboot-or-reload-driver"] if {
	manager.running == false
} else := ["nccl-nvls-disable", "reset-all-gpus", "reboot-or-reload-driver"] if {
	slice
} else := ["reset-all-gpus", "nccl-nvls-disable", "reboot-or-reload-driver"] if {
	count({m.id | some m in failures} & {"nccl-nvls-bind-failed", "cuda-multicast-failed"}) > 0
} else := ["reset-all-gpus", "nccl-nvls-disable", "reboot-or-reload-driver", "match-fabric-manager"]

findings contains {
	"id": "failed",
	"subject": "host",
	"message": sprintf("A multicast object of the NVSwitches could not be created or bound, although the driver supports multicast.%s According to NVIDIA, the usual cause is a fabric manager that was restarted without a GPU reset. Until they are reset, NCCL_NVLS_ENABLE=0 lets the job run; %s.", [where, variables.losses.nvls]),
	"messages": failures,
	"remedies": remedies,
} if count(failures) > 0

default where := ""

where := " The fabric manager is not running." if manager.running == false

# On a live machine, the probe and the fabric's state show more than a log.
not_applicable contains "no log was given" if {
	not logs.given
	facts.gpus
}
