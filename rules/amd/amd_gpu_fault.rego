# METADATA
# title: An AMD GPU is faulty
# description: >-
#   The driver of AMD's GPUs, or their tools, report a fault: memory with errors
#   that cannot be corrected, pages beyond the threshold, a GPU that does not
#   start, a reset that failed, an engine that stands still. Programs on it
#   fail, and every job that includes it fails with them. The rule was not tried
#   on AMD hardware.
# related_resources:
#   - ref: https://docs.kernel.org/gpu/amdgpu/ras.html
#     description: Errors that the driver counts, and bad pages
#   - ref: https://github.com/torvalds/linux/tree/master/drivers/gpu/drm/amd/amdgpu
#     description: The messages of the driver
# schemas:
#   - input: schema.facts
# custom:
#   cause: gpu-fault
#   severity: high
#   confidence: likely
#   needs:
#     - gpus.devices
#     - [kernel_log, "gpus.devices[].ras"]
#   remedies: [reset-amd-gpu, reboot, replace-hardware, upgrade-rocm]
#   explains: [p2p-broken-platform, p2p-slow, transfer-failed]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.amd_gpu_fault

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs

# forms are the driver's messages with what each means: how bad it is, how sure,
# in words, and what helps. The first that matches counts. Errors of xGMI links
# are left to amd-xgmi.
forms := [
	{
		"like": `reaches threshold value`,
		"grade": ["critical", "confirmed"],
		"words": "has more bad memory pages than it may",
		"remedies": ["replace-hardware"],
	},
	{
		"like": `Fatal error during GPU init|[hs]w_init of IP block <[^>]*> failed`,
		"grade": ["critical", "confirmed"],
		"words": "did not start",
		"remedies": ["reboot", "replace-hardware"],
	},
	{
		"like": `GPU reset\(\d+\) failed|Mode[12] reset failed`,
		"grade": ["critical", "confirmed"],
		"words": "could not be reset",
		"remedies": ["reboot", "replace-hardware"],
	},
	{
		"like": `poison is consumed|Poison is created`,
		"grade": ["high", "confirmed"],
		"words": "met memory that cannot be corrected (poison)",
		"remedies": ["reset-amd-gpu", "replace-hardware"],
	},
	{
		"like": `uncorrectable hardware error\(ERREVENT_ATHUB_INTERRUPT\)|RAS Intr triggered, device disabled`,
		"grade": ["critical", "confirmed"],
		"words": "met a hardware error that cannot be corrected, for which the driver resets it",
		"remedies": ["reset-amd-gpu", "replace-hardware", "reboot"],
	},
	{
		"like": `device lost from bus`,
		"grade": ["critical", "confirmed"],
		"words": "is lost from the bus",
		"remedies": ["reboot", "reset-amd-gpu", "replace-hardware"],
	},
	{
		"like": `(?i)[1-9]\d* (new )?(uncorrectable|deferred) hardware errors detected`,
		"grade": ["high", "confirmed"],
		"words": "has errors that cannot be corrected",
		"remedies": ["reset-amd-gpu", "replace-hardware"],
	},
	{
		"like": `MES failed to respond|SMU: I'm not done|qcm fence wait loop timeout`,
		"grade": ["high", "likely"],
		"words": "does not answer its driver",
		"remedies": ["reboot", "reset-amd-gpu", "upgrade-rocm"],
	},
	{
		"like": `timeout, signaled seq=`,
		"grade": ["high", "possible"],
		"words": "has an engine that stood still",
		"remedies": ["reset-amd-gpu", "reboot", "upgrade-rocm"],
	},
]

# signs are the events by GPU and form.
signs[[where(e), i]] contains e if {
	some e in input.kernel_log.events
	e.kind == "amdgpu"
	not contains(lower(e.message), "xgmi")
	not roomless(e)
	i := min([n | some n, form in forms; regex.match(form.like, e.message)])
}

# roomless is true of a GPU that did not start because the kernel found no room
# for a BAR, which bar-too-small tells: the driver cannot map its registers, or
# not its memory.
roomless(e) if {
	regex.match(`Fatal error during GPU init|sw_init of IP block <gmc_[^>]*> failed`, e.message)
	some b in input.kernel_log.events
	no_room(b)
	object.get(b, "address", "") in {object.get(e, "address", ""), ""}
}

# Lines of the DRM layer name no GPU ("[drm:amdgpu_device_init] *ERROR* ...").
roomless(e) if {
	regex.match(`sw_init of IP block <gmc_[^>]*> failed`, e.message)
	object.get(e, "address", "") == ""
	some b in input.kernel_log.events
	no_room(b)
}

no_room(b) if b.kind == "bar"

# 12 is ENOMEM (amdgpu_device.c, amdgpu_device_init: ioremap of the registers).
no_room(b) if {
	b.kind == "amdgpu"
	b.code == 12
}

where(e) := e.address if {
	e.address
} else := "host"

findings contains {
	"subject": key[0],
	"message": sprintf("The kernel log says that %s %s: %s", [named(key[0]), forms[key[1]].words, sort(es)[0].message]),
	"severity": forms[key[1]].grade[0],
	"confidence": forms[key[1]].grade[1],
	"evidence": [{"fact": "kernel_log.events[amdgpu]", "value": e.message, "source": input.kernel_log.source} | some e in sort(es)],
	"params": {"gpu": key[0]},
	"remedies": forms[key[1]].remedies,
} if {
	some key, es in signs
}

