# METADATA
# title: An AMD GPU is faulty
# description: >-
#   The AMD driver or AMD's tools report a GPU fault: uncorrectable memory errors, more bad pages than the threshold, a
#   GPU that does not start, a failed reset, or a hung engine. Programs on the GPU fail, and every job that includes it
#   fails with them. This rule has not been tested on AMD hardware.
# related_resources:
#   - ref: https://docs.kernel.org/gpu/amdgpu/ras.html
#     description: Errors that the driver counts, and bad pages
#   - ref: https://github.com/torvalds/linux/tree/master/drivers/gpu/drm/amd/amdgpu
#     description: Messages of the driver
# custom:
#   cause: gpu-fault
#   severity: high
#   confidence: likely
#   areas: [gpus, kernel-log]
#   needs: [gpus.devices, [kernel_log, "gpus.devices[].ras"]]
#   remedies: [reset-amd-gpu, reboot, replace-hardware, upgrade-rocm]
#   explains: [p2p-broken-platform, p2p-slow, transfer-failed, "logged > amd-gpu-fault/hung"]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     logged:
#       severity: critical
#       confidence: confirmed
#       remedies: [reboot, replace-hardware]
#       text: "The kernel log says that an AMD GPU[ ({gpus})] did not start: {line}"
#     unlisted:
#       remedies: [reboot, reset-amd-gpu, replace-hardware]
#       text: >-
#         GPU {subject} is bound to the amdgpu driver, but missing from the compute driver's topology, which lists other
#         GPUs of the same model: HIP does not offer it. The kernel log of the boot shows why
package gpudoctor.rules.amd_gpu_fault

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci

# faults_in_log are the rows of kernel log messages that indicate a fault without further
# evidence. Those of a GPU that did not start depend on what else is known about it.
faults_in_log := {
	"amdgpu-bad-pages", "amdgpu-reset-failed", "amdgpu-poison-created", "amdgpu-poison-consumed", "amdgpu-ras-interrupt",
	"amdgpu-ras-disabled", "amdgpu-off-bus", "amdgpu-errors-uncorrected", "amdgpu-mes-silent", "amdgpu-smu-silent",
	"amdgpu-queue-silent", "amdgpu-ring-timeout",
}

stillborn[pci.place(e)] contains e if {
	some e in input.kernel_log.events
	e.id in {"amdgpu-init-failed", "amdgpu-block-failed"}
	not roomless(e)
}

# roomless is true of a GPU that did not start because its BAR found no address space, which bar-too-small reports. Lines
# of the DRM layer name no GPU ("[drm:amdgpu_device_init] *ERROR* ...").
roomless(e) if {
	maps_memory(e)
	some b in pci.no_room
	count({object.get(b, "address", ""), object.get(e, "address", "")} - {""}) < 2
}

maps_memory(e) if e.id == "amdgpu-init-failed"

maps_memory(e) if {
	e.id == "amdgpu-block-failed"
	e.fields.step == "sw_init"
	startswith(e.fields.block, "gmc_")
}

findings contains {
	"id": "logged",
	"subject": place,
	"about": {"gpus": {place} - {"host"}, "line": sort(es)[0].message},
	"evidence": pci.event_evidence(es),
	"params": {"gpu": place},
} if some place, es in stillborn

# counts are what the tools of AMD, and the driver since it was loaded, count of a GPU: the fact, the number, in words,
# and what it means. ECC memory is expected to have corrected errors. A deferred error is uncorrectable memory that has
# not been used since: a program that reads it dies (poison).
counts[g.address] contains ["ecc.volatile_uncorrected", n, "uncorrectable memory errors", "high", "amd-smi"] if {
	some g in amd.gpus
	n := g.ecc.volatile_uncorrected
}

counts[g.address] contains ["retired_pages", g.retired_pages, "retired memory pages", "low", "amd-smi bad-pages"] if some g in amd.gpus

counts[address] contains [
	sprintf("ras[%s].%s", [name, what]), b[what], sprintf("%s errors in block %s since the driver was loaded", [what, name]),
	severity, sprintf("ras/%s_err_count", [name]),
] if {
	some address, blocks in amd.errors
	some name, b in blocks
	not contains(name, "xgmi")
	not told_by_log(address)
	some what, severity in {"uncorrectable": "high", "deferred": "medium"}
}

findings contains {
	"subject": address,
	"affects": facts.gpus_at(address),
	"message": sprintf("GPU %s has %d %s", [address, n, words]),
	"severity": severity,
	"evidence": [{"fact": sprintf("gpus.devices[%s].%s", [address, path]), "value": n, "source": source}],
	"params": {"gpu": address},
	"remedies": array.concat([r | some r in ["reset-amd-gpu"]; path != "retired_pages"], ["replace-hardware"]),
} if {
	some address, found in counts
	some [path, n, words, severity, source] in found
	n > 0
}

told_by_log(address) if count({address, "host"} & logged) > 0

logged := object.keys(stillborn) | {pci.place(e) | some e in input.kernel_log.events; e.id in faults_in_log}

# GPUs that the compute driver leaves out. In a container it lists only what was passed in, and with xGMI amd-xgmi reports
# it.
findings contains {
	"grade": "unlisted",
	"subject": address,
	"affects": [address],
	"evidence": [{"fact": sprintf("gpus.devices[%s].kfd", [address]), "value": "none", "source": "/sys/class/kfd/kfd/topology"}],
	"params": {"gpu": address},
} if {
	some address in amd.kfd_lost
	facts.in_container == false
	count(amd.hives) == 0
	not told_by_log(address)
}

missing contains {"fact": "kernel_log", "words": "neither the kernel log nor the output of AMD's tools is available"} if {
	amd.present
	not input.kernel_log
	not counted_blocks
}

# counted_blocks is true where the driver's counters were read, of links apart.
counted_blocks if {
	some blocks in amd.errors
	some name, _ in blocks
	not contains(name, "xgmi")
}

not_applicable contains "no AMD GPU" if amd.absent
