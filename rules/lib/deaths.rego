# The rank that failed first on its own. Which of the logged exceptions, signals and exit codes come from the program
# itself: no communication, GPU or machine error precedes them or appears in their text.
package gpudoctor.lib.deaths

import data.gpudoctor.lib.logs

# first is the death that the others follow: the launcher's report of the rank counts more
# than the order. The launcher may be the only one to name the rank.
first := object.union(whose, chosen)

chosen := of_first_rank[0] if {
	count(of_first_rank) > 0
} else := own[0]

of_first_rank := [d |
	some d in own
	object.get(d, "rank", launcher.rank) == launcher.rank
]

# launcher is torchrun's report of the process that failed first, or the first that another launcher names.
launcher := [d | some d in input.logs.deaths; d.first][0] if {
	count([d | some d in input.logs.deaths; d.first]) > 0
} else := [d | some d in input.logs.deaths; d.what in {"exit", "signal"}; is_number(d.rank)][0]

whose := {key: value |
	not ranked
	pid := object.get(launcher, "pid", 0)
	object.get(chosen, "pid", pid) == pid
	some key in ["rank", "host", "pid"]
	value := launcher[key]
}

ranked if is_number(chosen.rank)

# own are the deaths that the program brought on itself, in order.
own := [d |
	some d in input.logs.deaths
	by_itself(d)
	not preceded(d)
]

by_itself(d) if {
	d.what == "exception"
	came_through(d)
	its_own_class(d)
	count([b | some b in object.get(d, "behind", []); not its_own(b)]) == 0
	not [d.class, object.get(d, "said", "")] in claimed
}

by_itself(d) if {
	d.what == "assertion"
	not regex.match(`(?i)nccl|rccl|ucx|ucp_|uct_|ibv|libfabric|gloo|psm2`, object.get(d, "file", ""))
}

# The kernel raises these for what the process did itself.
by_itself(d) if {
	d.what == "signal"
	d.class in {"SIGSEGV", "SIGILL", "SIGFPE"}
}

# These may also come from outside, and from PyTorch when a watchdog aborted.
by_itself(d) if {
	d.what == "signal"
	d.class in {"SIGABRT", "SIGKILL"}
	count(out_of_memory) == 0
}

# A launcher ends the other ranks with SIGTERM; if the launcher saw a rank end first, another process ended it.
by_itself(d) if {
	d.what == "signal"
	d.class == "SIGTERM"
	d.first
}

by_itself(d) if {
	d.what == "exit"
	is_number(d.code)
	d.code != exception_code
}

by_itself(d) if {
	d.what == "exit"
	object.get(d, "code", exception_code) == exception_code
	count(raised) == 0
}

# exception_code is Python's exit code after an uncaught exception.
exception_code := 1

# raised are the exceptions of which any may be why a process ended.
raised contains d if {
	some d in input.logs.deaths
	d.what == "exception"
	came_through(d)
	not leaf(d.class) in launchers
}

# launchers are the exceptions with which launchers end, once a process has failed.
launchers := {
	"ChildFailedError", "CalledProcessError", "ProcessExitedException", "ProcessRaisedException", "SignalException", "SystemExit",
}

# out_of_memory are the signs that memory ran out: the kernel kills a process then.
out_of_memory := logs.messages({"torch-host-out-of-memory", "torch-out-of-memory"}) | {e |
	some e in input.kernel_log.events
	e.kind == "oom"
}

# came_through is true of an exception that ended its process, as far as the text shows:
# it was uncaught, no steps came after it, and the job failed or the text ends there.
came_through(d) if d.uncaught

came_through(d) if {
	not d.uncaught
	not d.ignored
	not went_on(d)
	something_ended(d)
}

went_on(d) if d.steps_after == 8

went_on(d) if {
	d.steps_after > 1
	count(ends) == 0
}

went_on(d) if {
	d.steps_after > 1
	count(trouble) > 0
}

# ends are the words of launchers that a process ended.
ends contains d if {
	some d in input.logs.deaths
	d.what in {"signal", "exit"}
}

something_ended(_) if logs.failed

something_ended(_) if count(ends) > 0

something_ended(d) if lines[d.source] - d.line <= near_end

# near_end is how many lines may follow an exception before the end of the text that it
# ends: other threads and the launcher write some.
near_end := 40

