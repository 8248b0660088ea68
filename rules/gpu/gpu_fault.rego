# METADATA
# title: A GPU, or the way to it, is faulty
# description: >-
#   The kernel log, the management library or the PCI bus report a fault of a
#   GPU: it fell off the bus, its memory has errors that cannot be corrected,
#   its processor does not answer. Programs on it fail, and every job that
#   includes it fails with them.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
#     description: NVIDIA's catalog of Xid codes with the action to take at once.
#   - ref: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
#     description: Row remapping, and when a GPU is to be replaced.
#   - ref: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
#     description: NVSwitch errors (SXid), fatal and not.
# schemas:
#   - input: schema.facts
# custom:
#   severity: high
#   confidence: likely
#   needs:
#     - kernel_log.events
#     - [gpus.devices, transfers.devices]
#   remedies: [reset-gpu, reboot, replace-hardware, reseat-or-fix-pcie-link, update-bios, upgrade-driver, reboot-or-reload-driver]
#   explains: [driver-hang, p2p-broken-platform, p2p-slow, nvlink-down, transfer-failed]
#   profiles: [training]
#   since: "0.1"
package gpudoctor.rules.gpu_fault

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.xid

# signs are what the kernel log, the management library, the bus and the driver
# say against each GPU ("host" where a line names none). What is said of the
# state in force is confirmed. The kernel log keeps what a reset has cured
# since, and carries no mark of it, so an event alone is likely.
#
# Events that a program causes, and those that want no action, are left to
# gpu-events: they explain nothing.
signs[key[0]] contains {
	"severity": xid.severity(key[1]),
	"confidence": "likely",
	"words": sprintf("the kernel log has Xid %d (%s), %s", [key[1], xid.name(key[1]), xid.times(es)]),
	"evidence": [{
		"fact": "kernel_log.events[xid]",
		"value": e.message,
		"source": xid.source,
	} |
		some e in sort(es)
	],
	"remedies": xid.remedies(key[1]),
} if {
	some key, es in events
}

# events are the Xids of one code at one GPU.
events[[where(e), e.code]] contains e if {
	some e in input.kernel_log.events
	e.kind == "xid"
	is_number(e.code)
	xid.meaning[e.code].class in {"fault", "link"}
	not nvlink_code(e.code)
}

# nvlink_code is true of the Xids of NVLinks, which nvlink-down tells.
nvlink_code(code) if code == 74

nvlink_code(code) if code in numbers.range(144, 150)

where(e) := e.address if {
	e.address != ""
} else := "host"

# A launch that no program can have asked for: the GPU's scheduler (SKED) checks
# the descriptor of a kernel, which the CUDA runtime builds within the limits, and
# finds most of its fields impossible at once. Such a descriptor was damaged on the
# way to the GPU or in its memory; a riser, a slot or a cable is the first suspect
# (noonghunna/club-3090 issue 751). Single failed checks are a program's error.
signs[address] contains {
	"severity": "high",
	"confidence": "likely",
	"words": sprintf("it refused a kernel whose descriptor is impossible in %d ways at once (Xid 13, %s): commands or data are damaged on the way to it, over PCIe, or in its memory", [
		count(checks), concat(", ", [c | some i, c in sort(checks); i < 3]),
	]),
	"evidence": [{"fact": "kernel_log.events[xid]", "value": e.message, "source": xid.source} |
		some e in xid.impossible_launches[address]
	],
	"remedies": ["reseat-or-fix-pcie-link", "reset-gpu", "replace-hardware"],
} if {
	some address, checks in xid.impossible_checks
}

# An error of PCIe that was not corrected, for which the kernel asks the driver of
# the GPU and gets no answer (report_error_detected, drivers/pci/pcie/err.c): the
# GPU is gone until a reset.
signs[where(e)] contains {
	"severity": "high",
	"confidence": "likely",
	"words": "PCIe met an error on the way to it that cannot be corrected, from which its driver does not recover",
	"evidence": [{"fact": "kernel_log.events[aer]", "value": e.message, "source": xid.source}],
	"remedies": ["reseat-or-fix-pcie-link", "reboot", "replace-hardware"],
} if {
	some e in input.kernel_log.events
	e.kind == "aer"
	regex.match(`^nvidia [0-9a-f]{4,8}:.*(no AER-aware driver|no error_detected callback)`, e.message)
}

