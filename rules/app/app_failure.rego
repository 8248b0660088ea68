# METADATA
# title: A rank failed on its own
# description: >-
#   One process of the job ended with an exception, an assertion, a signal or an exit of its own, before any
#   communication error. That the other ranks then time out or lose the connection is a consequence.
# related_resources:
#   - {ref: https://docs.pytorch.org/docs/stable/elastic/errors.html, description: Which process failed first}
#   - {ref: https://docs.python.org/3/library/faulthandler.html, description: Shows where a Python program was when a signal ended it}
#   - {ref: https://man7.org/linux/man-pages/man7/signal.7.html, description: What each signal means}
# custom:
#   severity: high
#   confidence: likely
#   texts_only: true
#   needs: [job-told]
#   remedies: [fix-application, free-memory, nccl-p2p-disable, reset-gpu, correct-launch, other]
#   explains: [
#     oom/ended, app-mismatch/waited, app-mismatch/behind, app-mismatch/missing, wrong-nic/gloo-to-loopback, exception > nccl-bug,
#     assertion > nccl-bug, exit > nccl-bug, exception > rccl-bug, assertion > rccl-bug, exit > rccl-bug]
#   profiles: [training]
#   since: "0.3"
#   grades:
#     ended: >-
#       {who}[ on {host}] {how}[ with code {code}][: {class}][: {said}][ ({meaning})][, at {file}[:{file_line}][ in
#       {function}]].[ So did {alike:other rank}.] Communication is not at fault: timeouts and closed connections that
#       other ranks report are consequences
#     lost:
#       confidence: possible
#       remedies: [fix-application, free-memory, other]
#       text: >-
#         A process of the job[ (rank {rank})] ended, and the input does not hold what it said last: others only report
#         that it is gone. Its own output, its launcher or the kernel log of its machine (the OOM killer) shows why
package gpudoctor.rules.app_failure

import data.gpudoctor.lib.logs

findings contains {
	"id": first.what,
	"grade": "ended",
	"subject": logs.who(first),
	"about": object.union(object.filter(first, ["host", "class", "file", "function", "file_line"]), {
		"who": who,
		"code": [code | code := first.code; first.what == "exit"],
		"how": how[first.what],
		"said": substring(object.get(first, "said", ""), 0, 160),
		"meaning": [meaning | first.what == "signal"; not first.class in own; not first.class in of_limits],
		"alike": [rank | some rank in input.logs.job.alike],
	}),
	"evidence": [{"fact": "logs.deaths", "value": first.text, "source": logs.at(first)}],
	"confidence": confidence,
	"params": {name: first[field] |
		some name, field in {"failed_file": "file", "failed_line": "file_line", "failed_with": "class", "failed_rank": "rank"}
	},
	"remedies": array.concat([id | id := "free-memory"; first.class == "SIGKILL"], ["fix-application", "other"]),
	"order": first.order,
}

first := input.logs.job.first

who := sprintf("Rank %d", [first.rank]) if {
	is_number(first.rank)
} else := sprintf("Process %d", [first.pid]) if {
	first.pid
} else := "A process of the job"

how := {
	"exception": "died of an exception in the program", "assertion": "failed an assertion of its own",
	"signal": "was ended by a signal", "exit": "exited on its own",
}

meaning := "sent by the kernel (SIGKILL, when memory ran out), a job system (at a time limit), a closed terminal or a person"

# own are signals that a process causes itself; any other is sent to it.
own := {"SIGSEGV", "SIGILL", "SIGFPE", "SIGABRT"}

# of_limits are those with which the kernel enforces a limit, of which process-limits tells.
of_limits := {"SIGXCPU", "SIGXFSZ"}

confidence := {
	"exception": {true: "confirmed", false: "likely"}[true in {object.get(first, "uncaught", false), object.get(input.logs.job, "ended", false)}],
	"assertion": "confirmed",
	"signal": {true: "likely", false: "possible"}[object.get(first, "class", "") in own],
	"exit": {true: "possible", false: "likely"}[object.get(first, "code", 1) == 1],
}[first.what]

# A process that only others tell of: they lost the connection to it, or its sign of life.
findings contains {
	"id": "lost",
	"subject": "job",
	"about": lost,
	"messages": {m | some m in logs.complaints; m.order in lost.told_by},
	"params": {"failed_rank": lost.rank | lost.rank},
} if lost := input.logs.job.lost
