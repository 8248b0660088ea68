package runs

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// endForm is how a launcher, a shell or a library says that a process ended.
type endForm struct {
	reporter string
	anchors  []string
	// form may name the groups rank, pid, host, code, signal (a number), name (of a
	// signal, or what strsignal calls it), of an assertion file, line, function and words, and first (a
	// word by which the launcher speaks of the process that ended first).
	form *lazy.Regexp
}

// endForms are those of, in order: torch/distributed/elastic/multiprocessing/api.py;
// deepspeed/launcher/launch.py; Slurm's srun (src/srun/libsrun/launch.c and
// task_state.c); Open MPI and PRRTE (help-prun.txt, help-orterun.txt); MPICH's and
// Intel's Hydra; HPE's PALS; torch/multiprocessing/spawn.py; torch/csrc/DataLoader.cpp; horovod/runner/gloo_run.py; vLLM's
// multiproc_executor.py; sglang's srt/entrypoints/engine.py; UCX (src/ucs/debug/debug.c) and Open MPI
// (opal/util/stacktrace.c), which catch signals in the process itself; bash (jobs.c); Linux (arch/x86/mm/fault.c,
// arch/x86/kernel/traps.c), of the names that processes of jobs have; Intel's and
// GNU's libraries of Fortran (for_diags_intel.c, libgfortran's runtime/error.c), but for 41, which is memory; a kernel's assert() (CUDA's printf of it); glog's CHECK (src/logging.cc); glibc's assert (assert/assert.c).
var endForms = []endForm{
	{"torchrun", []string{"failed (exitcode: "}, lazy.New(`failed \(exitcode: (?P<code>-?\d+)\) local_rank: \d+ \(pid: (?P<pid>\d+)\)`)},
	{"deepspeed", []string{"exits with return code = "}, lazy.New(`(?:--local_rank=(?P<rank>\d+).*)?exits with return code = (?P<code>-?\d+)`)},
	{"slurm", []string{": task"}, lazy.New(`srun: error: (?P<host>[\w.-]+): tasks? (?P<rank>\d+)[\d,-]*: (?:Exited with exit code (?P<code>\d+)|(?P<name>[A-Z][\w ]+?))(?: \(core dumped\))?\s*$`)},
	{"mpirun", []string{"noticed that process rank"}, lazy.New(`(?P<first>noticed) that process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>[\w.-]+) exited on signal (?P<signal>\d+)`)},
	{"mpirun", []string{"MPI_ABORT was invoked on rank"}, lazy.New(`MPI_ABORT was invoked on rank (?P<rank>\d+)`)},
	{"mpirun", []string{"  Exit code: "}, lazy.New(`^\s*(?P<first>Exit) code:\s+(?P<code>\d+)\s*$`)},
	{"mpiexec", []string{"=   KILLED BY SIGNAL: ", "EXIT STRING: "}, lazy.New(`(?:KILLED BY SIGNAL: |\(signal )(?P<signal>\d+)`)},
	{"mpiexec", []string{"=   EXIT CODE: ", "=   EXIT STATUS: "}, lazy.New(`^=\s+EXIT (?:CODE|STATUS): (?P<code>\d+)`)},
	{"pals", []string{" died from signal "}, lazy.New(`(?P<host>[\w.-]+): rank (?P<rank>\d+) died from signal (?P<signal>\d+)`)},
	{"spawn", []string{" terminated with signal ", " terminated with exit code "}, lazy.New(`\b(?P<first>process) (?P<rank>\d+) terminated with (?:signal (?P<name>SIG[A-Z]+)|exit code (?P<code>\d+))`)},
	{"dataloader", []string{" is killed by signal: "}, lazy.New(`DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: (?P<name>[A-Z][\w ]+?)\.`)},
	{"horovodrun", []string{" exit with status code "}, lazy.New(`^Process (?P<rank>\d+) exit with status code (?P<code>\d+)`)},
	{"vllm", []string{" died unexpectedly"}, lazy.New(`Worker proc VllmWorker-(?P<rank>\d+) died unexpectedly`)},
	{"sglang", []string{"scheduler is dead"}, lazy.New(`Rank (?P<rank>\d+) scheduler is dead`)},
	{"handler", []string{"] Caught signal "}, lazy.New(`\[(?P<host>[\w.-]+):(?P<pid>\d+)\s*:\d*:\d+\] Caught signal (?P<signal>\d+)`)},
	{"handler", []string{"] Signal: "}, lazy.New(`\[(?P<host>[\w.-]+):(?P<pid>\d+)\] Signal: .*\((?P<signal>\d+)\)`)},
	{"shell", []string{"Segmentation fault", "Aborted  ", "Killed  ", "Bus error  ", "Illegal instruction", "Floating point exception"}, lazy.New(
		`: line \d+: +(?P<pid>\d+) (?P<name>Segmentation fault|Aborted|Killed|Illegal instruction|Floating point exception)\b`)},
	{"shell", []string{" limit exceeded"}, lazy.New(`(?:^|: line \d+: +(?P<pid>\d+) )(?P<name>(?:CPU time|File size) limit exceeded)(?: |$)`)},
	{"shell", []string{"(core dumped)"}, lazy.New(`^(?P<name>Segmentation fault|Aborted|Illegal instruction|Floating point exception) \(core dumped\)`)},
	{"kernel", []string{": segfault at ", " general protection fault ", " invalid opcode ", " divide error "}, lazy.New(
		`\b(?:python[\d.]*|pt_\w+|ray::\w+|VLLM::\w+|sglang::\w+|\w+_perf)\[(?P<pid>\d+)\]:? (?:trap )?(?P<name>segfault|general protection fault|invalid opcode|divide error)\b.*? in (?P<file>[\w.+-]+)\[`)},
	{"fortran", []string{"forrtl: severe ("}, lazy.New(`forrtl: severe \((?P<code>[1-35-9]\d*|4[02-9]\d*)\): (?:(?P<name>SIG[A-Z]+), |(?P<said>.+))`)},
	{"fortran", []string{"Fortran runtime error: "}, lazy.New(`^Fortran runtime error: (?P<said>.+)`)},
	{"cuda", []string{": block: ["}, lazy.New(`(?P<file>[\w./+-]+):(?P<line>\d+): (?P<function>.{1,400}?): block: \[[\d,]+\], thread: \[[\d,]+\] Assertion .(?P<words>.+?). failed`)},
	{"glog", []string{"] Check failed: "}, lazy.New(`\bF\d{4} [\d:.]+ +(?P<pid>\d+) (?P<file>[\w./+-]+):(?P<line>\d+)\] (?P<words>Check failed: .+)`)},
	{"libc", []string{": Assertion `"}, lazy.New("(?P<file>[\\w./+-]+\\.\\w+):(?P<line>\\d+): (?P<function>.{1,400}?): Assertion `(?P<words>.+?)' failed")},
}

