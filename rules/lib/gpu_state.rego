# Signs of a faulty GPU in its current state: NVML's answers, the bus, and what happened when the probe initialized it.
package gpudoctor.lib.gpu_state

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci

# nvlink_xids are the Xids by which the driver reports a fault of an NVLink: 74, and 144 to 150 of NVLink 5.
nvlink_xids := {74, 144, 145, 146, 147, 148, 149, 150}

seen(severity, words, fact, value, source, remedies) := {
	"severity": severity,
	"confidence": "confirmed",
	"words": words,
	"evidence": [{"fact": fact, "value": value, "source": source}],
	"remedies": remedies,
}

of_gpu(address, name) := sprintf("gpus.devices[%s].%s", [address, name])

reset := ["reset-gpu", "reboot", "replace-hardware"]

# off_bus helps a GPU that no longer answers on the bus, over which it cannot be reset.
off_bus := driver_errors.nvml.GPU_IS_LOST.remedies

signs[g.address] contains seen("critical", words, of_gpu(g.address, "error"), g.error, "nvmlDeviceGetHandleByPciBusId", answer.remedies) if {
	some g in input.gpus.devices
	answer := driver_errors.nvml[trim_prefix(trim_prefix(g.error, "NVML_"), "ERROR_")]
	words := sprintf("NVML returns %s: %s", [g.error, answer.words])
}

signs[g.address] contains seen("high", words, of_gpu(g.address, "ecc.volatile_uncorrected"), errors, "nvmlDeviceGetTotalEccErrors", reset) if {
	some g in input.gpus.devices
	errors := g.ecc.volatile_uncorrected
	errors > 0
	words := sprintf("%d uncorrectable memory errors since the driver was loaded", [errors])
}

flags := [
	["remapped_rows", "pending", "high", "a row remapping is pending and needs a reset", "nvmlDeviceGetRemappedRows", ["reset-gpu"]],
	["remapped_rows", "failed", "high", "a row remapping failed, so a known bad memory cell is still in use", "nvmlDeviceGetRemappedRows", ["replace-hardware", "reset-gpu"]],
	["ecc", "retired_pages_pending", "high", "a page retirement is pending and needs a reset", "nvmlDeviceGetRetiredPagesPendingStatus", ["reset-gpu"]],
	["ecc", "sram_threshold_exceeded", "high", "uncorrectable errors of its on-chip memory exceed NVIDIA's threshold", "nvmlDeviceGetSramEccErrorStatus", ["replace-hardware"]],
	["ecc", "unrepairable_memory", "high", "NVML reports that its memory is beyond repair", "nvmlDeviceGetRepairStatus", ["replace-hardware"]],
	["ecc", "channel_repair_pending", "medium", "a memory channel repair is pending and needs a reset", "nvmlDeviceGetRepairStatus", ["reset-gpu"]],
]

signs[g.address] contains seen(severity, words, of_gpu(g.address, sprintf("%s.%s", [section, field])), true, source, remedies) if {
	some g in input.gpus.devices
	some [section, field, severity, words, source, remedies] in flags
	g[section][field] == true
}

recovery := {
	"gpu-reset": ["high", ["reset-gpu", "reboot"]],
	"node-reboot": ["critical", ["reboot", "replace-hardware"]],
	"drain-p2p": ["high", ["reset-gpu", "reboot"]],
	"drain-and-reset": ["high", ["reset-gpu", "reboot"]],
	"recover-imex-domain": ["high", ["reboot"]],
}

signs[g.address] contains seen(severity, words, of_gpu(g.address, "recovery_action"), g.recovery_action, source, remedies) if {
	some g in input.gpus.devices
	[severity, remedies] := recovery[g.recovery_action]
	words := sprintf("NVML recommends the recovery action %q", [g.recovery_action])
	source := "nvmlDeviceGetFieldValues (NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)"
}

# In the PCI tree, bound to NVIDIA's driver, and not in NVML although that answered: the driver dropped it. A GPU that
# is bound to another driver, excluded from the driver, or not passed to a container is that way on purpose.
missed := {g.address |
	some g in input.gpus.devices
	g.vendor == "nvidia"
	g.in_pci == true
	g.in_nvml == false
	input.gpus.nvml == "ok"
	object.get(g, "error", "") == ""
	pci.device[g.address].driver == "nvidia"
	not g.address in excluded
	input.container.inside == false
}

excluded := {d.address | some d in input.container.driver_devices; d.excluded == true}

# given_up are those for which that is certain. A scheduler may hide GPUs from a user with
# a device cgroup, which leaves no trace; the kernel log decides.
given_up := missed if {
	facts.is_root == true
} else := missed & {e.address | some e in input.kernel_log.events; e.kind in {"nvrm", "xid"}}

signs[address] contains seen("high", "it is bound to the NVIDIA driver, which does not offer it", of_gpu(address, "in_nvml"), false, "nvmlDeviceGetCount", reset) if {
	some address in given_up
}

# A device that is gone answers every read with ones. One that its driver has not claimed may be switched off by intent.
signs[d.address] contains seen("critical", words, sprintf("pci.devices[%s].off_bus", [d.address]), true, source, off_bus) if {
	some d in input.pci.devices
	d.off_bus == true
	d.kind == "gpu"
	wanted(d)
	words := "its configuration space reads as all ones (lspci: rev ff): it no longer responds on the bus"
	source := sprintf("/sys/bus/pci/devices/%s/config", [d.address])
}

wanted(d) if d.driver == "nvidia"

# Where a text shows the bus and not who drives what, another GPU of the same
# vendor that answers says that this is no notebook whose only discrete GPU sleeps.
wanted(d) if {
	count(input.texts) > 0
	object.get(d, "driver", "") == ""
	d.vendor in answering
}

answering := {d.vendor | some d in input.pci.devices; d.kind == "gpu"; not d.off_bus == true}

signs[d.address] contains seen("critical", words, sprintf("transfers.devices[%s].outcome", [d.address]), d.outcome, "probe", reset) if {
	some d in input.transfers.devices
	device_failed(d)
	words := sprintf("the CUDA driver could not initialize it (%s)", [object.get(d, "error_name", d.outcome)])
}

device_failed(d) if d.outcome == "hang"

device_failed(d) if {
	d.outcome == "error"
	d.error_code in driver_errors.hardware
}