# What CUDA and NVIDIA's tools say of a GPU in a log. Each row: the messages, the
# severity, the confidence, words and what helps.
statements := [
	[{"cuda-ecc"}, "critical", "confirmed", "CUDA met a memory error that cannot be corrected (214)", ["replace-hardware", "reset-gpu", "reboot"]],
	[{"gpu-lost"}, "critical", "confirmed", driver_errors.nvml.GPU_IS_LOST.words, off_bus],
	[{"gpu-handle-failed"}, "critical", "confirmed", "it does not answer the driver", off_bus],
	[{"gpu-needs-reset"}, "critical", "confirmed", driver_errors.nvml.RESET_REQUIRED.words, reset],
	[{"nccl-diag-ecc"}, "high", "confirmed", "NCCL's diagnostics count memory errors that could not be corrected since the driver was loaded", reset],
	[{"nvsmi-err"}, "high", "likely", "nvidia-smi cannot read its state (ERR!)", reset],
	[{"gpu-inforom-corrupted"}, "low", "likely", "its information ROM is damaged", ["replace-hardware"]],
	[{"cuda-hardware-stack"}, "medium", "possible", "CUDA met a hardware error of its stack (714)", reset],
]

signs[spoken_of(m)] contains {
	"severity": severity,
	"confidence": confidence,
	"words": words,
	"evidence": [logs.evidence(m)],
	"remedies": remedies,
	"order": m.order,
} if {
	some [ids, severity, confidence, words, remedies] in statements
	some m in logs.messages(ids)
}

# NCCL and others hand on CUDA's text.
signs.host contains {
	"severity": "critical",
	"confidence": "confirmed",
	"words": "CUDA met a memory error that cannot be corrected (214)",
	"evidence": [logs.evidence(m)],
	"remedies": ["replace-hardware", "reset-gpu", "reboot"],
	"order": m.order,
} if {
	some m in logs.complaints
	not m.id in {"cuda-ecc"}
	m.role != "consequence"
	contains(m.text, "uncorrectable ECC error encountered")
}

# spoken_of is the GPU that a message names, by address or by index.
spoken_of(m) := address if {
	address := regex.replace(lower(m.fields.gpu), `^0000([0-9a-f]{4}:)`, "$1")
	facts.is_address(address)
} else := facts.named[i].address if {
	some i
	facts.named[i].index == to_number(m.fields.gpu)
} else := "host"

sxids contains e if {
	some e in input.kernel_log.events
	e.kind == "sxid"
	is_number(e.code)
}

findings contains {
	"subject": where(e),
	"message": sprintf("The kernel log has SXid %d of an NVSwitch: the whole fabric is concerned. A reset since then may have cured it.", [e.code]),
	"evidence": [{"fact": "kernel_log.events[sxid]", "value": e.message, "source": xid.source}],
	"params": {"gpus": sort([gpu | some gpu in facts.gpus]), "sxid": e.code},
	"severity": xid.sxid_severity(e),
	"confidence": "likely",
	"remedies": reset,
} if {
	some e in sxids
	xid.sxid_severity(e) != "info"
}

signs[g.address] contains {
	"severity": "critical",
	"words": sprintf("NVML answers %s: %s", [g.error, driver_errors.nvml[bare(g.error)].words]),
	"confidence": "confirmed",
	"evidence": [{"fact": fact(g.address, "error"), "value": g.error, "source": "nvmlDeviceGetHandleByPciBusId"}],
	"remedies": driver_errors.nvml[bare(g.error)].remedies,
} if {
	some g in input.gpus.devices
	driver_errors.nvml[bare(g.error)]
}

# off_bus helps a GPU that no longer answers on the bus, over which it cannot be reset.
off_bus := driver_errors.nvml.GPU_IS_LOST.remedies

# bare drops the prefix that NVML's names have in its header.
bare(name) := trim_prefix(trim_prefix(name, "NVML_"), "ERROR_")