lines := {name: max(sizes) | some name, sizes in text_sizes}

text_sizes[t.name] contains t.lines if some t in input.texts

# trouble are the messages of communication, a GPU or the machine that something failed.
trouble contains m if {
	some m in logs.complaints
	m.role in {"cause", "category"}
	not startswith(m.id, "process-")
	not m.id in {"torch-first-failure", "cuda-assert"}
}

first_trouble := {source: min(at) | some source, at in trouble_lines}

trouble_lines[m.source] contains m.line if some m in trouble

trouble_begins := min({m.time | some m in trouble; m.time})

# preceded is true of a death before which there was trouble. Signals of the kernel for
# what the process did are no consequence of a category of errors elsewhere.
preceded(d) if {
	first_trouble[d.source] < d.begins
}

preceded(d) if {
	d.time > trouble_begins
}

# claimed are the exceptions whose line is a message of the catalogue.
claimed := {[d.class, object.get(d, "said", "")] |
	some d in input.logs.deaths
	d.what == "exception"
	[d.source, d.line] in complaint_at
}

complaint_at := {[m.source, m.line] |
	some m in logs.complaints
	not startswith(m.id, "process-")
}

its_own_class(d) if its_own(sprintf("%s: %s", [d.class, object.get(d, "said", "")]))

# its_own is true of an exception, as it is printed, by its class: those of Python's own
# that only a program's mistake raises, and others unless their class or words speak of
# communication, GPUs, the machine's limits, or another process that failed.
its_own(printed) if programming[leaf(class_of(printed))]

its_own(printed) if {
	class := leaf(class_of(printed))
	not programming[class]
	not regex.match(foreign_class, class)
	said := regex.replace(substring(printed, count(class_of(printed)), -1), `cuda:\d+`, "")
	not regex.match(foreign_words, said)
}

class_of(printed) := regex.find_n(`^[^:]*`, printed, 1)[0]

# leaf is a class without its modules, and of Ray's wrapper the class that it wraps.
leaf(class) := regex.replace(class, `^.*[.(]|\)$`, "")

# https://docs.python.org/3/library/exceptions.html
programming := {
	"ArithmeticError", "AttributeError", "FloatingPointError", "IndentationError", "IndexError", "JSONDecodeError", "KeyError", "LookupError",
	"ModuleNotFoundError", "NameError", "OverflowError", "RecursionError", "StopIteration", "SyntaxError", "TabError", "TypeError",
	"UnboundLocalError", "UnicodeDecodeError", "UnicodeEncodeError", "ZeroDivisionError",
}

foreign_class := concat("|", [
	`(?i)nccl|rccl|cuda|hip|nvml|xla|accelerator|outofmemory|memoryerror|^oom`,
	`dist(?:backend|network|store|queue|error)|rendezvous|collective|barrier`,
	`connect|timeout|timedout|expired|network|socket|gaierror|brokenpipe|eoferror|grpc|rpc|http|ssl|zmq`,
	`died|crash|dead|killed|cancel|interrupt|childfailed|calledprocess|processraised|processexited|brokenprocess|signal|^empty$|systemexit|actor`,
	`permission`,
])

foreign_words := concat("|", [
	`(?i)nccl|rccl|\bcuda|cudnn|cublas|cusolver|\bhip\b|hiperror|\bhsa\b|\bgpus?\b|\bdriver|nvidia|nvml|triton|kernel image`,
	`gloo|c10d|\bucx\b|\bmpi\b|rdma|ibv_|libfabric|infiniband|store|socket|connect|\btcp|\bport\b|address (?:already )?in use|unreachable|resolve`,
	`time(?:d)?[ -]?out|collective|all_?reduce|all_?gather|process group|default group|\bpeer|p2p|nvlink|rank \d+ |world[ _]size`,
	`shared memory|/dev/|/sys/|/proc/|\bshm|memlock|\bmemory\b|too many open files|resource temporarily|cannot allocate|not permitted|permission denied`,
	`\.so\b|undefined symbol|glibc|shared object|dataloader worker|worker\w* (?:process|failed|died|exited|proc)|exited unexpectedly|background process`,
	`root cause|see (?:the )?(?:stack trace|log|above|error)|terminated|killed|signal`,
])
