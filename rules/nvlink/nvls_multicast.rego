# METADATA
# title: Multicast over the NVSwitches (NVLS) fails
# description: >-
#   NCCL lets NVSwitches add up and copy data (NVLink SHARP) through multicast
#   objects. The driver offers them, yet to create or bind one fails: as a rule
#   because the fabric manager was stopped, started or updated while GPUs were
#   in use, and the GPUs were not reset since. NCCL then does not start, with
#   «unhandled cuda error».
# related_resources:
#   - ref: https://github.com/NVIDIA/nccl-tests/issues/276
#     description: NVIDIA on Cuda failures in nvls.cc, the fabric manager restarted without a reset of the GPUs
#   - ref: https://github.com/NVIDIA/nccl/issues/1488
#     description: The failure reproduced by restarting the fabric manager, and gone after a reboot
#   - ref: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
#     description: GPUs must be reset when the fabric manager was restarted
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-nvls-enable
#     description: NCCL does without when NCCL_NVLS_ENABLE is 0
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: confirmed
#   needs:
#     - job-told
#   remedies: [reset-gpu, nccl-nvls-disable, reboot-or-reload-driver, start-fabric-manager, match-fabric-manager, downgrade-nccl]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.nvls_multicast

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.tables.variables

# failures are CUDA's errors in NCCL's own file for NVLS (transport/nvls.cc),
# NCCL's statement of it since 2.27, and the calls by which others do the same.
# Error 2 there is a want of memory, and 802 a fabric that never was ready.
failures contains m if {
	some m in logs.complaints
	m.role != "consequence"
	regex.match(`nvls\.cc.*(Cuda failure|CUDA error|CUDA failure)|NVLink SHARP \(NVLS\) Multicast memory`, m.text)
	not regex.match(`Proceeding without NVLS|failure 2 |out of memory|failure 802 |error 802 |system not yet initialized`, m.text)
}

failures contains m if {
	some m in logs.messages({"cuda-multicast-failed", "fm-multicast-team"})
	not contains(m.text, "out of memory")
}

# exhausted are NCCL's statements that a multicast object could not be bound for
# want of memory (error 2), where it does not go on without. A partition of the
# fabric has a limited number of multicast groups, and communicators of
# sub-groups use them up (NVIDIA/nccl issue 2077: 128 on NVSwitches of H200).
exhausted contains m if {
	some m in logs.messages({"nccl-nvls-bind-failed"})
	contains(m.text, "out of memory")
	not contains(m.text, "Proceeding without NVLS")
}

findings contains {
	"subject": "host",
	"message": "NVLS could not bind a multicast object for want of memory, and NCCL gave up. The NVSwitches have a limited number of multicast groups, which many communicators use up, or the GPU's memory is full. NCCL_NVLS_ENABLE=0 lets the job run; NCCL before 2.29 went on without NVLS by itself.",
	"evidence": logs.all_evidence(exhausted),
	"order": logs.first(exhausted).order,
	"params": {"gpus": gpus},
	"confidence": "likely",
	"remedies": ["nccl-nvls-disable", "downgrade-nccl", "reset-gpu"],
} if {
	count(exhausted) > 0
	count(failures) == 0
}

manager := input.gpus.driver.fabric_manager

# slice is true where fewer GPUs are seen than a board with NVSwitches has (8):
# a part of a machine that others use too. Who has that cannot reset the fabric.
slice if {
	count(facts.gpus) > 1
	count(facts.gpus) < 8
	some p in facts.gpu_pairs
	p.nvlinks > 0
}

slice if input.container.inside == true

# advised is true where NCCL itself names the way around (since 2.27), or where it
# is another library's call that failed.
advised if {
	some m in failures
	regex.match(`NVLink SHARP \(NVLS\)|uMulticast`, m.text)
}

# A whole machine is mended by a reset, which costs nothing later; to do without
# NVLS costs bandwidth as long as it lasts, and stands in the message.
default remedies := ["reset-gpu", "nccl-nvls-disable", "reboot-or-reload-driver", "match-fabric-manager"]

remedies := ["start-fabric-manager", "reset-gpu", "reboot-or-reload-driver"] if {
	manager.running == false
} else := ["nccl-nvls-disable", "reset-gpu", "reboot-or-reload-driver"] if {
	slice
} else := ["reset-gpu", "nccl-nvls-disable", "reboot-or-reload-driver"] if {
	advised
}

findings contains {
	"subject": "host",
	"message": sprintf("A multicast object of the NVSwitches could not be made or bound, though the driver offers multicast.%s NVIDIA names as the usual reason a fabric manager that was restarted without a reset of the GPUs. Until then NCCL_NVLS_ENABLE=0 lets the job run; %s.", [where, variables.losses.nvls]),
	"evidence": logs.all_evidence(failures),
	"order": logs.first(failures).order,
	"params": {"gpus": gpus},
	"remedies": remedies,
} if {
	count(failures) > 0
}

default gpus := []

gpus := sort(facts.gpus)

default where := ""

where := " The fabric manager does not run." if manager.running == false

missing contains {"fact": "logs", "words": "no log of NCCL was given"} if {
	not logs.given
	not facts.gpus
}

# On a live machine the probe and the fabric's state tell more than a log.
not_applicable contains "no log was given" if {
	not logs.given
	facts.gpus
}