signs[g.address] contains {
	"severity": "high",
	"words": sprintf("%d memory errors that could not be corrected since the driver was loaded", [g.ecc.volatile_uncorrected]),
	"confidence": "confirmed",
	"evidence": [{"fact": fact(g.address, "ecc.volatile_uncorrected"), "value": g.ecc.volatile_uncorrected, "source": "nvmlDeviceGetTotalEccErrors"}],
	"remedies": reset,
} if {
	some g in input.gpus.devices
	g.ecc.volatile_uncorrected > 0
}

reset := ["reset-gpu", "reboot", "replace-hardware"]

# flags are the marks that NVML keeps of a GPU's memory: the section that holds
# it, the field, severity, words, the call, and what helps.
flags := [
	["remapped_rows", "pending", "high", "a row remapping waits for a reset", "nvmlDeviceGetRemappedRows", ["reset-gpu"]],
	["remapped_rows", "failed", "high", "a row remapping failed, so a memory cell that is known to be bad stays in use", "nvmlDeviceGetRemappedRows", ["replace-hardware", "reset-gpu"]],
	["ecc", "retired_pages_pending", "high", "a page retirement waits for a reset", "nvmlDeviceGetRetiredPagesPendingStatus", ["reset-gpu"]],
	["ecc", "sram_threshold_exceeded", "high", "uncorrectable errors of its on-chip memory have passed NVIDIA's threshold", "nvmlDeviceGetSramEccErrorStatus", ["replace-hardware"]],
	["ecc", "unrepairable_memory", "high", "its memory is marked as beyond repair", "nvmlDeviceGetRepairStatus", ["replace-hardware"]],
	["ecc", "channel_repair_pending", "medium", "a repair of a memory channel waits for a reset", "nvmlDeviceGetRepairStatus", ["reset-gpu"]],
]

signs[g.address] contains {
	"severity": severity,
	"words": words,
	"confidence": "confirmed",
	"evidence": [{"fact": fact(g.address, sprintf("%s.%s", [section, field])), "value": true, "source": source}],
	"remedies": remedies,
} if {
	some g in input.gpus.devices
	some [section, field, severity, words, source, remedies] in flags
	g[section][field] == true
}

# recovery is what each recovery action of NVML means.
recovery := {
	"gpu-reset": ["high", ["reset-gpu", "reboot"]],
	"node-reboot": ["critical", ["reboot", "replace-hardware"]],
	"drain-p2p": ["high", ["reset-gpu", "reboot"]],
	"drain-and-reset": ["high", ["reset-gpu", "reboot"]],
	"recover-imex-domain": ["high", ["reboot"]],
}

signs[g.address] contains {
	"severity": recovery[g.recovery_action][0],
	"words": sprintf("NVML asks for the recovery action %q", [g.recovery_action]),
	"confidence": "confirmed",
	"evidence": [{"fact": fact(g.address, "recovery_action"), "value": g.recovery_action, "source": "nvmlDeviceGetFieldValues (NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)"}],
	"remedies": recovery[g.recovery_action][1],
} if {
	some g in input.gpus.devices
	recovery[g.recovery_action]
}

# stillborn are GPUs that the driver could not start, as its messages have it, for
# a reason that no other rule has: modules of the wrong kind or version are for
# driver-library-mismatch, and BARs without room for bar-too-small.
stillborn[where(e)] contains e if {
	count(input.texts) > 0
	some e in input.kernel_log.events
	e.kind == "nvrm"
	contains(e.message, "RmInitAdapter failed")
	count(elsewhere) == 0
}

elsewhere contains e if {
	some e in input.kernel_log.events
	e.kind == "bar"
}

elsewhere contains e if {
	some e in input.kernel_log.events
	e.kind == "nvrm"
	regex.match(`API mismatch|requires use of the NVIDIA open kernel modules`, e.message)
}

signs[address] contains {
	"severity": "high",
	"confidence": "likely",
	"words": "the driver could not start it (RmInitAdapter failed), so that no program gets it: its firmware does not come up, it lacks power, or it sits badly",
	"evidence": [{"fact": "kernel_log.events[nvrm]", "value": e.message, "source": xid.source} | some e in sort(es)],
	"remedies": ["reboot-or-reload-driver", "reset-gpu", "reseat-or-fix-pcie-link", "upgrade-driver", "replace-hardware"],
} if {
	some address, es in stillborn
}

