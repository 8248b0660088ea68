# Log messages of programs. Each reading is empty if no log was given: a missing log proves nothing.
package gpudoctor.lib.logs

by_id[m.id] contains m if some m in input.logs.messages

# went_on is true where a job goes on after complaints that something does not end, rank_failed where it is known which
# process failed first.
went_on if input.logs.job.went_on
rank_failed if input.logs.job.first

said(id) if count(by_id[id]) > 0

messages(ids) := {m | some id in ids; some m in by_id[id]}

# first is the earliest of a set of messages; of several at one place any, but always the same.
first(set_) := m if {
	least := min({other.order | some other in set_})
	m := sort({other | some other in set_; other.order == least})[0]
}

evidence(m) := {"fact": sprintf("%s.messages[%s]", [log_of(m), m.id]), "value": m.text, "source": at(m)}

# log_of is where in the facts the log of a message is.
log_of(m) := sprintf("collectives.arms[%s]", [trim_prefix(m.source, "probe, arm ")]) if {
	own(m)
} else := "logs"

# own is true of a message of the probe's own library, which is no job.
own(m) if startswith(m.source, "probe, arm ")

# all_evidence shows messages in their order, each of one row once.
all_evidence(set_) := [evidence(m) | some [_, m] in sort([[m.order, m] | some m in set_])]

# at names the place of a message, or of whatever else has a source and a line; what the
# machine itself shows has a folder and no line.
at(m) := sprintf("%s:%d", [m.source, m.line]) if {
	is_string(m.source)
	is_number(m.line)
	m.line > 0
} else := m.source if {
	is_string(m.source)
	m.source != ""
} else := "an unknown place"

# who names the process that said it, as far as the line tells: "rank 3 on node7", "node7, process 12", or nothing.
who(m) := sprintf("rank %d on %s", [m.rank, m.host]) if {
	m.host
	is_number(m.rank)
} else := sprintf("rank %d", [m.rank]) if {
	is_number(m.rank)
} else := sprintf("%s, GPU %d of process %d", [m.host, m.device, m.pid]) if {
	m.host
	is_number(m.device)
} else := m.host if {
	m.host
} else := "the log"

# complaints are the messages that say that something is wrong or went wrong, cause_said is true where one says what.
complaints := {m | some m in input.logs.messages; m.role in {"cause", "category", "consequence"}}

default failed := false

failed if count(complaints) > 0
cause_said if "cause" in {m.role | some m in input.logs.messages}

# stalled are the signs that a collective began and does not end: a table of nccl-tests that stops before its first row,
# or vLLM's workers that do not answer. A text that was cut looks the same, so it counts only beside a possible cause.
stalled contains {"fact": "benchmarks", "value": b.test, "source": at(b)} if {
	some b in input.benchmarks
	b.what == "collective"
	b.complete == false
	count(object.get(b, "points", [])) == 0
	begun(b)
	not goes_on_below(b)
}

# goes_on_below is true of a table whose rows stand behind what the library said in between.
goes_on_below(b) if {
	some o in input.benchmarks
	o.source == b.source
	o.line > b.line
	count(object.get(o, "points", [])) > 0
}

stalled contains evidence(m) if some m in messages({"vllm-workers-stuck"})

begun(b) if b.ranks > 1

begun(_) if input.logs.communicators[_].completed > 0

# given is true when a log was examined, whatever it holds.
given if input.logs

versions[p.name] contains p.version if some p in input.software

launches := {l | some l in input.launches}

# mapping_refused are the messages that the driver could not map the memory of a GPU for
# its peer (CUDA 205). HIP's error of the same words has other causes.
# Nor is memory that one process shares with another one that of a peer.
mapping_refused := {m | some m in by_id["cuda-map-failed"]; not by_id["torch-ipc-open-failed"]} | {m |
	some [id, field, value] in [
		["nccl-cuda-mapping-failed", "runtime", "cuda"],
		["vllm-custom-all-reduce-failed", "error", "mapping of buffer object failed"],
	]
	some m in by_id[id]
	lower(m.fields[field]) == value
}
