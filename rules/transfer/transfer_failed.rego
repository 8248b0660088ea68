# METADATA
# title: The probe of the GPUs failed, and no other rule explains it
# description: >-
#   The last resort for probe results: failed transfers, GPUs and driver steps that no finding of another rule explains.
#   The error code of the driver narrows down the remedies.
# related_resources:
#   - {ref: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html, description: Error codes of the CUDA driver}
#   - {ref: https://rocm.docs.amd.com/projects/HIP/en/latest/reference/error_codes.html, description: Error codes of HIP}
# custom:
#   severity: critical
#   confidence: confirmed
#   needs: [transfers.outcome]
#   remedies: [nccl-p2p-disable, reset-gpu, reboot-or-reload-driver, upgrade-driver, start-fabric-manager, free-memory, fix-visible-devices, pass-device-nodes, grant-device-access, replace-hardware, other]
#   unexplained: true
#   since: "0.2"
#   grades:
#     unexplained: >-
#       {what}[ at the step {stage}] {became}[, with the exit code {exit}][, by {signal}][ with {error|error} ({code})[ in
#       {call}]: {means}]. No other rule explains it.
package gpudoctor.rules.transfer_failed

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.transfers

became := {"corrupt": "delivered wrong data", "hang": "hung", "error": "failed", "slow": "did not reach the link's speed"}

code_of(x) := object.get(x, "error_code", 0)

# ending is how a transfer, a GPU or the probe ended: outcome, code, name and call. It is undefined of what is right.
ending(x) := [x.outcome, code_of(x), object.get(x, "error_name", ""), object.get(x, "call", "")] if became[x.outcome]

finding(kind, what) := {
	"grade": "unexplained",
	"about": {
		"what": what,
		"became": became[kind[0]],
		"code": [code | code := kind[1]; code > 0],
		"error": kind[2],
		"call": kind[3],
		"means": driver_errors.class(kind[1]).words,
	},
	"severity": {true: "critical", false: "high"}[kind[0] in {"corrupt", "hang"}],
}

failures[ending(t)] contains t if some t in input.transfers.transfers

findings contains object.union(finding(kind, what), {
	"subject": concat(" and ", array.concat([pairs[0]], [sprintf("%d more", [count(pairs) - 1]) | count(pairs) > 1])),
	"affects": sort({address | some t in ts; some address in [t.source, t.destination]; facts.is_address(address)}),
	"evidence": array.slice(transfers.each(ts, ["test", "way", "outcome", "reason", "cause", "found", "bad_bytes", "error_code", "error_name", "call", "gbps"]), 0, 8),
	"accounts_for": transfers.accounted(ts),
	"remedies": remedies(kind, count(transfers.tests(ts) & facts.peer_tests) > 0),
}) if {
	some kind, ts in failures
	pairs := sort({facts.pair_name(t.source, t.destination) | some t in ts})
	what := sprintf("Transfers over %s (%s)", [facts.counted(count(pairs), "path"), facts.list(transfers.tests(ts))])
}

# remedies: where no transfer between GPUs failed, no way between them is at fault.
remedies(kind, between_gpus) := [r | some r in cures; true in {between_gpus, r != "nccl-p2p-disable"}] if {
	cures := {
		true: driver_errors.class(kind[1]).remedies,
		false: ["nccl-p2p-disable", "reset-gpu", "reboot-or-reload-driver", "upgrade-driver", "replace-hardware"],
	}[kind[0] == "error"]
}

# A GPU that the driver could not make ready.
findings contains object.union(finding(kind, sprintf("GPU %s by itself", [facts.list(gpus)])), {
	"subject": facts.list(gpus),
	"affects": sort(gpus),
	"evidence": transfers.device_evidence(gpus),
	"remedies": remedies(kind, false),
}) if some kind, gpus in unready

unready[ending(d)] contains d.address if {
	some d in input.transfers.devices
	facts.is_address(d.address)
}

findings contains object.union(finding(whole, "The probe"), {
	"about": object.union(object.filter(input.transfers, ["stage", "signal"]), {"exit": [code | code := input.transfers.exit_code; code >= 0]}),
	"subject": "host",
	"affects": [],
	"evidence": transfers.report_evidence(["outcome", "stage", "gpu", "reason", "cause", "error_code", "error_name", "call", "exit_code", "signal"]),
	"params": {"gpus": sort([address | some address in facts.gpus])},
	"remedies": remedies(whole, false),
}) if {
	whole := ending(input.transfers)
	not no_gpu
	not told_by_transfer
}

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
	became[t.outcome]
}

not_applicable contains "fewer than two GPUs" if {
	not input.transfers
	count(facts.gpus) < 2
}

not_applicable contains "an image has no GPUs" if {
	not input.transfers
	input.image
}
