# METADATA
# title: A GPU, or the path to it, is faulty
# description: >-
#   The kernel log, the management library or the PCI bus reports a GPU fault: the GPU fell off the bus, has
#   uncorrectable memory errors, or does not respond. Programs on it fail, and every job that includes it fails with
#   them.
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
#   explains: [launch-failed/node-failed, driver-hang, gpu-missing, p2p-broken-platform, p2p-slow, nvlink-down, transfer-failed, collective-failed]
#   since: "0.1"
package gpudoctor.rules.gpu_fault

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.gpu_state
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.peers
import data.gpudoctor.lib.transfers
import data.gpudoctor.lib.xid

# signs are what the kernel log, programs, the management library, the bus and the driver say against each GPU ("host"
# where a line names none, or NVML no longer knows where a lost GPU was). What is said of the state in force is
# confirmed. The kernel log keeps what a reset has cured since, and carries no mark of it, so an event alone is likely.
signs[pci.place({"address": address})] contains s if {
	some address, ss in gpu_state.signs
	some s in ss
}

logged(events, severity, words, remedies) := {
	"severity": severity,
	"confidence": "likely",
	"words": words,
	"evidence": pci.event_evidence(events),
	"remedies": remedies,
}

signs[place] contains logged(es, xid.meaning(code).severity, words, xid.remedies(code)) if {
	some [place, code], es in events
	words := sprintf("the kernel log has %s", [xid.text(code, es)])
}

# events are the Xids of one code at one GPU, without those of NVLinks, which nvlink-down reports.
events[[pci.place(e), e.code]] contains e if {
	some e in pci.events.xid
	xid.meaning(e.code).class in {"fault", "link"}
	not e.code in gpu_state.nvlink_xids
}

# A launch that no program can have asked for: the GPU's scheduler (SKED) checks the descriptor of a kernel, which the
# CUDA runtime builds within the limits, and finds most of its fields impossible at once. Such a descriptor was damaged
# on the way to the GPU or in its memory; a riser, a slot or a cable is the first suspect (noonghunna/club-3090 issue
# 751). Single failed checks are a program's error.
signs[address] contains logged(es, "high", words, ["reseat-or-fix-pcie-link", "reset-gpu", "replace-hardware"]) if {
	some address, es in xid.impossible_launches
	words := sprintf("it rejected a kernel whose descriptor is invalid in several ways at once (Xid 13, %s): commands or data are corrupted on the way to it, over PCIe, or in its memory", [
		facts.few({e.fields.check | some e in es}),
	])
}

# An error of PCIe that was not corrected, for which the kernel asks the driver of the GPU and gets no answer
# (report_error_detected, drivers/pci/pcie/err.c): the GPU is gone until a reset.
signs[pci.place(e)] contains logged({e}, "high", words, ["reseat-or-fix-pcie-link", "reboot", "replace-hardware"]) if {
	some e in input.kernel_log.events
	e.id == "kernel-aer-no-recovery"
	e.fields.driver == "nvidia"
	words := "PCIe reported an uncorrectable error on the path to it, from which its driver cannot recover"
}

# A GPU that the driver could not start. Modules of the wrong kind or version are for driver-library-mismatch, and BARs
# without room for bar-too-small.
signs[pci.place(e)] contains logged({e}, "high", words, ["reboot-or-reload-driver", "reset-gpu", "reseat-or-fix-pcie-link", "upgrade-driver", "replace-hardware"]) if {
	count(input.texts) > 0
	some e in pci.events.nvrm
	e.id == "nvrm-init-failed"
	not pci.events.bar
	count({other.id | some other in pci.events.nvrm} & {"nvrm-api-mismatch-event", "nvrm-open-modules-required"}) == 0
	words := "the driver could not initialize it (RmInitAdapter failed), so no program can use it: its firmware does not start, it lacks power, or it is badly seated"
}

statements := {
	"gpu-handle-failed": ["critical", "confirmed", "it does not respond to the driver", gpu_state.off_bus],
	"nvsmi-err": ["high", "likely", "nvidia-smi cannot read its state (ERR!)", gpu_state.reset],
	"gpu-inforom-corrupted": ["low", "likely", "its InfoROM is corrupted", ["replace-hardware"]],
}

