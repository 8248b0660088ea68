# METADATA
# title: The probe of the GPUs failed, and no other rule explains it
# description: >-
#   The last resort for probe results. It covers only failed transfers, GPUs and driver steps that no finding of another
#   rule explains, so that a failure is reported even if its cause is not known. The driver's error code narrows down
#   the remedies.
# related_resources:
#   - ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
#     description: The error codes of the CUDA driver (CUresult).
#   - ref: https://rocm.docs.amd.com/projects/HIP/en/latest/reference/error_codes.html
#     description: The error codes of HIP (hipError_t).
# custom:
#   severity: critical
#   confidence: confirmed
#   needs: [transfers.outcome]
#   remedies: [nccl-p2p-disable, reset-gpu, reboot-or-reload-driver, upgrade-driver, start-fabric-manager, free-memory, fix-visible-devices, pass-device-nodes, grant-device-access, replace-hardware, other]
#   unexplained: true
#   since: "0.2"
#   grades:
#     transfers: >-
#       Transfers over {pairs:path} ({tests}) {became}[ with {error|error} ({code})[ in {call}]: {means}]. No other rule
#       explains it.
#     device: >-
#       GPU {gpus} {became} by itself[ with {error|error} ({code})[ in {call}]: {means}]. No other rule explains it.
#     probe: >-
#       The probe {became}[ at the step {stage}][, with the exit code {exit}][, by {signal}][ with {error|error}
#       ({code})[ in {call}]: {means}]. Programs that use the GPUs will probably fail in the same way. No other rule
#       explains it.
package gpudoctor.rules.transfer_failed

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.transfers

severity_of := {"corrupt": "critical", "hang": "critical", "error": "high", "slow": "high"}

became := {"corrupt": "delivered wrong data", "hang": "hung", "error": "failed", "slow": "did not reach the link's speed"}

code_of(x) := object.get(x, "error_code", 0)

# ending is how a transfer, a GPU or the probe ended: outcome, code, name and call.
ending(x) := [x.outcome, code_of(x), object.get(x, "error_name", ""), object.get(x, "call", "")]

told(kind) := {
	"became": became[kind[0]],
	"code": [code | code := kind[1]; code > 0],
	"error": kind[2],
	"call": kind[3],
	"means": driver_errors.class(kind[1]).words,
}

# failures are the transfers that ended alike: the same outcome, code and call.
failures[ending(t)] contains t if {
	some t in input.transfers.transfers
	severity_of[t.outcome]
}

findings contains {
	"grade": "transfers",
	"subject": concat("", array.concat([pairs[0]], [sprintf(" and %d more", [count(pairs) - 1]) | count(pairs) > 1])),
	"affects": sort({address | some t in ts; some address in [t.source, t.destination]; facts.is_address(address)}),
	"about": object.union(told(kind), {"pairs": pairs, "tests": transfers.tests(ts)}),
	"evidence": array.slice(transfers.each(ts, ["test", "way", "outcome", "reason", "cause", "found", "bad_bytes", "error_code", "error_name", "call", "gbps"]), 0, 8),
	"accounts_for": transfers.accounted(ts),
	"severity": severity_of[kind[0]],
	"remedies": remedies(kind, ts),
} if {
	some kind, ts in failures
	pairs := sort({facts.pair_name(t.source, t.destination) | some t in ts})
}

remedies(kind, ts) := driver_errors.class(kind[1]).remedies if {
	kind[0] == "error"
} else := ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "upgrade-driver"] if {
	some t in ts
	t.test in facts.peer_tests
} else := ["reset-gpu", "reboot-or-reload-driver", "upgrade-driver", "replace-hardware"]

# A GPU that the driver could not make ready.
findings contains {
	"grade": "device",
	"subject": facts.list(gpus),
	"affects": sort(gpus),
	"about": object.union(told(kind), {"gpus": gpus}),
	"evidence": transfers.device_evidence(gpus),
	"severity": severity_of[kind[0]],
	"remedies": device_remedies(kind),
} if some kind, gpus in unready

unready[ending(d)] contains d.address if {
	some d in input.transfers.devices
	severity_of[d.outcome]
	facts.is_address(d.address)
}

# device_remedies: where a GPU or the driver does not start, no way between GPUs is at fault.
device_remedies(kind) := [r | some r in driver_errors.class(kind[1]).remedies; r != "nccl-p2p-disable"] if {
	kind[0] == "error"
} else := ["reset-gpu", "reboot-or-reload-driver", "upgrade-driver"]

findings contains {
	"grade": "probe",
	"subject": "host",
	"affects": [],
	"about": object.union_n([
		told(whole), object.filter(input.transfers, ["stage", "signal"]),
		{"exit": [code | code := input.transfers.exit_code; code >= 0]},
	]),
	"evidence": transfers.report_evidence(["outcome", "stage", "gpu", "reason", "cause", "error_code", "error_name", "call", "exit_code", "signal"]),
	"params": {"gpus": sort([address | some address in facts.gpus])},
	"severity": severity_of[whole[0]],
	"remedies": device_remedies(whole),
} if {
	severity_of[input.transfers.outcome]
	not no_gpu
	not told_by_transfer
}

whole := ending(input.transfers)

# no_gpu: CUDA says that it finds no GPU (CUDA_ERROR_NO_DEVICE), and nothing else shows one. That is no failure.
no_gpu if {
	code_of(input.transfers) == driver_errors.code.NO_DEVICE
	input.gpus.devices
	count([address | some address in facts.gpus]) == 0
}

# told_by_transfer: in a test, what stopped the probe is the transfer's outcome.
told_by_transfer if {
	some t in input.transfers.transfers
	t.test == input.transfers.stage
	severity_of[t.outcome]
}

not_applicable contains "fewer than two GPUs" if {
	not input.transfers
	count(facts.gpus) < 2
}

not_applicable contains "an image has no GPUs" if {
	not input.transfers
	input.image
}