# In the PCI tree, bound to NVIDIA's driver, and not in NVML although that
# answered: the driver gave it up. One that is bound to another driver, or that
# the driver was told to leave alone, or that a container was not given, is as
# somebody wants it.
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

# given_up are those of which that is sure. From a user a scheduler may keep
# GPUs by a device cgroup, of which nothing is seen; the kernel log tells.
given_up := missed if {
	facts.is_root == true
} else := {address |
	some address in missed
	some e in input.kernel_log.events
	e.kind in {"nvrm", "xid"}
	e.address == address
}

signs[address] contains {
	"severity": "high",
	"words": "it is bound to the NVIDIA driver, which does not offer it",
	"confidence": "confirmed",
	"evidence": [{"fact": fact(address, "in_nvml"), "value": false, "source": "nvmlDeviceGetCount"}],
	"remedies": reset,
} if {
	some address in given_up
}

findings contains {
	"subject": peers.shorten(withheld),
	"affects": sort(withheld),
	"message": sprintf("NVML offers this user %d of the %d GPUs that the NVIDIA driver serves. A scheduler that gave this job no more does that; else the driver gave up the rest, which root can tell.", [
		count(facts.gpus) - count(missed), count(facts.gpus),
	]),
	"evidence": [{"fact": fact(address, "in_nvml"), "value": false, "source": "nvmlDeviceGetCount"} | some address in sort(withheld)],
	"severity": "low",
	"confidence": "possible",
	"remedies": [],
} if {
	withheld := missed - given_up
	count(withheld) > 0
}

excluded contains d.address if {
	some d in input.container.driver_devices
	d.excluded == true
}

# A device that is gone answers every read with ones. One that its driver has
# not claimed may be switched off by intent.
signs[g.address] contains {
	"severity": "critical",
	"words": "its configuration space reads as all ones: it no longer answers on the bus",
	"confidence": "confirmed",
	"evidence": [{"fact": sprintf("pci.devices[%s].off_bus", [g.address]), "value": true, "source": sprintf("/sys/bus/pci/devices/%s/config", [g.address])}],
	"remedies": off_bus,
} if {
	some g in input.gpus.devices
	pci.device[g.address].off_bus == true
	pci.device[g.address].driver == "nvidia"
}

# Where a text shows the bus and not who drives what, another GPU of the same
# vendor that answers says that this is no notebook whose only discrete GPU sleeps.
signs[d.address] contains {
	"severity": "critical",
	"words": "its configuration space reads as all ones (lspci: rev ff): it no longer answers on the bus",
	"confidence": "likely",
	"evidence": [{"fact": sprintf("pci.devices[%s].off_bus", [d.address]), "value": true, "source": "lspci"}],
	"remedies": off_bus,
} if {
	some d in input.pci.devices
	d.kind == "gpu"
	d.off_bus == true
	count(input.texts) > 0
	object.get(d, "driver", "") == ""
	some other in input.pci.devices
	other.kind == "gpu"
	other.vendor == d.vendor
	other.address != d.address
	not other.off_bus == true
}

signs[d.address] contains {
	"severity": "critical",
	"words": sprintf("the CUDA driver could not make it ready (%s)", [object.get(d, "error_name", d.outcome)]),
	"confidence": "confirmed",
	"evidence": [{"fact": sprintf("transfers.devices[%s].outcome", [d.address]), "value": d.outcome, "source": "probe"}],
	"remedies": reset,
} if {
	some d in input.transfers.devices
	device_failed(d)
}

device_failed(d) if d.outcome == "hang"

device_failed(d) if {
	d.outcome == "error"
	d.error_code in driver_errors.hardware
}

# Data that is lost on the way through host memory too was not lost between
# the GPUs. It needs the GPU that all failing transfers have in common, where
# there is one.
staged_failures contains t if {
	some t in input.transfers.transfers
	t.test == "host-staged"
	facts.is_address(t.source)
	facts.is_address(t.destination)
	peers.failed(t)
}

