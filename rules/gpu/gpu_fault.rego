# METADATA
# title: A GPU, or the path to it, is faulty
# description: >-
#   The kernel log, the management library or the PCI bus reports a GPU fault: the GPU fell off the bus, has
#   uncorrectable memory errors, or does not respond. Programs on it fail, and every job that includes it.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
#     description: NVIDIA's catalog of Xid codes with the immediate action for each.
#   - ref: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
#     description: Row remapping, and when to replace a GPU.
#   - ref: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
#     description: NVSwitch errors (SXid), fatal and non-fatal.
# custom:
#   severity: high
#   confidence: likely
#   areas: [gpus, kernel-log]
#   needs:
#     - kernel_log.events
#     - [gpus.devices, transfers.devices]
#   remedies: [reset-gpu, reboot, replace-hardware, reseat-or-fix-pcie-link, update-bios, upgrade-driver, reboot-or-reload-driver]
#   explains: [gpu-visibility/not-present, launch-failed/node-failed, driver-hang, gpu-missing, p2p-broken-platform, p2p-slow, nvlink-down, transfer-failed, collective-failed, failure-area]
#   since: "0.1"
#   grades:
#     state: {confidence: confirmed, text: "{gpu|A GPU}: {words}."}
#     logged: "{gpu|A GPU}: {words}. A later reset may have cleared it."
#     nvswitch: "The kernel log has SXid {code} of an NVSwitch (see NVIDIA's Fabric Manager guide), which may affect the whole fabric."
#     staged:
#       severity: critical
#       confidence: confirmed
#       text: >-
#         Transfers through host memory also failed ({outcomes:comma}), so the fault is not in peer-to-peer access but in
#         a GPU, its link or the host.
package gpudoctor.rules.gpu_fault

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.transfers
import data.gpudoctor.lib.xid

reset := ["reset-gpu", "reboot", "replace-hardware"]

# sign is what says that a GPU is at fault, or one of the host's where NVML no longer knows where a lost GPU was. The
# signs of one GPU become one finding (params.fault). What the kernel log keeps, a reset may have cured since.
sign(grade, address, severity, words, evidence, remedies) := {
	"grade": grade,
	"subject": place,
	"affects": facts.gpus_at(place),
	"about": {"gpu": [sprintf("GPU %s", [place]) | place != "host"], "words": words},
	"evidence": evidence,
	"severity": severity,
	"remedies": remedies,
	"params": {"fault": "gpu"},
} if place := pci.place({"address": address})

of_gpu(g, field, value) := [{"fact": sprintf("gpus.devices[%s].%s", [g.address, field]), "value": value, "source": "NVML"}]

findings contains sign("state", g.address, "critical", words, of_gpu(g, "error", g.error), answer.remedies) if {
	some g in input.gpus.devices
	answer := driver_errors.nvml[trim_prefix(trim_prefix(g.error, "NVML_"), "ERROR_")]
	words := sprintf("NVML returns %s: %s", [g.error, answer.words])
}

findings contains sign("state", g.address, "high", words, of_gpu(g, "ecc.volatile_uncorrected", errors), reset) if {
	some g in input.gpus.devices
	errors := g.ecc.volatile_uncorrected
	errors > 0
	words := sprintf("%d uncorrectable memory errors since the driver was loaded", [errors])
}

flags := [
	["remapped_rows", "pending", "a row remapping is pending and needs a reset", ["reset-gpu"]],
	["remapped_rows", "failed", "a row remapping failed, so a known bad memory cell is still in use", ["replace-hardware", "reset-gpu"]],
	["ecc", "retired_pages_pending", "a page retirement is pending and needs a reset", ["reset-gpu"]],
	["ecc", "sram_threshold_exceeded", "uncorrectable errors of its on-chip memory exceed NVIDIA's threshold", ["replace-hardware"]],
	["ecc", "unrepairable_memory", "its memory is beyond repair", ["replace-hardware"]],
	["ecc", "channel_repair_pending", "a memory channel repair is pending and needs a reset", ["reset-gpu"]],
]

findings contains sign("state", g.address, "high", words, of_gpu(g, sprintf("%s.%s", [section, field]), true), remedies) if {
	some g in input.gpus.devices
	some [section, field, words, remedies] in flags
	g[section][field] == true
}

recovery := {
	"gpu-reset": ["reset-gpu", "reboot"], "drain-p2p": ["reset-gpu", "reboot"], "drain-and-reset": ["reset-gpu", "reboot"],
	"node-reboot": ["reboot", "replace-hardware"], "recover-imex-domain": ["reboot"],
}

findings contains sign("state", g.address, "high", words, of_gpu(g, "recovery_action", g.recovery_action), recovery[g.recovery_action]) if {
	some g in input.gpus.devices
	words := sprintf("NVML recommends the recovery action %q", [g.recovery_action])
}

