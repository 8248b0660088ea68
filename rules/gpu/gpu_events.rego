# METADATA
# title: The kernel log has GPU events that do not indicate a fault
# description: >-
#   Xids that are caused by an error in a program, that follow from another event, or that need no action now. They
#   matter if a job failed at the same time, but are not evidence against the GPU. An Xid that gpudoctor does not know
#   may be any fault: look it up in NVIDIA's catalog.
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

faults := {"fault", "link"}

# events are the Xids of one code at one GPU, without those that are a fault of it
# (gpu-fault judges those) and without the consequences of such a fault at the same GPU.
events[[xid.event_place(e), e.code]] contains e if {
	some e in pci.events.xid
	is_number(e.code)
	not faulty(e.code)
	not outweighed(e)
	not damaged(e)
}

# damaged is true of events that gpu-fault judges: launches that no program asked for.
damaged(e) if {
	e.code == 13
	xid.impossible_checks[xid.event_place(e)]
}

faulty(code) if xid.meaning[code].class in faults

outweighed(e) if {
	xid.meaning[e.code].class in {"application", "secondary"}
	xid.event_place(e) in faulty_places
}

faulty_places contains xid.event_place(e) if {
	some e in pci.events.xid
	faulty(e.code)
}

findings contains {
	"subject": place,
	"affects": facts.gpus_at(place),
	"message": sprintf("The kernel log has Xid %d (%s), %s. %s", [code, xid.name(code), xid.times(es), afterword(code)]),
	"evidence": pci.event_evidence(es),
	"severity": xid.severity(code),
	"confidence": confidence(code),
	"remedies": xid.remedies(code),
} if {
	some key, es in events
	[place, code] := key
}

afterword(code) := {
	"application": "The usual cause is an error in a program.",
	"secondary": "It follows from another event, and alone is not evidence against the GPU.",
	"note": "No action is needed now.",
}[xid.meaning[code].class] if {
	xid.meaning[code]
} else := "Look it up in NVIDIA's catalog (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html): it may be a GPU fault."

confidence(code) := "likely" if {
	xid.meaning[code]
} else := "possible"

asks contains "kernel_log.events[].code" if count(pci.events.xid) > 0

not_applicable contains "no GPU" if count(facts.gpus) == 0