suspects := {address |
	some t in array.slice(sort(staged_failures), 0, 1)
	some address in [t.source, t.destination]
	every other in staged_failures {
		address in [other.source, other.destination]
	}
}

findings contains {
	"subject": subject(involved),
	"affects": sort(involved),
	"message": sprintf("Transfers through host memory failed too (%s), so it is not peer-to-peer access that is at fault but %s.", [
		concat(", ", sort({t.outcome | some t in staged_failures})), blame(involved),
	]),
	"evidence": [{
		"fact": sprintf("transfers.transfers[%s]", [facts.pair_name(t.source, t.destination)]),
		"value": object.filter(t, ["test", "outcome", "reason", "found", "bad_bytes", "error_name"]),
		"source": "probe",
	} |
		some t in sort(staged_failures)
	],
	"accounts_for": sort({peers.named(t) | some t in staged_failures} | {peers.named(t) | some t in beside_staged}),
	"params": {"gpus": sort(involved)},
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": reset,
} if {
	count(staged_failures) > 0
	involved := accused
}

# beside_staged are the transfers between the same GPUs that failed without the
# host.
beside_staged contains t if {
	some s in staged_failures
	some t in peers.trouble[peers.key(s.source, s.destination)]
}

beside_staged contains t if {
	some s in staged_failures
	some t in peers.sluggish[peers.key(s.source, s.destination)]
}

accused := suspects if {
	count(suspects) == 1
} else := {address | some t in staged_failures; some address in [t.source, t.destination]}

subject(involved) := facts.list(involved) if {
	count(involved) <= 2
} else := "host"

blame(involved) := "this GPU or its link" if {
	count(involved) == 1
} else := "a GPU, its link or the host"

order := ["critical", "high", "medium", "low"]

# said_at is where in the logs the first of these signs stands.
said_at(ss) := {"order": min(places)} if {
	places := {s.order | some s in ss}
	count(places) > 0
} else := {}

findings contains object.union(
	{
		"subject": place,
		"affects": affects(place),
		"message": sprintf("%s: %s.%s%s", [spoken(place), concat("; ", sort({s.words | some s in ss})), doubt(confidence), way_back(remedies[0])]),
		"evidence": [e | some s in sort(ss); some e in s.evidence],
		"params": {"gpus": affects(place), "devices": affects(place)},
		"severity": order[rank],
		"confidence": confidence,
		"remedies": remedies,
	},
	said_at(ss),
) if {
	some address, ss in signs
	place := placed(address)
	rank := min({i | some i, name in order; some s in ss; s.severity == name})
	worst := {s | some s in ss; s.severity == order[rank]}
	confidence := sort({s.confidence | some s in worst})[0] # "confirmed" sorts before "likely".
	remedies := sort([s.remedies | some s in worst])[0] # "reboot" sorts before "reset-gpu".
}

# placed: NVML may know that a GPU is lost, and no longer where it was.
placed(address) := address if {
	address != ""
} else := "host"

# affects is empty, which means the whole host, where no GPU is named.
affects(place) := [place] if {
	place in facts.gpus
} else := []

spoken(place) := sprintf("GPU %s", [place]) if {
	place != "host"
} else := "A GPU"

doubt("confirmed") := ""

doubt("likely") := " A reset since then may have cured it."

doubt("possible") := ""

# way_back says what a restart may not do.
way_back("reboot") := " It comes back by a restart, or only when the power is switched off and on."

way_back(remedy) := "" if remedy != "reboot"

# fact is the path of a GPU's fact.
fact(address, name) := sprintf("gpus.devices[%s].%s", [address, name])

missing contains {"fact": "kernel_log", "words": "the kernel log was not readable"} if {
	not input.kernel_log
	count(signs) == 0
	not no_gpu
}

missing contains {"fact": "gpus.devices[].ecc", "words": "NVML did not answer"} if {
	input.gpus.nvml != "ok"
	some g in input.gpus.devices
	g.vendor == "nvidia"
}

missing contains {"fact": "gpus.devices[].ecc", "words": "NVML did not answer"} if {
	input.gpus.nvml != "ok"
	count(facts.offered) > 0
	not facts.only_amd
}

no_gpu if count(facts.gpus) == 0

not_applicable contains "no GPU" if no_gpu
