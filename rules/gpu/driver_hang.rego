# METADATA
# title: The GPU driver hangs, crashes or fails to start
# description: >-
#   The driver did not initialize for the probe, or the management library did not respond in time. Every program that
#   uses the GPUs will have the same problem. The usual cause is a faulty GPU, or a driver that waits for one.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/xid-errors/index.html
#     description: What the kernel log reports about a GPU that no longer responds.
#   - ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
#     description: The error codes of the CUDA driver.
# custom:
#   severity: critical
#   confidence: confirmed
#   symptom: true
#   needs: ["transfers.devices[].outcome"]
#   explains: [transfer-failed, collective-failed]
#   remedies: [reset-gpu, reboot, reboot-or-reload-driver, upgrade-driver]
#   since: "0.1"
#   grades:
#     hang:
#       remedies: [reset-gpu, reboot-or-reload-driver, upgrade-driver]
#       text: "The {api} did not return from {stage|its startup}[ for GPU {gpu}] within the probe's deadline"
#     stuck:
#       remedies: [reboot, upgrade-driver]
#       text: "The {api} did not return from {stage|its startup}[ for GPU {gpu}], and hangs in the kernel: only a reboot clears it"
#     crash:
#       remedies: [reboot-or-reload-driver, upgrade-driver]
#       text: "The {api} crashed the probe with {signal} in {stage|its startup}[ for GPU {gpu}]"
#     failed:
#       severity: high
#       confidence: likely
#       remedies: [reboot-or-reload-driver, reset-gpu, upgrade-driver]
#       text: "The {api} failed in {stage|its startup} with {error_name} ({error_code}), which does not identify a cause"
#     silent:
#       severity: high
#       confidence: likely
#       text: "The management library (NVML) did not answer ({how}). Tools such as nvidia-smi will fail the same way"
package gpudoctor.rules.driver_hang

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.transfers

# ended is how the probe ended. A transfer that hung is named as such, by its pair, and a GPU that could not be made
# ready by gpu-fault or transfer-failed.
ended := {true: "stuck", false: "hang"}[stuck] if {
	input.transfers.outcome == "hang"
	not by_transfer
} else := "crash" if {
	input.transfers.outcome == "error"
	input.transfers.signal != ""
} else := "failed" if {
	input.transfers.outcome == "error"
	code := input.transfers.error_code
	code > 0
	not code in driver_errors.judged
}

by_transfer if {
	some t in facts.peer_transfers
	t.outcome == "hang"
	t.test == input.transfers.stage
}

# What is stuck in the kernel keeps its GPU from being reset, and so does a driver that hangs NVML as well.
default stuck := false

stuck if input.transfers.left == true
stuck if input.gpus.nvml == "hang"

findings contains {
	"grade": ended,
	"subject": array.concat(named, ["host"])[0],
	"affects": named,
	"about": object.union(
		{"api": object.get({"hip": "HIP runtime"}, object.get(input.transfers, "api", ""), "CUDA driver")},
		object.filter(input.transfers, ["stage", "gpu", "signal", "error_name", "error_code"]),
	),
	"evidence": transfers.report_evidence(["outcome", "stage", "gpu", "reason", "error_code", "error_name", "call", "signal", "left"]),
	"params": {"gpus": sort({address | some address in facts.gpus; count(named) == 0})},
}

# named is the GPU for which the step was under way, where it does one at a time.
named := [gpu | gpu := input.transfers.gpu; gpu != ""]

# The management library speaks to the same kernel driver.
findings contains {
	"grade": "silent",
	"subject": "host",
	"about": {"how": input.gpus.nvml},
	"evidence": [{"fact": "gpus.nvml", "value": input.gpus.nvml, "source": "libnvidia-ml.so.1"}],
	"remedies": [{"hang": "reboot", "crashed": "reboot-or-reload-driver"}[input.gpus.nvml], "upgrade-driver"],
}

not_applicable contains "no GPU" if count(facts.gpus) == 0
