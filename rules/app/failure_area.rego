# METADATA
# title: The location of a library failure narrows its cause
# description: >-
#   Even a message that the catalog does not know shows where it comes from: a source file, a component, an error code.
#   Each area of a library has a few likely causes, which the finding lists with the evidence and what would decide.
# related_resources:
#   - {ref: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/debug.cc, description: The format of NCCL's log lines}
#   - {ref: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/include/checks.h, description: The trace lines of functions that fail}
# custom:
#   severity: high
#   confidence: possible
#   texts_only: true
#   needs: [job-told]
#   remedies: [other]
#   last_resort: true
#   explains: [job-failed]
#   profiles: [training]
#   since: "0.1"
#   grades:
#     placed: >-
#       {program|A program} reports a problem[ in its code for {area}][ ({file})].[ The error is {codes}.][ The line
#       names {variables}.]
#     topic: >-
#       Somebody tells of trouble, and nothing in the input shows what is at fault; the text speaks of {words}
package gpudoctor.rules.failure_area

import data.gpudoctor.lib.driver_errors
import data.gpudoctor.lib.logs
import data.gpudoctor.lib.trials
import data.tables.areas
import data.tables.codes
import data.tables.driver_errors as table

# placed are the messages that say something is wrong and whose place names a cause, the most informative first: none that
# is a mere consequence, or a warning by which most libraries tell what they do without. Like NCCL's, these are those of
# which no row knows what they say; others have verdicts of their own.
placed := sort([[m.id in passing, m.role == "consequence", m.order, m, causes] |
	some m in (logs.complaints | logs.messages({"nccl-warning", "nccl-fallback"} | passing))
	causes := candidates_of(m.place)
	count(causes) > 0
])

passing := {"ucx-warning", "libfabric-warning", "c10d-warning"}

# A code is stronger evidence than a variable in the line, and a variable than the area. A
# code with only one meaning is used without the others.
candidates_of(place) := of_codes(place) if {
	count(of_codes(place)) == 1
} else := array.concat(of_codes(place), others_of(place))

of_codes(place) := [{"cause": cause, "for": sprintf("the error is %s", [code.name])} |
	some code in place.codes
	not vague(code, place)
	some cause in meaning(code, object.get(place, "area", ""))
]

# vague is true of a code that says the same of anything, where the component that the text names says more.
vague(code, place) if {
	[code.space, driver_errors.class_of[code.number]] == ["cuda", "other"]
	count(area_of(place).causes) > 0
}

meaning(code, area) := means[0].causes if {
	table := {"errno": codes.errno, "ibverbs": codes.completions, "nccl": codes.nccl}[code.space]
	some row in table
	row.number == code.number
	means := [m | some m in row.means; area in object.get(m, "areas", [area])]
}

meaning(code, _) := object.get(row, "causes", object.get(driver_errors.class(code.number), "causes", [])) if {
	code.space == "cuda"
	some row in table.codes
	row.code == code.number
}

area_of(place) := [area | some area in areas.areas; area.name == place.area][0]

# others_of are the candidates by the variables in the line, by those that are set and that the code goes by, and by area.
others_of(place) := array.flatten([
	[{"cause": "env-misconfig", "for": sprintf("the line names %s", [concat(" and ", place.variables)])} | place.variables],
	[{"cause": "env-misconfig", "for": sprintf("%s=%s is set, and that code uses it", [v.name, v.value])} | some v in steering(place)],
	[{"cause": cause, "for": "it causes many failures in that code"} |
		some cause in area_of(place).causes
		not cause in trials.cleared # An experiment shows that it makes no difference.
	],
])

steering(place) := [v | some v in input.env.variables; v.name in area_of(place).variables]

chosen := placed[0][3]

place := chosen.place

candidates := placed[0][4]

findings contains {
	"subject": logs.who(chosen),
	"grade": "placed",
	"about": object.union(object.filter(place, ["file", "variables"]), {
		"program": [library[name] | name := object.get({"rccl": "rccl"}, chosen.program, place.library)],
		"area": [words | words := area_of(place).words],
		"codes": [code.name | some code in place.codes],
	}),
	"severity": severity,
	"confidence": confidence,
	# Those of the same area are the trace of the failure through the callers.
	"messages": ({chosen} | {m | some m in logs.complaints; m.place.area == place.area}),
	"candidates": [c | some i, c in candidates; not c.cause in {o.cause | some o in array.slice(candidates, 0, i)}],
	"params": {"variable": variable |
		variable := array.concat([name | some name in place.variables], [v.name | some v in steering(place)])[0]
	},
}

default confidence := "possible"

confidence := "likely" if {
	logs.failed
	count(of_codes(place)) == 1
}

# What somebody who tells of trouble writes about is the weakest evidence.
findings contains {
	"id": "topic",
	"grade": "topic",
	"subject": "job",
	"about": {"words": [t.words | some i, t in topics; not t.words in {o.words | some o in array.slice(topics, 0, i)}]},
	"severity": {true: "high", false: "low"}[logs.failed],
	"messages": logs.complaints,
	"evidence": [{"fact": "texts.topics", "value": t.words, "source": sprintf("%s:%d", [t.source, t.line])} | some t in topics],
	"candidates": [{"cause": t.cause, "for": sprintf("the text speaks of %s", [t.words])} | some t in topics],
	"order": 0, # It is what the text is about.
} if {
	count(placed) == 0
	count(topics) > 0
}

topics := [object.union(t, {"source": text.name}) | some text in input.texts; some t in text.topics; not t.cause in trials.cleared]

# A warning alone may be harmless, but that is rare for NCCL and its plugins.
default severity := "low"

severity := "high" if {
	logs.failed
} else := "medium" if {
	chosen.id == "nccl-warning"
}

library := {
	"nccl": "NCCL", "rccl": "RCCL", "ofi": "The plugin for libfabric", "ucx": "UCX", "libfabric": "libfabric",
	"c10d": "PyTorch", "container-toolkit": "The NVIDIA container toolkit",
}
