# METADATA
# title: A rank failed on its own
# description: >-
#   One process of the job ended with an exception, an assertion, a signal or an exit of its own, before any
#   communication error. The other ranks then wait for it until a timeout, or lose the connection to it. These are
#   consequences: communication is not at fault.
# related_resources:
#   - ref: https://docs.pytorch.org/docs/stable/elastic/errors.html
#     description: How torchrun finds the process that failed first, and @record
#   - ref: https://docs.python.org/3/library/faulthandler.html
#     description: Shows where a Python program was when a signal ended it
#   - {ref: https://man7.org/linux/man-pages/man7/signal.7.html, description: What each signal means}
# custom:
#   severity: high
#   confidence: likely
#   texts_only: true
#   needs: [job-told]
#   remedies: [fix-application, free-memory, other]
#   explains:
#     - oom/ended
#     - app-mismatch/waited
#     - app-mismatch/behind
#     - app-mismatch/missing
#     - exception > nccl-bug
#     - assertion > nccl-bug
#     - exit > nccl-bug
#     - exception > rccl-bug
#     - assertion > rccl-bug
#     - exit > rccl-bug
#   profiles: [training]
#   since: "0.3"
package gpudoctor.rules.app_failure

import data.gpudoctor.lib.logs

findings contains {
	"id": d.what,
	"subject": logs.who(d),
	"message": sprintf("%s %s%s%s. %s", [who(d), cause(d), place(d), also, remark]),
	"evidence": [{"fact": "logs.deaths", "value": d.text, "source": logs.at(d)}],
	"confidence": confidence(d),
	"params": params(d),
	"remedies": remedies(d),
	"order": d.order,
} if d := first

first := input.logs.job.first

# params say where to look first, as far as the log tells.
params(d) := {key: value |
	some key, value in {
		"failed_file": object.get(d, "file", null),
		"failed_line": object.get(d, "file_line", null),
		"failed_with": object.get(d, "class", null),
		"failed_rank": object.get(d, "rank", null),
	}
	value != null
}

who(d) := sprintf("Rank %d on %s", [d.rank, d.host]) if {
	d.host
	is_number(d.rank)
} else := sprintf("Rank %d", [d.rank]) if {
	is_number(d.rank)
} else := sprintf("A process (%d) on %s", [d.pid, d.host]) if {
	d.host
	d.pid
} else := sprintf("Process %d", [d.pid]) if {
	d.pid
} else := "A process of the job"

cause(d) := sprintf("died of an exception in the program: %s", [printed(d)]) if {
	d.what == "exception"
} else := sprintf("failed an assertion of its own: %s", [object.get(d, "said", "")]) if {
	d.what == "assertion"
} else := sprintf("was killed from outside (%s): by the kernel when memory runs out, by a job system or by a person", [d.class]) if {
	d.class == "SIGKILL"
} else := sprintf("died of %s: %s", [d.class, signals[d.class]]) if {
	signals[d.class]
} else := sprintf("was ended from outside (%s): by a job system, for example at a time limit or for another job, by a terminal that closed, or by a person", [d.class]) if {
	d.what == "signal"
} else := sprintf("exited on its own with code %d", [d.code]) if {
	is_number(d.code)
} else := "exited on its own"

printed(d) := sprintf("%s: %s%s", [d.class, substring(d.said, 0, 160), {true: "...", false: ""}[count(d.said) > 160]]) if {
	d.said
} else := d.class

signals := {
	"SIGSEGV": "it accessed invalid memory, in its own code or in a library",
	"SIGILL": "it executed an instruction that the processor does not have",
	"SIGFPE": "an invalid arithmetic operation, such as a division by zero",
	"SIGABRT": "it aborted, usually after a failed assertion or an uncaught C++ exception",
}

place(d) := sprintf(" (%s:%d, in %s)", [d.file, d.file_line, d.function]) if {
	d.function
	d.file
} else := sprintf(" (%s:%d)", [d.file, d.file_line]) if {
	d.file
} else := ""

# also counts the other ranks of which the same is told.
also := sprintf("; %d other ranks died in the same way", [n]) if {
	n := count(input.logs.job.alike)
	n > 1
} else := "; one other rank died in the same way" if {
	count(input.logs.job.alike) == 1
} else := ""

remark := "Timeouts and closed connections of the other ranks are consequences: communication is not at fault" if {
	count(aftermath) > 0
} else := "The input has no communication error: the program's own output shows the cause" if {
	unexplained_exit
} else := "Communication is not at fault"

# aftermath are the messages of other processes, in addition to the launcher's.
aftermath contains m if {
	some m in logs.complaints
	not startswith(m.id, "process-")
	not m.id in {"torch-first-failure", "cuda-assert"}
}

unexplained_exit if {
	first.what == "exit"
	object.get(first, "code", 1) == 1
}

confidence(d) := "confirmed" if {
	d.what == "exception"
	d.uncaught
} else := "confirmed" if {
	d.what == "exception"
	input.logs.job.ended
} else := "confirmed" if {
	d.what == "assertion"
} else := "possible" if {
	d.what == "signal"
	d.class != "SIGABRT"
	not signals[d.class]
} else := "possible" if {
	d.what == "exit"
	object.get(d, "code", 1) == 1
} else := "likely"

remedies(d) := ["free-memory", "fix-application", "other"] if {
	d.class == "SIGKILL"
} else := ["fix-application", "other"]

# A process that only others tell of: they lost the connection to it, or its sign of life.
findings contains {
	"id": "lost",
	"subject": "job",
	"message": sprintf("%s ended, and the input does not hold what it said last: others only report that it is gone. Its own output, its launcher or the kernel log of its machine (the OOM killer) shows why", [lost_words]),
	"messages": {m | some m in logs.complaints; m.order in input.logs.job.lost.told_by},
	"confidence": "possible",
	"params": {"failed_rank": lost.rank | lost.rank},
	"remedies": ["fix-application", "free-memory", "other"],
} if lost

lost := input.logs.job.lost

lost_words := sprintf("Rank %s", [lost.rank]) if {
	lost.rank
} else := "A process of the job"

# An assertion of device code whose own line is not in the text.
findings contains {
	"id": "device-assertion",
	"subject": logs.who(m),
	"message": "A kernel of the program failed an assertion, such as an index beyond the end of a tensor or a label beyond the number of classes. Communication is not at fault: with CUDA_LAUNCH_BLOCKING=1 the exception names the line",
	"messages": logs.by_id["cuda-assert"],
	"confidence": "confirmed",
	"params": {"device_assertion": "yes"},
	"remedies": ["fix-application"],
} if {
	m := logs.first(logs.by_id["cuda-assert"])
	not first
}

missing contains {"fact": "logs", "words": "no log of a job was given"} if not logs.given
