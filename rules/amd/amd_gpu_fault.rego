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
#   explains: [p2p-broken-platform, p2p-slow, transfer-failed, logged > amd-gpu-fault/hung, logged > amd-gpu-fault/seen]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     logged:
#       severity: critical
#       confidence: confirmed
#       remedies: [reboot, replace-hardware]
#       text: "The kernel log says that an AMD GPU[ ({gpus})] did not start: {line}"
#     counted:
#       remedies: [reset-amd-gpu, replace-hardware]
#       text: "GPU {subject} has {count} {errors}"
#     unlisted:
#       remedies: [reboot, reset-amd-gpu, replace-hardware]
#       text: >-
#         GPU {subject} is bound to the amdgpu driver, but missing from the compute driver's topology, which lists other
#         GPUs of the same model: HIP does not offer it. The kernel log of the boot shows why
package gpudoctor.rules.amd_gpu_fault

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci

stillborn[pci.place(e)] contains e if {
	some e in input.kernel_log.events
	e.id in {"amdgpu-init-failed", "amdgpu-block-failed"}
	not roomless(e)
}

# roomless is true of a GPU whose BAR found no address space, which bar-too-small reports. Lines of the DRM layer name no
# GPU ("[drm:amdgpu_device_init] *ERROR* ...").
roomless(e) if {
	some b in pci.no_room
	count({object.get(b, "address", ""), object.get(e, "address", "")} - {""}) < 2
}

findings contains {
	"id": "logged",
	"subject": place,
	"about": {"gpus": {place} - {"host"}, "line": sort(es)[0].message},
	"evidence": pci.event_evidence(es),
	"params": {"gpu": place},
} if some place, es in stillborn

# counts are what AMD's tools, and the driver since it was loaded, count. ECC memory is expected to have corrected errors.
# A deferred error is uncorrectable memory that has not been used since: a program that reads it dies (poison).
counts contains [g, "ecc.volatile_uncorrected", g.ecc.volatile_uncorrected, "uncorrectable errors", "high"] if some g in amd.gpus
counts contains [g, "retired_pages", g.retired_pages, "retired memory pages", "low"] if some g in amd.gpus

counts contains [g, sprintf("ras[%s].%s", [b.block, what]), b[what], sprintf("%s %s errors", [what, b.block]), severity] if {
	some g in amd.gpus
	some b in g.ras
	not contains(b.block, "xgmi")
	some what, severity in {"uncorrectable": "high", "deferred": "medium"}
}

findings contains {
	"id": "seen",
	"grade": "counted",
	"subject": g.address,
	"affects": facts.gpus_at(g.address),
	"about": {"count": n, "errors": errors},
	"severity": severity,
	"evidence": [{"fact": sprintf("gpus.devices[%s].%s", [g.address, path]), "value": n, "source": "the driver's counters, or amd-smi"}],
	"params": {"gpu": g.address},
} if {
	some [g, path, n, errors, severity] in counts
	n > 0
}

# A container lists only the GPUs that were passed in, and partitions of one accelerator are several functions, of which
# the first alone is a device.
findings contains {
	"id": "seen",
	"grade": "unlisted",
	"subject": d.address,
	"affects": [d.address],
	"evidence": [{"fact": sprintf("gpus.devices[%s].kfd", [d.address]), "value": "none", "source": "/sys/class/kfd/kfd/topology"}],
	"params": {"gpu": d.address},
} if {
	input.gpus.amd.kfd == "ok"
	facts.in_container == false
	some d in input.pci.devices
	d.vendor == "0x1002"
	d.kind == "gpu"
	d.driver == "amdgpu"
	not d.virtual == true
	not d.address in listed
	d.device in {pci.device[address].device | some address in listed}
}

listed := {g.address | some g in amd.gpus; g.kfd.node >= 0}

not_applicable contains "no AMD GPU" if amd.absent