// strsignal is what strsignal(3) calls the signals, as shells and Slurm print it, and Python's faulthandler.
var strsignal = map[string]string{
	"Segmentation fault": "SIGSEGV", "Aborted": "SIGABRT", "Bus error": "SIGBUS", "Floating point exception": "SIGFPE", "Floating-point exception": "SIGFPE", "Illegal instruction": "SIGILL",
	"Killed": "SIGKILL", "Terminated": "SIGTERM", "Out Of Memory": "SIGKILL",
	"CPU time limit exceeded": "SIGXCPU", "File size limit exceeded": "SIGXFSZ",
	"segfault": "SIGSEGV", "general protection fault": "SIGSEGV", "invalid opcode": "SIGILL", "divide error": "SIGFPE", // Linux's own names.
}

// ends are what launchers say of the ends of processes, in one reading.
type ends struct {
	// process is the rank that Open MPI named last, in the line above the exit code.
	process *int
	line    int
	// running is the process that Hydra named last, above its exit code and what that means.
	running facts.Death
}

// processName is Open MPI's and PRRTE's name of a process: "[[26867,1],3]",
// "[prterun-node7-1234@1,3]".
var processName = lazy.New(`^\s*Process name: \[(?:\[\d+,\d+\]|[\w@.-]+),(\d+)\]\s*$`)

// running is how Hydra begins to tell of a process: MPICH's without the rank, Intel's with it.
var running = lazy.New(`^=\s+(?:RANK (\d+) )?PID (\d+) RUNNING AT (\S+)`)

// kind reads what launchers and others say of the ends of processes.
func (e *ends) kind() *parse.Kind {
	return &parse.Kind{
		Name: "process-ends", Title: "how the processes of a job ended, from launchers, shells and assertions", Gives: []string{"logs"},
		Anchors: endAnchors(),
		Line:    e.read,
	}
}

func (e *ends) read(s *parse.Sink, l parse.Line) bool {
	if m := processName.FindStringSubmatch(l.Text); m != nil {
		e.process, e.line = parse.Optional(m[1]), l.Number
		return true
	}
	if m := running.FindStringSubmatch(l.Text); m != nil {
		e.running = facts.Death{Rank: parse.Optional(m[1]), PID: parse.Number(m[2]), Host: m[3]}
		return true
	}
	for _, f := range endForms {
		if m := f.form.FindStringSubmatch(l.Text); m != nil {
			return e.note(s, l, &f, m)
		}
	}
	return false
}

func endAnchors() []string {
	all := []string{"  Process name: [", " RUNNING AT "}
	for _, f := range endForms {
		all = append(all, f.anchors...)
	}
	return all
}

// note notes the end of a process, unless it ended well.
func (e *ends) note(s *parse.Sink, l parse.Line, f *endForm, m []string) bool {
	g := make(map[string]string)
	for i, name := range f.form.Get().SubexpNames() {
		if name != "" {
			g[name] = m[i]
		}
	}
	code, signal := parse.Optional(g["code"]), signals[parse.Number(g["signal"])]
	if name := g["name"]; name != "" {
		if signal = strsignal[name]; strings.HasPrefix(name, "SIG") {
			signal = name
		}
		if signal == "" {
			return false
		}
	}
	if code != nil && *code == 0 {
		return false
	}
	d := ended(code, signal)
	d.Said = g["said"]
	if g["words"] != "" {
		d = facts.Death{What: "assertion", Said: g["words"], FileLine: parse.Number(g["line"]), Function: g["function"]}
	}
	d.Reporter, d.First, d.File, d.Host, d.PID, d.Rank = f.reporter, g["first"] != "", g["file"], g["host"], parse.Number(g["pid"]), parse.Optional(g["rank"])
	if _, named := g["rank"]; !named && f.reporter == "mpirun" && l.Number == e.line+1 {
		d.Rank = e.process
	}
	if f.reporter == "mpiexec" {
		d.Rank, d.PID, d.Host = e.running.Rank, e.running.PID, e.running.Host
	}
	s.Death(d, l)
	return true
}
