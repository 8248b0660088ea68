package child

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Death says what ended a child that did not finish its task and that this process did not end.
type Death string

// The causes of death.
const (
	// DeathByLibrary: a vendor's library crashed, or ended the process, inside one
	// of its calls or in a thread of its own.
	DeathByLibrary Death = "library"
	// DeathByOther: another process or the kernel ended it, by SIGKILL or SIGTERM
	// and the like. The kernel does that when memory runs out.
	DeathByOther Death = "killed"
	// DeathByShortage: it could not get a thread, memory or a file.
	DeathByShortage Death = "shortage"
	// DeathByBug: a bug in this program.
	DeathByBug Death = "bug"
	// DeathUnknown: the cause is unknown.
	DeathUnknown Death = "unknown"
)

// crashSignals are those that a fault in a process's own code raises (signal(7)).
var crashSignals = []string{"SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"}

type resource struct {
	// pattern is what the Go runtime, its C part or the system says.
	pattern *lazy.Regexp
	words   string
}

// resources are distinguished by the runtime's own messages: os_linux.go (newosproc), cgo/gcc_libinit.c and gcc_fatalf.c
// (pthread_create), malloc.go, mem_linux.go, mpagealloc.go and netpoll_epoll.go. They are searched for only if something
// else shows that the runtime died.
var resources = []resource{
	{lazy.New(`failed to create new OS thread|pthread_create failed|newosproc`), "no thread could be created (ulimit -u)"},
	{lazy.New(`epollcreate failed|eventfd failed|netpollinit failed|inotify`), "no file could be opened (ulimit -n)"},
	{lazy.New(`out of memory|cannot allocate memory|failed to reserve|cannot map pages|malloc failed|failed to allocate`), "memory ran out (ulimit -v)"},
}

// shortOf returns what a dying runtime ran out of; empty if it does not say.
func shortOf(said string) string {
	for _, r := range resources {
		if r.pattern.MatchString(said) {
			return r.words
		}
	}
	return ""
}

// signalReport is how the runtime's report of a signal begins (runtime,
// fatalsignal): "SIGSEGV: segmentation violation\nPC=0x46 m=0 sigcode=1 addr=0x0".
var signalReport = lazy.New(`^(SIG[A-Z]{2,6}): .*\nPC=\S+ m=\d+ sigcode=(\d+)`)

// runtimeReport is what the runtime writes to stderr, if its report cannot be read separately.
var runtimeReport = lazy.New(`(?ms)^(?:SIG[A-Z]{2,6}: |panic: |fatal error: |runtime: ).*`)

const (
	// inCode is what follows for a thread that was in C code.
	inCode = "\nsignal arrived during cgo execution\n"
	// userCode is SI_USER: kill(2) was called (asm-generic/siginfo.h).
	userCode = "0"
)

// judge decides what ended a child, and fills in Death, Signal, Inside and Why.
func (r *Result) judge(rec record) {
	r.Recorded, r.Inside = rec.known, rec.inside
	if r.Finished || r.TimedOut || r.Canceled || r.Silent || r.Flooded != "" || r.Left {
		return
	}
	r.Death, r.Why = DeathUnknown, "for an unknown reason"
	if !rec.known && r.Exited {
		rec.report = runtimeReport.FindString(r.Stderr)
	}
	report := signalReport.FindStringSubmatch(rec.report)
	if rec.known && r.Exited {
		r.Signal = "" // What the runtime said is known, and no library's words are taken for it.
	}
	if report != nil {
		r.Signal = report[1]
	}
	within := len(rec.inside) > 0
	switch {
	case r.Signal == "SIGKILL":
		r.Death, r.Why = DeathByOther, "such as by the kernel's OOM killer"
	case r.Signal != "" && !slices.Contains(crashSignals, r.Signal), report != nil && report[2] == userCode:
		r.Death, r.Why = DeathByOther, "sent by another process, or because of a limit"
	case rec.known && !rec.started:
		// No library was loaded.
		r.Why = "it could not start"
		if short := shortOf(r.Stderr); short != "" {
			r.Death, r.Why = DeathByShortage, r.Why+": "+short
		}
	case report != nil && strings.Contains(rec.report, inCode):
		r.library(within || !rec.known)
	case report != nil && r.Signal == "SIGABRT":
		// The C part of the runtime exits by abort(3), outside a call of C code.
		r.Death, r.Why = DeathByShortage, shortOf(r.Stderr)
	case report != nil || strings.HasPrefix(rec.report, "panic:"):
		r.Death, r.Why = DeathByBug, firstLine(rec.report)
	case rec.report != "": // A fatal error: what it is stands before the report, on stderr alone.
		if r.Death, r.Why = DeathByShortage, shortOf(r.Stderr); r.Why == "" {
			r.Death, r.Why = DeathByBug, fatalError(r.Stderr)
		}
	case r.Signal != "":
		// The Go runtime reports a fault of its own threads: this one was in another, or its handler is gone.
		r.library(within || rec.called)
	case r.Exited:
		r.library(within)
	}
}

func (r *Result) library(is bool) {
	if is {
		r.Death, r.Why = DeathByLibrary, ""
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.ToValidUTF8(line[:min(len(line), 200)], "?")
}

// fatalError is why the runtime says that it ends: "fatal error: all goroutines are asleep".
func fatalError(stderr string) string {
	if _, rest, ok := strings.Cut("\n"+stderr, "\nfatal error: "); ok {
		return firstLine(rest)
	}
	return "for an unknown reason"
}

// InLibrary is true if a call of a vendor's library was running, or may have been.
func (r Result) InLibrary() bool { return len(r.Inside) > 0 || !r.Recorded }

// End describes how a child ended early: "SIGKILL, such as by the kernel's OOM killer".
func (r Result) End() string {
	how := "it exited early"
	switch {
	case r.Signal != "":
		how = r.Signal
	case r.Exited:
		how = fmt.Sprintf("exit code %d", r.Code)
	}
	if r.Why != "" {
		how += ", " + r.Why
	}
	return how
}
