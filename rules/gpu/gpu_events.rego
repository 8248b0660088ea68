# METADATA
# title: The kernel log has GPU events that do not indicate a fault
# description: >-
#   Xids that are caused by an error in a program, that follow from another event, or that need no action now. They
#   matter if a job failed at the same time. An Xid that gpudoctor does not know may be any fault.
# related_resources:
#   - ref: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
#     description: NVIDIA's catalog of Xid codes.
# custom:
#   severity: low
#   confidence: likely
#   cause: gpu-fault
#   areas: [gpus, kernel-log]
#   needs:
#     - kernel_log.events
#     - [gpus.devices, transfers.devices]
#   remedies: [fix-application, reset-gpu, other]
#   since: "0.1"
package gpudoctor.rules.gpu_events

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.pci
import data.gpudoctor.lib.xid

# events are the Xids of one code at one GPU. Rule gpu-fault judges the others, and launches that no program asked for.
events[[pci.place(e), e.code]] contains e if {
	some e in pci.events.xid
	not xid.meaning(e.code).class in {"fault", "link"}
	not rejected(e)
}

rejected(e) if {
	e.code == 13
	xid.impossible_launches[pci.place(e)]
}

findings contains {
	"subject": place,
	"affects": facts.gpus_at(place),
	"message": sprintf("The kernel log has %s. %s", [xid.text(code, es), afterword[xid.meaning(code).class]]),
	"evidence": pci.event_evidence(es),
	"severity": xid.meaning(code).severity,
	"confidence": {true: "possible", false: "likely"}[xid.meaning(code).class == "unknown"],
	"remedies": xid.remedies(code),
} if some [place, code], es in events

afterword := {
	"application": "The usual cause is an error in a program.",
	"secondary": "It follows from another event, and alone is not evidence against the GPU.",
	"note": "No action is needed now.",
	"unknown": "Look it up in NVIDIA's catalog (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html): it may be a GPU fault.",
}

asks contains "kernel_log.events[].code" if count(pci.events.xid) > 0

not_applicable contains "no GPU" if count(facts.gpus) == 0
