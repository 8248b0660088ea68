# METADATA
# title: An integrated GPU in addition to cards
# description: >-
#   Programs use it like another card. Each element of found is a finding of
#   rule gpu-visibility, without the fields that all of them share.
package gpudoctor.lib.integrated_gpu

import data.gpudoctor.lib.amd
import data.gpudoctor.lib.facts
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings
import data.gpudoctor.lib.visible_devices as visible
import data.tables.gpu_models

taken := {m | some m in logs.by_id["ggml-rocm-device"]; inside_processor(m)}

cards := logs.by_id["ggml-rocm-device"] - taken

inside_processor(m) if m.fields.architecture in gpu_models.amd_integrated

# A program lists it among the cards.
found contains {
	"message": sprintf("The program uses the integrated GPU (%s) as well as %s%s. Exclude it: set HIP_VISIBLE_DEVICES to the indices of only the cards", [
		concat(", ", sort({sprintf("%s, %s", [m.fields.name, m.fields.architecture]) | some m in taken})),
		concat(", ", sort({m.fields.name | some m in cards})), crash_words,
	]),
	"severity": taken_severity,
	"confidence": "likely",
	"evidence": array.concat(logs.all_evidence(taken | amd.crashes), architectures),
	"order": logs.first(taken).order,
} if {
	count(taken) > 0
	count(cards) > 0
}

default crash_words := ""

crash_words := ", and it crashed" if count(amd.crashes) > 0

default taken_severity := "low"

taken_severity := "critical" if count(amd.crashes) > 0

# The list of the machine's GPUs shows it, and a program crashed without a list in
# force.
found contains {
	"affects": affected,
	"message": sprintf("In addition to %d cards there is an integrated GPU, which programs use unless *_VISIBLE_DEVICES excludes it, and a program crashed on a GPU. Set HIP_VISIBLE_DEVICES to the indices of only the cards to exclude it", [count(amd.discrete)]),
	"severity": "high",
	"confidence": crash_confidence,
	"messages": amd.crashes,
	"evidence": architectures,
} if {
	beside_cards
	count(amd.crashes) > 0
	count(visible.chosen) == 0
}

beside_cards if {
	count(taken) == 0
	count(amd.integrated) > 0
	count(amd.discrete) > 0
}

affected := sort([address | some address in amd.integrated; facts.is_address(address)])

default crash_confidence := "possible"

crash_confidence := "likely" if {
	some m in amd.crashes
	m.program in {"rocr", "hip", "rocblas"}
}

# Nothing crashed, and HIP counts the integrated GPU as device 0, in the order of the
# compute driver's nodes: a program that takes the first GPU computes on it, and one
# that takes all of them waits for the slowest.
found contains {
	"affects": affected,
	"message": sprintf("HIP lists the integrated GPU as device 0, before %d cards: a program that uses the first GPU runs on it, and RCCL over all of them includes it. Set HIP_VISIBLE_DEVICES to the indices of only the cards to exclude it", [count(amd.discrete)]),
	"severity": "low",
	"confidence": "likely",
	"evidence": [{"fact": sprintf("gpus.devices[%s].integrated", [address]), "value": true, "source": "the compute driver's topology"} | some address in sort(amd.integrated)],
} if {
	beside_cards
	integrated_first
	count(amd.crashes) == 0
	count(visible.chosen) == 0
}

integrated_first if {
	input.transfers.api == "hip"
	input.transfers.devices[0].address in amd.integrated
}

integrated_first if {
	count(surroundings.offered) == 0
	nodes := {g.kfd.node | some g in amd.gpus; g.address in amd.integrated; g.kfd}
	others := {g.kfd.node | some g in amd.gpus; g.address in amd.discrete; g.kfd}
	min(nodes) < min(others)
}

# rocBLAS names the integrated GPU itself: a program did compute there.
found contains {
	"message": sprintf("A program runs on the integrated GPU %s, for which ROCm's libraries have no kernels. Exclude it: set HIP_VISIBLE_DEVICES to the indices of only the cards", [m.fields.architecture]),
	"severity": "critical",
	"confidence": "likely",
	"messages": {m},
	"evidence": architectures,
} if {
	count(taken) == 0
	count(amd.discrete) > 0
	some m in logs.by_id["rocblas-no-kernels"]
	inside_processor(m)
}

architectures := [{"fact": sprintf("gpus.devices[%s].architecture", [g.address]), "value": g.architecture, "source": "rocminfo"} |
	some g in amd.gpus
	g.address in amd.integrated
	g.architecture
]