# Bound to NVIDIA's driver, and not in NVML although that answered. Excluded GPUs are that way on purpose.
findings contains sign("state", g.address, "high", words, of_gpu(g, "in_nvml", false), reset) if {
	words := "NVML does not offer it although the NVIDIA driver is bound to it"
	input.gpus.nvml == "ok"
	input.container.inside == false
	some g in input.gpus.devices
	g.in_nvml == false
	object.get(g, "error", "") == ""
	pci.device[g.address].driver == "nvidia"
	not g.address in excluded
	given_up(g.address)
}

excluded := {d.address | some d in input.container.driver_devices; d.excluded == true}

# A scheduler may hide GPUs from a user with a device cgroup, which leaves no trace; root, or the kernel log, decides.
given_up(_) if facts.is_root == true

given_up(address) if {
	some e in input.kernel_log.events
	e.kind in {"nvrm", "xid"}
	e.address == address
}

# A device that is gone answers every read with ones. One that its driver has not claimed may be switched off by intent.
findings contains sign("state", d.address, "critical", words, evidence, driver_errors.nvml.GPU_IS_LOST.remedies) if {
	some d in input.pci.devices
	d.off_bus == true
	d.kind == "gpu"
	in_use(d)
	words := "its configuration space reads as all ones (lspci: rev ff): it no longer responds on the bus"
	evidence := [{"fact": sprintf("pci.devices[%s].off_bus", [d.address]), "value": true, "source": "/sys/bus/pci/devices"}]
}

in_use(d) if d.driver == "nvidia"

# Where a text shows the bus and not who drives what, another GPU of the same vendor that answers says that this is no
# notebook whose only discrete GPU sleeps.
in_use(d) if {
	count(input.texts) > 0
	object.get(d, "driver", "") == ""
	d.vendor in {other.vendor | some other in input.pci.devices; other.kind == "gpu"; not other.off_bus == true}
}

findings contains sign("state", d.address, "critical", words, transfers.device_evidence({d.address}), reset) if {
	some d in input.transfers.devices
	lost(d)
	words := sprintf("the CUDA driver could not initialize it (%s)", [object.get(d, "error_name", d.outcome)])
}

lost(d) if d.outcome == "hang"

lost(d) if {
	d.outcome == "error"
	driver_errors.class(d.error_code).name == "hardware"
}

findings contains sign("logged", place, xid.meaning(code).severity, words, pci.event_evidence(es), xid.remedies(code)) if {
	some [place, code], es in events
	words := sprintf("the kernel log has %s", [xid.text(code, es)])
}

# events are the Xids of one code at one GPU, without those of NVLinks, which nvlink-down reports.
events[[pci.place(e), e.code]] contains e if {
	some e in pci.events.xid
	xid.meaning(e.code).class in {"fault", "link"}
	not e.code in xid.of_nvlink
}

# A launch that no program can have asked for: the GPU's scheduler (SKED) checks the descriptor of a kernel, which the
# CUDA runtime builds within the limits. Such a descriptor was damaged on the way to the GPU or in its memory; a riser, a
# slot or a cable is the first suspect (noonghunna/club-3090 issue 751).
findings contains sign("logged", address, "high", words, pci.event_evidence(es), remedies) if {
	some address, es in xid.impossible_launches
	remedies := ["reseat-or-fix-pcie-link", "reset-gpu", "replace-hardware"]
	words := sprintf("it rejected a kernel whose descriptor is invalid in several ways at once (Xid 13, %s): commands or data are corrupted on the way to it, over PCIe, or in its memory", [
		facts.few({e.fields.check | some e in es}),
	])
}

findings contains {
	"grade": "nvswitch",
	"subject": pci.place(e),
	"about": {"code": e.code},
	"evidence": pci.event_evidence({e}),
	"params": {"gpus": [gpu | some gpu in facts.gpus]},
	"severity": xid.sxid_severity(e),
	"confidence": {true: "likely", false: "possible"}[xid.sxid_severity(e) in {"critical", "high"}],
	"remedies": reset,
} if {
	some e in pci.events.sxid
	xid.sxid_severity(e) != "info"
}

# Data that is lost on the way through host memory too was not lost between the GPUs.
staged contains t if {
	some t in input.transfers.transfers
	t.test == "host-staged"
	facts.is_address(t.source)
	facts.is_address(t.destination)
	peers.failed(t)
}

findings contains {
	"grade": "staged",
	"subject": {true: facts.list(involved), false: "host"}[count(involved) <= 2],
	"affects": sort(involved),
	"about": {"outcomes": sort({t.outcome | some t in staged})},
	"evidence": transfers.each(staged, ["test", "outcome", "reason", "found", "bad_bytes", "error_name"]),
	"accounts_for": transfers.accounted(staged | beside_staged),
	"remedies": reset,
} if count(staged) > 0

# involved is the GPU that all failing transfers have in common, where there is one.
involved := {true: intersection(ends), false: union(ends)}[count(intersection(ends)) == 1]

ends := {{t.source, t.destination} | some t in staged}

beside_staged := {t |
	some s in staged
	some failed in [peers.trouble, peers.sluggish]
	some t in failed[peers.key(s.source, s.destination)]
}

asks contains "gpus.devices[].ecc" if {
	input.gpus.nvml != "ok"
	not facts.only_amd
}

not_applicable contains "no GPU" if count(facts.gpus) == 0
