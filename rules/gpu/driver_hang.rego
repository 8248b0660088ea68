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
#   needs:
#     - transfers.outcome
#   explains: [transfer-failed, collective-failed]
#   remedies: [reset-gpu, reboot, reboot-or-reload-driver, upgrade-driver]
#   since: "0.1"
#   grades:
#     hang: "The {api} did not return from {stage|its startup}[ for GPU {gpu}] within the probe's deadline[{left}]"
#     crash:
#       remedies: [reboot-or-reload-driver, upgrade-driver]
#       text: "The {api} crashed the probe with {signal} in {stage|its startup}[ for GPU {gpu}]"
#     failed:
#       severity: high
#       confidence: likely
#       remedies: [reboot-or-reload-driver, reset-gpu, upgrade-driver]
#       text: "The {api} failed in {stage|its startup} with {error_name} ({error_code}), which does not identify a cause"
#     unready:
#       severity: high
#       confidence: likely
#       remedies: [reset-gpu, reboot-or-reload-driver, upgrade-driver]
#       text: "Programs cannot use GPU {subject}: {call|a call} of the {api} failed with {error_name} ({error_code})"
#     silent:
#       severity: high
#       confidence: likely
#       text: "The management library (NVML) did not answer ({how}). Tools such as nvidia-smi will fail the same way"
package gpudoctor.rules.driver_hang

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.transfers

# ended is how the probe ended. A transfer that hung is named as such, by its pair.
ended := "hang" if {
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

findings contains object.union(
	{
		"grade": ended,
		"subject": array.concat(named, ["host"])[0],
		"affects": named,
		"about": object.union(
			{
				"api": api_name,
				"left": [": the process hangs in the kernel, and only a reboot clears it" | input.transfers.left == true],
			},
			object.filter(input.transfers, ["stage", "gpu", "signal", "error_name", "error_code"]),
		),
		"evidence": transfers.report_evidence(["outcome", "stage", "gpu", "reason", "error_code", "error_name", "call", "signal", "left"]),
		"params": {"gpus": gpus},
	},
	{"remedies": rs | ended == "hang"; rs := remedies},
)

# named is the GPU for which the step was under way, where it does one at a time.
named := [gpu | gpu := input.transfers.gpu; gpu != ""]

# gpus are those of the vendor whose interface it was, or the one that it did not come back from.
gpus := named if {
	count(named) > 0
} else := sort(of_amd) if {
	input.transfers.api == "hip"
} else := sort({address | some address in facts.gpus} - of_amd)

of_amd := {address | some address in facts.gpus; facts.is_amd(address)}

# unready are the GPUs that could not be made ready, by call and error, if the error does not
# identify a cause. Errors that do are judged by other rules or need no finding: out of
# memory, in use by or closed to other processes, hardware faults (rule gpu-fault).
unready[object.filter(d, ["call", "error_name", "error_code"])] contains d.address if {
	some d in input.transfers.devices
	d.outcome == "error"
	d.error_code > 0
	not d.error_code in (driver_errors.judged | driver_errors.hardware)
	driver_errors.class(d.error_code).name != "code" # Rule transfer-failed says what the class means.
	not d.error_code in {driver_errors.code.OUT_OF_MEMORY, driver_errors.code.DEVICE_UNAVAILABLE}
}

findings contains {
	"grade": "unready",
	"subject": facts.list(addresses),
	"affects": sort(addresses),
	"about": object.union({"api": api_name}, said),
	"evidence": transfers.device_evidence(addresses),
} if some said, addresses in unready

# The management library speaks to the same kernel driver.
findings contains {
	"grade": "silent",
	"subject": "host",
	"about": {"how": input.gpus.nvml},
	"evidence": [{"fact": "gpus.nvml", "value": input.gpus.nvml, "source": "libnvidia-ml.so.1"}],
	"remedies": [{"hang": "reboot", "crashed": "reboot-or-reload-driver"}[input.gpus.nvml], "upgrade-driver"],
}

default api_name := "CUDA driver"

api_name := "HIP runtime" if input.transfers.api == "hip"

# What is stuck in the kernel keeps the module loaded and its GPU from being reset, and so does a driver that hangs NVML as
# well.
remedies := ["reboot", "upgrade-driver"] if {
	stuck
} else := ["reboot-or-reload-driver", "upgrade-driver"] if {
	input.transfers.stage in {"load library", "cleanup"}
} else := ["reset-gpu", "reboot-or-reload-driver", "upgrade-driver"]

stuck if input.transfers.left == true
stuck if input.gpus.nvml == "hang"

missing contains {"fact": "transfers", "words": "the probe did not run"} if {
	not probe_ran
	not count(facts.gpus) == 0
}

probe_ran if input.transfers.outcome != "unknown"
probe_ran if count(input.transfers.devices) > 0

not_applicable contains "no GPU" if {
	count(facts.gpus) == 0
	not probe_ran
}
