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
#   cause: gpu-fault
#   needs:
#     - transfers.outcome
#   explains: [transfer-failed, collective-failed]
#   remedies: [reset-gpu, reboot, reboot-or-reload-driver, upgrade-driver]
#   since: "0.1"
package gpudoctor.rules.driver_hang

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.transfers

# ended is how the probe ended: its severity and confidence, in words, and what helps. A transfer that hung is named as
# such, by its pair.
ended := ["critical", "confirmed", sprintf("did not return from %s%s within the probe's deadline.%s", [step, on, left]), remedies] if {
	input.transfers.outcome == "hang"
	not by_transfer
} else := ["critical", "confirmed", sprintf("crashed the probe with %s in %s%s.", [input.transfers.signal, step, on]), ["reboot-or-reload-driver", "upgrade-driver"]] if {
	input.transfers.outcome == "error"
	input.transfers.signal != ""
} else := ["high", "likely", sprintf("failed in %s with %s (%d), which does not identify a cause.", [step, input.transfers.error_name, code]), ["reboot-or-reload-driver", "reset-gpu", "upgrade-driver"]] if {
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

findings contains {
	"subject": place,
	"affects": named,
	"message": sprintf("The %s %s", [api_name, ended[2]]),
	"evidence": transfers.report_evidence(["outcome", "stage", "gpu", "reason", "error_code", "error_name", "call", "signal", "left"]),
	"params": {"gpus": gpus},
	"severity": ended[0],
	"confidence": ended[1],
	"remedies": ended[3],
}

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
unready[[object.get(d, "call", "the driver"), d.error_name, d.error_code]] contains d.address if {
	some d in input.transfers.devices
	d.outcome == "error"
	d.error_code > 0
	not d.error_code in (driver_errors.judged | driver_errors.hardware)
	driver_errors.class(d.error_code).name != "code" # Rule transfer-failed says what the class means.
	not d.error_code in {driver_errors.code.OUT_OF_MEMORY, driver_errors.code.DEVICE_UNAVAILABLE}
}

findings contains {
	"subject": facts.list(gpus),
	"affects": sort(gpus),
	"message": sprintf("Programs cannot use GPU %s: %s of the %s failed with %s (%d), which does not identify a cause.", [facts.list(gpus), said[0], api_name, said[1], said[2]]),
	"evidence": transfers.device_evidence(gpus),
	"severity": "high",
	"confidence": "likely",
	"remedies": ["reset-gpu", "reboot-or-reload-driver", "upgrade-driver"],
} if {
	some said, gpus in unready
}

# The management library speaks to the same kernel driver.
findings contains {
	"subject": "host",
	"message": sprintf("The management library (NVML) %s. Tools such as nvidia-smi will fail the same way.", [dumb[input.gpus.nvml][0]]),
	"evidence": [{"fact": "gpus.nvml", "value": input.gpus.nvml, "source": "libnvidia-ml.so.1"}],
	"severity": "high",
	"confidence": "likely",
	"remedies": [dumb[input.gpus.nvml][1], "upgrade-driver"],
} if {
	dumb[input.gpus.nvml]
}

dumb := {
	"hang": ["did not respond before its deadline", "reboot"],
	"crashed": ["crashed", "reboot-or-reload-driver"], # It is not stuck in the kernel.
}

# api_name is the vendor interface that the probe used.
default api_name := "CUDA driver"

api_name := "HIP runtime" if input.transfers.api == "hip"

default step := "its startup"

step := sprintf("the step %q", [input.transfers.stage]) if input.transfers.stage != ""

# named is the GPU for which the step was under way, where it does one at a time.
default named := []

named := [input.transfers.gpu] if input.transfers.gpu != ""

place := named[0] if {
	count(named) > 0
} else := "host"

on := sprintf(" for GPU %s", [place]) if {
	place != "host"
} else := ""

default left := ""

left := " The process could not be killed: it hangs in the kernel, and only a reboot clears it." if input.transfers.left == true

# remedies: what is stuck in the kernel keeps the module loaded and its GPU from
# being reset, and so does a driver that hangs NVML as well.
default remedies := ["reset-gpu", "reboot-or-reload-driver", "upgrade-driver"]

remedies := ["reboot", "upgrade-driver"] if {
	stuck
} else := ["reboot-or-reload-driver", "upgrade-driver"] if {
	input.transfers.stage in {"load library", "cleanup"}
}

stuck if input.transfers.left == true

stuck if input.gpus.nvml == "hang"

missing contains {"fact": "transfers", "words": "the probe did not run"} if {
	not probe_ran
	not no_gpu
}

probe_ran if input.transfers.outcome != "unknown"

probe_ran if count(input.transfers.devices) > 0

no_gpu if count(facts.gpus) == 0

not_applicable contains "no GPU" if {
	no_gpu
	not probe_ran
}
