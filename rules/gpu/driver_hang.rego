# METADATA
# title: The GPU driver hangs, crashes or fails to start
# description: >-
#   The driver did not come up for the probe, or the management library gave
#   no answer in time. Every program that uses the GPUs will meet the same. A
#   sick GPU, or a driver that waits for one, is the usual cause.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/xid-errors/index.html
#     description: What the kernel log says of a GPU that no longer answers.
#   - ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
#     description: The error codes of the CUDA driver.
# schemas:
#   - input: schema.facts
# custom:
#   severity: critical
#   confidence: confirmed
#   cause: gpu-fault
#   remedies: [reset-gpu, reboot-or-reload-driver, upgrade-driver]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.driver_hang

import data.gpudoctor.lib.facts

# told_elsewhere are the codes of a driver that says itself what it lacks, and
# other rules judge that (cuda.h): a stub library, a driver older than the
# library, no device, no device node, fabric not ready, driver and library of
# different versions, no support for forward compatibility.
told_elsewhere := {34, 35, 100, 101, 304, 802, 803, 804}

# A transfer that hung is named as such, by its pair.
hung_transfer if {
	some t in facts.peer_transfers
	t.outcome == "hang"
}

findings contains {
	"subject": place,
	"affects": named,
	"message": sprintf("The CUDA driver did not come back from %s%s within the probe's deadline.%s", [step, on, left]),
	"evidence": evidence,
	"params": {"stage": step, "gpus": named},
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": remedies,
} if {
	input.transfers.outcome == "hang"
	not by_transfer
}

by_transfer if {
	stage := input.transfers.stage
	not stage in starting
	hung_transfer
}

# starting are the probe's stages that are no test.
starting := {"load library", "cuInit", "devices", "peer access query", "contexts", "memory", "peer access", "kernels", "cleanup"}

findings contains {
	"subject": place,
	"affects": named,
	"message": sprintf("The CUDA driver crashed the probe with %s in %s%s.", [input.transfers.signal, step, on]),
	"evidence": evidence,
	"params": {"stage": step, "gpus": named},
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": ["reboot-or-reload-driver", "reset-gpu", "upgrade-driver"],
} if {
	input.transfers.outcome == "error"
	input.transfers.signal != ""
}

findings contains {
	"subject": "host",
	"message": sprintf("The CUDA driver failed in %s with %s (%d), which names no cause.", [step, input.transfers.error_name, input.transfers.error_code]),
	"evidence": evidence,
	"params": {"stage": step},
	"severity": "high",
	"confidence": "likely",
	"remedies": ["reboot-or-reload-driver", "reset-gpu", "upgrade-driver"],
} if {
	input.transfers.outcome == "error"
	object.get(input.transfers, "signal", "") == ""
	code := input.transfers.error_code
	code > 0
	not code in told_elsewhere
}

# unready are the GPUs that the driver could not make ready, by what it said,
# where that names no cause. What says one, others judge or nobody need: no
# memory left, in use by others or barred to more processes (2, 46), faults of
# the hardware (rule gpu-fault).
unready[[d.error_name, d.error_code]] contains d.address if {
	some d in input.transfers.devices
	d.outcome == "error"
	d.error_code > 0
	not d.error_code in ((told_elsewhere | {2, 46}) | facts.hardware_errors)
}

findings contains {
	"subject": facts.list(gpus),
	"affects": sort(gpus),
	"message": sprintf("The CUDA driver could not make GPU %s ready: it failed with %s (%d), which names no cause.", [facts.list(gpus), said[0], said[1]]),
	"evidence": [{
		"fact": sprintf("transfers.devices[%s]", [d.address]),
		"value": object.filter(d, ["outcome", "reason", "error_code", "error_name"]),
		"source": "probe",
	} |
		some d in input.transfers.devices
		d.address in gpus
	],
	"params": {"gpus": sort(gpus)},
	"severity": "high",
	"confidence": "likely",
	"remedies": ["reset-gpu", "reboot-or-reload-driver", "upgrade-driver"],
} if {
	some said, gpus in unready
}

# The management library speaks to the same kernel driver.
findings contains {
	"subject": "host",
	"message": sprintf("The management library (NVML) %s. Tools such as nvidia-smi will fail the same way.", [dumb[input.gpus.nvml]]),
	"evidence": [{"fact": "gpus.nvml", "value": input.gpus.nvml, "source": "libnvidia-ml.so.1"}],
	"severity": "high",
	"confidence": "likely",
	"remedies": ["reset-gpu", "reboot-or-reload-driver", "upgrade-driver"],
} if {
	dumb[input.gpus.nvml]
}

dumb := {"hang": "did not answer within its deadline", "crashed": "crashed"}

default step := "its start"

step := sprintf("the step %q", [input.transfers.stage]) if input.transfers.stage != ""

# named is the GPU for which the step was under way, where it does one at a
# time.
default named := []

named := [input.transfers.gpu] if input.transfers.gpu != ""

place := named[0] if {
	count(named) > 0
} else := "host"

on := sprintf(" for GPU %s", [place]) if {
	place != "host"
} else := ""

default left := ""

left := " The process could not be ended: it is stuck in the kernel, and only a reboot clears it." if input.transfers.left == true

default remedies := ["reset-gpu", "reboot-or-reload-driver", "upgrade-driver"]

remedies := ["reboot-or-reload-driver", "upgrade-driver"] if input.transfers.left == true

evidence := [{
	"fact": sprintf("transfers.%s", [field]),
	"value": input.transfers[field],
	"source": "probe",
} |
	some field in ["outcome", "stage", "gpu", "reason", "error_code", "error_name", "signal", "left"]
	input.transfers[field]
]

missing contains "transfers: the probe did not run" if {
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