signs[spoken_of(m)] contains {
	"severity": severity,
	"confidence": confidence,
	"words": words,
	"evidence": [],
	"said": m,
	"remedies": remedies,
} if {
	some id, [severity, confidence, words, remedies] in statements
	some m in logs.by_id[id]
}

# spoken_of is the GPU that a message names, by address or by index.
spoken_of(m) := address if {
	address := regex.replace(lower(m.fields.gpu), `^0000([0-9a-f]{4}:)`, "$1")
	facts.is_address(address)
} else := facts.named[i].address if {
	some i
	facts.named[i].index == to_number(m.fields.gpu)
} else := "host"

findings contains {
	"subject": pci.place(e),
	"message": sprintf("The kernel log has SXid %d of an NVSwitch, which may affect the whole fabric. NVIDIA's Fabric Manager guide lists these codes.", [e.code]),
	"evidence": pci.event_evidence({e}),
	"params": {"gpus": [gpu | some gpu in facts.gpus]},
	"severity": xid.sxid_severity(e),
	"confidence": object.get({"critical": "likely", "high": "likely"}, xid.sxid_severity(e), "possible"),
	"remedies": gpu_state.reset,
} if {
	some e in pci.events.sxid
	xid.sxid_severity(e) != "info"
}

findings contains {
	"subject": peers.shorten(withheld),
	"affects": sort(withheld),
	"message": sprintf("NVML does not offer this user %d of the %d GPUs that the NVIDIA driver manages. Either a scheduler gave this job only the others, or the driver lost them, which root can check.", [count(withheld), count(facts.gpus)]),
	"evidence": facts.gpu_evidence(withheld, "in_nvml", "nvmlDeviceGetCount"),
	"severity": "low",
	"confidence": "possible",
	"remedies": [],
} if {
	withheld := gpu_state.missed - gpu_state.given_up
	count(withheld) > 0
}

# Data that is lost on the way through host memory too was not lost between the GPUs. It needs the GPU that all failing
# transfers have in common, where there is one.
staged_failures contains t if {
	some t in input.transfers.transfers
	t.test == "host-staged"
	facts.is_address(t.source)
	facts.is_address(t.destination)
	peers.failed(t)
}

findings contains {
	"subject": {true: facts.list(involved), false: "host"}[count(involved) <= 2],
	"affects": sort(involved),
	"message": sprintf("Transfers through host memory also failed (%s), so the fault is not in peer-to-peer access but in a GPU, its link or the host.", [
		concat(", ", sort({t.outcome | some t in staged_failures})),
	]),
	"evidence": transfers.each(staged_failures, ["test", "outcome", "reason", "found", "bad_bytes", "error_name"]),
	"accounts_for": transfers.accounted(staged_failures | beside_staged),
	"severity": "critical",
	"confidence": "confirmed",
	"remedies": gpu_state.reset,
} if count(staged_failures) > 0

involved := common if {
	count(common) == 1
} else := union(ends)

common := intersection(ends)

ends := {{t.source, t.destination} | some t in staged_failures}

beside_staged contains t if {
	some s in staged_failures
	some failed in [peers.trouble, peers.sluggish]
	some t in failed[peers.key(s.source, s.destination)]
}

order := ["critical", "high", "medium", "low"]

findings contains {
	"subject": place,
	"affects": facts.gpus_at(place),
	"message": sprintf("%s: %s.%s", [
		{true: "A GPU", false: sprintf("GPU %s", [place])}[place == "host"],
		concat("; ", sort({s.words | some s in ss})),
		{"likely": " A later reset may have cleared it.", "confirmed": ""}[confidence],
	]),
	"evidence": [e | some s in sort(ss); some e in s.evidence],
	"messages": {s.said | some s in ss},
	"severity": order[rank],
	"confidence": confidence,
	"remedies": remedies,
} if {
	some place, ss in signs
	rank := min({i | some i, name in order; some s in ss; s.severity == name})
	worst := {s | some s in ss; s.severity == order[rank]}
	confidence := sort({s.confidence | some s in worst})[0] # "confirmed" sorts before "likely".
	remedies := sort([s.remedies | some s in worst])[0] # "reboot" sorts before "reset-gpu".
}

asks contains "gpus.devices[].ecc" if {
	input.gpus.nvml != "ok"
	not facts.only_amd
}

not_applicable contains "no GPU" if count(facts.gpus) == 0