named(place) := "an AMD GPU" if {
	place == "host"
} else := sprintf("GPU %s", [place])

# The tools of AMD count what the driver saw.
findings contains {
	"subject": g.address,
	"message": sprintf("%s has %d memory errors that could not be corrected", [g.address, g.ecc.volatile_uncorrected]),
	"severity": "high",
	"confidence": "likely",
	"evidence": [{"fact": sprintf("gpus.devices[%s].ecc.volatile_uncorrected", [g.address]), "value": g.ecc.volatile_uncorrected, "source": "amd-smi"}],
	"params": {"gpu": g.address},
	"remedies": ["reset-amd-gpu", "replace-hardware"],
} if {
	some g in amd.gpus
	g.ecc.volatile_uncorrected > 0
}

findings contains {
	"subject": g.address,
	"message": sprintf("The driver took %d memory pages of %s out of use", [g.retired_pages, g.address]),
	"severity": "low",
	"confidence": "confirmed",
	"evidence": [{"fact": sprintf("gpus.devices[%s].retired_pages", [g.address]), "value": g.retired_pages, "source": "amd-smi bad-pages"}],
	"params": {"gpu": g.address},
	"remedies": ["replace-hardware"],
} if {
	some g in amd.gpus
	g.retired_pages > 0
}

# The driver's own counters by block, since it was loaded (ras/umc_err_count and the
# like). Corrected errors are what memory with ECC is for.
counters[[address, name]] := b if {
	some address, blocks in amd.errors
	some name, b in blocks
	not contains(name, "xgmi")
}

findings contains {
	"subject": key[0],
	"affects": [address | some address in [key[0]]; facts.is_address(address)],
	"message": sprintf("The driver counted %d errors of %s in block %s that could not be corrected, since it was loaded", [b.uncorrectable, key[0], key[1]]),
	"severity": "high",
	"confidence": "likely",
	"evidence": [{"fact": sprintf("gpus.devices[%s].ras[%s].uncorrectable", [key[0], key[1]]), "value": b.uncorrectable, "source": sprintf("ras/%s_err_count", [key[1]])}],
	"params": {"gpu": key[0]},
	"remedies": ["reset-amd-gpu", "replace-hardware"],
} if {
	some key, b in counters
	b.uncorrectable > 0
	not told_by_log(key[0])
}

# A deferred error is memory that cannot be corrected and was not used since: the
# program that reads it dies (poison).
findings contains {
	"subject": key[0],
	"affects": [address | some address in [key[0]]; facts.is_address(address)],
	"message": sprintf("The driver counted %d deferred errors of %s in block %s: memory that cannot be corrected, and kills the program that reads it", [b.deferred, key[0], key[1]]),
	"severity": "medium",
	"confidence": "likely",
	"evidence": [{"fact": sprintf("gpus.devices[%s].ras[%s].deferred", [key[0], key[1]]), "value": b.deferred, "source": sprintf("ras/%s_err_count", [key[1]])}],
	"params": {"gpu": key[0]},
	"remedies": ["reset-amd-gpu", "replace-hardware"],
} if {
	some key, b in counters
	b.deferred > 0
	b.uncorrectable == 0
	not told_by_log(key[0])
}

told_by_log(address) if {
	some key, _ in signs
	key[0] in {address, "host"}
}

# kfd_lost are GPUs that the compute driver leaves out. In a container it lists only
# what was passed in, and with xGMI amd-xgmi tells.
findings contains {
	"subject": address,
	"affects": [address],
	"message": sprintf("GPU %s is bound to the driver amdgpu and not in the topology of the compute driver, which lists others of the same model: it was not started for computing, and HIP does not offer it. The kernel log of the boot says why", [address]),
	"severity": "high",
	"confidence": "likely",
	"evidence": [{"fact": sprintf("gpus.devices[%s].kfd", [address]), "value": "none", "source": "/sys/class/kfd/kfd/topology"}],
	"params": {"gpu": address},
	"remedies": ["reboot", "reset-amd-gpu", "replace-hardware"],
} if {
	some address in amd.kfd_lost
	facts.in_container == false
	not hived
	not told_by_log(address)
}

hived if {
	some g in amd.gpus
	g.kfd.hive != ""
}

# What programs saw of it: the fault may be the program's own.
hung := logs.by_id["rocr-gpu-hang"]

findings contains {
	"subject": "host",
	"message": "The driver took a GPU for hung and reset it under a program: the GPU, its engine for copies or the program is at fault, which the kernel log tells",
	"severity": "high",
	"confidence": "possible",
	"evidence": logs.all_evidence(hung),
	"order": logs.first(hung).order,
	"remedies": ["reset-amd-gpu", "reboot"],
} if {
	count(hung) > 0
	count(signs) == 0
}

missing contains {"fact": "kernel_log", "words": "the kernel log was not read, nor is it known what AMD's tools say"} if {
	amd.present
	not input.kernel_log
	not hung
	count(counters) == 0
}

missing contains {"fact": "gpus", "words": "it is not known whether there are AMD GPUs"} if {
	not amd.present
	not known
	not input.kernel_log
}

known if is_array(input.gpus.devices)

not_applicable contains "no AMD GPU" if {
	known
	not amd.present
	count(signs) == 0
}
