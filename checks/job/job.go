// Package job tells which process of a job failed first, from all that its texts say about
// the ends of processes. What others report behind that end is its consequence.
package job

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

const (
	// manySteps is how many steps of work are counted behind a line: so many show that the work went on.
	manySteps = 8
	// nearEnd is how many lines may follow an exception before the end of the text that it
	// ends: other threads and the launcher write some.
	nearEnd = 40
	// exceptionCode is Python's exit code after an uncaught exception.
	exceptionCode = 1
)

// Of is the story of the job that the facts tell of; nil without a log.
func Of(f *facts.Facts) *facts.Job {
	if f.Logs == nil {
		return nil
	}
	s := newStory(f)
	j := &facts.Job{WentOn: s.wentOn, Settled: s.outlived, Ended: len(s.ends) > 0}
	s.blame(j)
	j.Settled = append(j.Settled, s.wordsOf(j.First)...)
	if len(s.complaints) > 0 || len(s.ends) > 0 || j.First != nil {
		s.members(j)
	}
	return j
}

// blame finds the process that failed first, and the others that failed alike, or the one that is lost.
func (s *story) blame(j *facts.Job) {
	own := s.deaths(s.byItself)
	if len(own) == 0 {
		own = s.deaths(s.beforeOthersWaited)
	}
	j.First = s.first(own)
	if j.First == nil {
		j.Lost, j.Unexplained = s.lost(), s.unexplained()
		return
	}
	for _, d := range own {
		like := d.Class != "" && d.What == j.First.What && d.Class == j.First.Class && d.FileLine == j.First.FileLine
		if like && d.Rank != nil && j.First.Rank != nil && *d.Rank != *j.First.Rank {
			j.Alike = append(j.Alike, *d.Rank)
		}
	}
	slices.Sort(j.Alike)
	j.Alike = slices.Compact(j.Alike)
}

// story is what the facts say, as the questions below need it.
type story struct {
	facts *facts.Facts
	// complaints are the messages that something is wrong, without those that the job outlived;
	// trouble are those of communication, a GPU or the machine, in order.
	complaints, trouble []*facts.Message
	// waiting are those in which a rank says that it waits for others, and what it says after that.
	waiting map[*facts.Message]bool
	// bereft are those in which a rank tells of a consequence, such as a lost connection, and what it says after that.
	bereft map[*facts.Message]bool
	// began is the time of the first trouble that has one.
	began  string
	wentOn bool
	// outlived are the complaints that something does not end, where the work went on.
	outlived []int
	// cancelled is the line in a text behind which all is a consequence or was expected: somebody cancelled the job. provoked are the texts of
	// tests that passed.
	cancelled map[string]int
	provoked  map[string]bool
	// requeued are the texts in which a job that was ended for another goes on, with the last line before it does.
	requeued map[string]int
	// ends are the words of launchers that a process ended.
	ends []*facts.Death
	// launcher is the report of the process that failed first.
	launcher *facts.Death
	texts    map[string]*facts.Text
}

// hasPassed reports whether the steps of work behind a message show that what it says has passed.
func hasPassed(m *facts.Message) bool {
	steps := message.Passes(m.ID)
	return steps > 0 && m.StepsAfter >= steps
}

// speaker is a rank in one text.
type speaker struct {
	source string
	rank   int
}

func newStory(f *facts.Facts) *story {
	s := &story{facts: withRanks(f), texts: map[string]*facts.Text{}, cancelled: map[string]int{}, provoked: map[string]bool{}, requeued: map[string]int{}, waiting: map[*facts.Message]bool{}, bereft: map[*facts.Message]bool{}}
	f = s.facts
	for i := range f.Texts {
		s.texts[f.Texts[i].Name] = &f.Texts[i]
	}
	complained := map[string]bool{}
	for _, m := range f.Logs.Messages {
		complained[m.Source] = complained[m.Source] || m.Complains()
		switch line, known := s.cancelled[m.Source]; {
		case (m.ID == "job-cancelled" || m.ID == "srun-told-to-end" && !complained[m.Source]) && (!known || m.Line < line):
			s.cancelled[m.Source] = m.Line
		case m.ID == "tests-passed":
			_, known := s.provoked[m.Source]
			s.provoked[m.Source] = s.provoked[m.Source] || !known
		case m.ID == "tests-failed": // Others passed.
			s.provoked[m.Source] = false
		case m.ID == "tests-reported":
			s.cancelled[m.Source] = 0 // At its head or its end the text says so of all.
		case m.ID == "job-preempted" && hasPassed(&m):
			s.requeued[m.Source] = m.Line
		}
	}
	before := func(source string, line, steps int) {
		if last, is := s.requeued[source]; is && steps >= message.Passes("job-preempted") {
			s.requeued[source] = max(last, line)
		}
	}
	for _, m := range f.Logs.Messages {
		before(m.Source, m.Line, m.StepsAfter)
	}
	for _, d := range f.Logs.Deaths {
		before(d.Source, d.Line, d.StepsAfter)
	}
	for i := range f.Logs.Deaths {
		d := &f.Logs.Deaths[i]
		if d.What != "signal" && d.What != "exit" || s.over(d) {
			continue
		}
		s.ends = append(s.ends, d)
		if s.launcher == nil && (d.Rank != nil || d.First) || s.launcher != nil && d.First && !s.launcher.First {
			s.launcher = d
		}
	}
	waiting := slices.DeleteFunc(slices.Clone(f.Logs.Messages), func(m facts.Message) bool { return !message.Waits(m.ID) })
	stuck := slices.ContainsFunc(waiting, func(m facts.Message) bool { return !hasPassed(&m) })
	s.wentOn = len(waiting) > 0 && !stuck && len(s.ends) == 0
	waited, lost := map[speaker]bool{}, map[speaker]bool{}
	ending := false // A process whose communicators were not destroyed aborts them as it ends.
	for i := range f.Logs.Messages {
		m := &f.Logs.Messages[i]
		ending = ending || m.ID == "torch-not-destroyed"
		waits, follows := message.Waits(m.ID), m.Role == "consequence"
		aborts := ending && m.ID == "nccl-trace" && len(s.complaints) == 0
		if s.wentOn && waits || m.Role == "category" && passed(f, m) || aborts || !waits && hasPassed(m) || m.Complains() && s.isOver(m) {
			s.outlived = append(s.outlived, m.Order)
			continue
		}
		if !m.Complains() {
			continue
		}
		s.complaints = append(s.complaints, m)
		s.waiting[m], s.bereft[m] = waits, follows
		if m.Rank != nil {
			who := speaker{m.Source, *m.Rank}
			waited[who], lost[who] = waited[who] || waits, lost[who] || follows
			s.waiting[m], s.bereft[m] = waited[who], lost[who]
		}
		if m.Role != "consequence" && !message.OfProcess(m.ID) {
			s.trouble = append(s.trouble, m)
			if m.Time != "" && (s.began == "" || m.Time < s.began) {
				s.began = m.Time
			}
		}
	}
	return s
}

// isOver reports whether a complaint no longer counts: the job ended well, somebody cancelled it, or it is another job.
func (s *story) isOver(m *facts.Message) bool {
	return s.endedWell(m) || s.wentOnAfter(m.Source, m.Line) || s.quoted(m) || s.ofAnotherJob(m) || s.asked(m.Source, m.Line)
}

// over reports whether the end of a process was asked for, or the job ended well after it.
func (s *story) over(d *facts.Death) bool {
	return d.StepsAfter == facts.EndedWell || s.wentOnAfter(d.Source, d.Line) || s.asked(d.Source, d.Line)
}

// wentOnAfter reports whether a job that was ended for another went on after a line.
func (s *story) wentOnAfter(source string, line int) bool {
	last, is := s.requeued[source]
	return is && line <= last
}

func (s *story) asked(source string, line int) bool {
	from, cancelled := s.cancelled[source]
	return cancelled && line > from
}

// endedWell reports whether the job ended well after a message, or tests that provoked it passed.
func (s *story) endedWell(m *facts.Message) bool {
	return m.StepsAfter == facts.EndedWell && (s.provoked[m.Source] || len(s.ends) == 0)
}

// ofJob are names of texts with the number of a job, as sbatch and its scripts choose them: "slurm-4711.out", "train-4711.err".
var ofJob = lazy.New(`(?i)(?:slurm|job)\w*[-_.](\d{4,})\b|[-_.](\d{4,7})\.(?:out|err)$`)

// ofAnotherJob reports whether a line of a list of jobs is about none that wrote a text.
func (s *story) ofAnotherJob(m *facts.Message) bool {
	if m.Fields["job"] == "" {
		return false
	}
	jobs := map[string]bool{}
	for name := range s.texts {
		if m := ofJob.FindStringSubmatch(name); m != nil {
			jobs[m[1]+m[2]] = true
		}
	}
	return len(jobs) > 0 && !jobs[m.Fields["job"]]
}

// quoted reports whether a message in a text of no process, as a post and a journal are, says what a log shows to have passed.
func (s *story) quoted(m *facts.Message) bool {
	same := func(o *facts.Message) bool {
		_, alike := message.StatementOf(m.ID).Match(o.Text)
		return o.ID == m.ID || alike
	}
	return !slices.ContainsFunc(s.facts.Logs.Processes, func(p facts.Process) bool { return p.Source == m.Source }) &&
		slices.ContainsFunc(s.facts.Logs.Messages, func(o facts.Message) bool {
			return o.Source != m.Source && (hasPassed(&o) || s.endedWell(&o)) && same(&o)
		})
}

// passed reports whether a benchmark went on to its end, with right results, after a complaint that names no cause, and
// none began in between.
func passed(f *facts.Facts, m *facts.Message) bool {
	return slices.ContainsFunc(f.Benchmarks, func(b facts.Benchmark) bool {
		sound := b.Source == m.Source && b.Complete && b.Wrong != nil && *b.Wrong == 0 && len(b.Points) > 0
		return sound && m.Line < b.Points[len(b.Points)-1].Line && !slices.ContainsFunc(f.Benchmarks, func(o facts.Benchmark) bool {
			return o.Source == m.Source && o.Line > m.Line && o.Line < b.Line
		})
	})
}

// deaths are the ends of that kind before which there was no trouble.
func (s *story) deaths(kind func(*facts.Death) bool) []*facts.Death {
	var all []*facts.Death
	for i := range s.facts.Logs.Deaths {
		if d := &s.facts.Logs.Deaths[i]; kind(d) && !s.preceded(d) && !s.over(d) {
			all = append(all, d)
		}
	}
	return all
}

// first is the end that the others follow: a launcher's report of the rank counts more than the order.
// The launcher may be the only one to name the process.
func (s *story) first(own []*facts.Death) *facts.Death {
	if len(own) == 0 {
		return nil
	}
	chosen := own[0]
	if s.launcher != nil {
		of := func(d *facts.Death) bool { return d.Rank == nil || sameRank(d.Rank, s.launcher.Rank) }
		if i := slices.IndexFunc(own, of); i >= 0 {
			chosen = own[i]
		}
	}
	d := *chosen
	if s.launcher != nil && (d.Rank == nil || sameRank(d.Rank, s.launcher.Rank)) && (d.PID == 0 || s.launcher.PID == 0 || d.PID == s.launcher.PID) {
		d.Rank, d.Host, d.PID = s.launcher.Rank, cmp.Or(s.launcher.Host, d.Host), cmp.Or(s.launcher.PID, d.PID)
	}
	if d.Rank == nil && d.What == "assertion" {
		d.Rank = s.assertedIn(&d)
	}
	return &d
}

// wordsOf are the messages, by their order, that are the words of an exception, and that no other process says.
func (s *story) wordsOf(d *facts.Death) []int {
	var all []int
	for _, m := range s.complaints {
		if d != nil && d.What == "exception" && m.Role != "cause" && m.Ranks < 2 && m.Source == d.Source && m.Line >= d.Begins && m.Line <= d.Line {
			all = append(all, m.Order)
		}
	}
	return all
}

// assertedIn is the one rank whose exception reports an assertion of device code, which itself names none; nil for
// several or none.
func (s *story) assertedIn(d *facts.Death) *int {
	var rank *int
	for _, o := range s.facts.Logs.Deaths {
		if o.Rank == nil || o.Source != d.Source || !strings.Contains(o.Said, "device-side assert") {
			continue
		}
		if rank != nil && *rank != *o.Rank {
			return nil
		}
		rank = o.Rank
	}
	return rank
}

func sameRank(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }

// byItself reports whether the program brought an end on itself.
func (s *story) byItself(d *facts.Death) bool {
	switch {
	case d.What == "exception" && s.executed(d):
		return false
	case executors[d.Reporter]:
		return !s.outOfMemory()
	case d.What == "exception":
		return s.cameThrough(d) && itsOwn(printed(d)) && !slices.ContainsFunc(d.Behind, func(b string) bool { return !itsOwn(strings.TrimPrefix(b, untransformed)) }) && !s.claimed(d, "")
	case d.Reporter == "kernel": // A process of whatever program; of the job, where that lost one.
		return slices.ContainsFunc(s.complaints, func(m *facts.Message) bool { return message.PeerGone(m.ID) })
	case d.What == "assertion":
		return !libraries.MatchString(d.File)
	case d.Class == "SIGSEGV" || d.Class == "SIGILL" || d.Class == "SIGFPE" || d.Class == "SIGXCPU" || d.Class == "SIGXFSZ": // The kernel raises these for what the process did itself.
		return true
	case d.Class == "SIGABRT" && s.gaveUp(d): // A library aborts a process whose peer is lost.
		return false
	case d.Class == "SIGABRT" || d.Class == "SIGKILL": // These may come from outside, and from PyTorch when a watchdog aborted.
		return !s.outOfMemory()
	case d.What == "signal": // A launcher ends the other ranks with SIGTERM, and a full /dev/shm one with SIGBUS.
		return d.First && d.Class != "SIGBUS" && (d.Class != "SIGTERM" || len(s.trouble) == 0)
	case d.Code != nil && *d.Code != exceptionCode:
		return true
	}
	return !slices.ContainsFunc(s.facts.Logs.Deaths, func(o facts.Death) bool {
		return o.What == "exception" && s.cameThrough(&o) && !launchers[leaf(o.Class)]
	})
}

// untransformed is what JAX prints before an exception, with the place of the call that it came from (jax/_src/traceback_util.py).
const untransformed = "jax._src.source_info_util.JaxStackTraceBeforeTransformation: "

// executors are the programs that miss one of their workers and do not know how it ended. What they raise then is a
// consequence.
var executors = map[string]bool{"vllm": true, "sglang": true}

// executed reports whether an exception follows on an executor's report that a worker is gone.
func (s *story) executed(d *facts.Death) bool {
	return slices.ContainsFunc(s.ends, func(e *facts.Death) bool {
		return executors[e.Reporter] && e.Line < d.Begins && s.inOrder(e.Source, e.Line, d)
	})
}

// gaveUp reports whether a process reported a consequence, or that something is wrong, before its end. Of a message that
// several processes say alike, the facts have only the first.
func (s *story) gaveUp(d *facts.Death) bool {
	ofIt := func(rank *int, pid int) bool {
		return sameRank(rank, d.Rank) && (pid == d.PID || pid == 0 || d.PID == 0)
	}
	return slices.ContainsFunc(s.complaints, func(m *facts.Message) bool {
		return m.Role == "consequence" && m.Line < d.Begins && ofIt(m.Rank, m.PID) && s.inOrder(m.Source, m.Line, d)
	}) || slices.ContainsFunc(s.facts.Logs.Processes, func(p facts.Process) bool {
		return p.Said != "" && p.Line < d.Begins && ofIt(p.Rank, p.PID) && s.inOrder(p.Source, p.Line, d)
	})
}

// beforeOthersWaited reports whether an exception that may come from the machine or a server, but not from
// communication, ended one rank, and all trouble of the others is that they wait for it and what follows, or comes
// after the end that a launcher saw first.
func (s *story) beforeOthersWaited(d *facts.Death) bool {
	if d.What != "exception" || d.Rank == nil || !s.cameThrough(d) || ofCommunication(printed(d)) && !elsewhere.MatchString(d.RaisedIn) || s.claimed(d, "cause") || s.interruptedTogether(d) {
		return false
	}
	witnessed := s.launcher != nil && s.launcher.First && sameRank(s.launcher.Rank, d.Rank)
	return (witnessed || len(s.trouble) > 0) && !slices.ContainsFunc(s.trouble, func(m *facts.Message) bool {
		ofItself := m.Source == d.Source && m.Line >= d.Begins && m.Line <= d.Line
		behind := witnessed && m.Line > d.Line && s.inOrder(m.Source, m.Line, d)
		return !s.waiting[m] && !ofItself && !behind
	})
}

// interruptedTogether reports whether several ranks were interrupted, as a person does with a job that hangs.
func (s *story) interruptedTogether(d *facts.Death) bool {
	return d.Class == "KeyboardInterrupt" && slices.ContainsFunc(s.facts.Logs.Deaths, func(o facts.Death) bool {
		return o.Class == d.Class && o.Rank != nil && *o.Rank != *d.Rank
	})
}

// launchers are the exceptions with which launchers end, once a process has failed.
var launchers = map[string]bool{
	"ChildFailedError": true, "CalledProcessError": true, "ProcessExitedException": true, "ProcessRaisedException": true, "SignalException": true, "SystemExit": true,
}

// outOfMemory reports whether memory ran out: the kernel kills a process then.
func (s *story) outOfMemory() bool {
	return slices.ContainsFunc(s.facts.Logs.Messages, func(m facts.Message) bool { return m.ID == "torch-host-out-of-memory" || m.ID == "torch-out-of-memory" }) ||
		s.facts.KernelLog != nil && slices.ContainsFunc(s.facts.KernelLog.Events, func(e facts.KernelEvent) bool { return e.Kind == "oom" })
}

// cameThrough reports whether an exception ended its process, as far as the text shows: it was
// uncaught, no steps came after it, and the job failed or the text ends there.
func (s *story) cameThrough(d *facts.Death) bool {
	if d.Uncaught {
		return true
	}
	if d.Ignored || d.StepsAfter >= manySteps || d.StepsAfter > 0 && !d.TopLevel && (len(s.ends) == 0 || len(s.trouble) > 0) {
		return false
	}
	t := s.texts[d.Source]
	return len(s.complaints) > 0 || len(s.ends) > 0 || t != nil && t.EndOf(d.Line)-d.Line <= nearEnd
}

// preceded reports whether there was trouble before a death. What another process says does not
// count where a launcher saw this one end first, otherwise than by an exception, nor before an exception
// that it waited for: that a rank waits makes no other raise one.
func (s *story) preceded(d *facts.Death) bool {
	witnessed := d.First && d.Rank != nil && (d.Code == nil || *d.Code != exceptionCode)
	return slices.ContainsFunc(s.trouble, func(m *facts.Message) bool {
		if s.waiting[m] && awaited(d, m.Rank) || s.bereft[m] && crashed(d) && (d.PID == 0 || d.PID != m.PID) && !sameRank(d.Rank, m.Rank) {
			return false
		}
		if witnessed && (m.Rank != nil && *m.Rank != *d.Rank || m.Rank == nil && m.PID != d.PID) {
			return false
		}
		return m.Line < d.Begins && s.inOrder(m.Source, m.Line, d) || m.Time != "" && d.Time != "" && d.Time > s.began
	})
}

// inOrder reports whether a line and that of a death are in the order in which they were written: they are of one
// text, and of one section of it.
func (s *story) inOrder(source string, line int, d *facts.Death) bool {
	t := s.texts[d.Source]
	return source == d.Source && (t == nil || t.SectionOf(line) == t.SectionOf(d.Line))
}

// crashed reports whether a signal ended a process that did not send it itself: the others lose the connection before
// the launcher or the shell tells of it.
func crashed(d *facts.Death) bool {
	return d.What == "signal" && (d.PID != 0 || d.Rank != nil) && d.Class != "SIGABRT" && d.Class != "SIGTERM"
}

// awaited reports whether an exception is one that a rank which waited did not raise itself: another
// rank did, or nobody says which, and only a mistake of the program raises it.
func awaited(d *facts.Death, waiter *int) bool {
	if d.What != "exception" || d.Rank == nil {
		return d.What == "exception" && slices.Contains(programming, leaf(d.Class))
	}
	return waiter != nil && *waiter != *d.Rank
}

// claimed reports whether the line of an exception, or of one like it, is a message of the catalogue with that role; ""
// is any. A line of its traceback may be a cause.
func (s *story) claimed(d *facts.Death, role string) bool {
	return slices.ContainsFunc(s.facts.Logs.Deaths, func(o facts.Death) bool {
		return o.What == d.What && o.Class == d.Class && o.Said == d.Said && slices.ContainsFunc(s.complaints, func(m *facts.Message) bool {
			within := m.Line == o.Line || m.Role == "cause" && o.Begins > 0 && m.Line >= o.Begins && m.Line < o.Line
			return m.Source == o.Source && within && (role == "" || m.Role == role) && !strings.HasPrefix(m.ID, "process-")
		})
	})
}

// lost are the processes of which others only say that they are gone; nil where something else is wrong.
func (s *story) lost() *facts.Lost {
	var l facts.Lost
	for _, m := range s.complaints {
		if m.Role != "consequence" && !message.PeerGone(m.ID) {
			return nil
		}
		if message.PeerGone(m.ID) {
			l.ToldBy = append(l.ToldBy, m.Order)
			l.Rank = cmp.Or(m.Fields["peer_rank"], l.Rank)
		}
	}
	if len(l.ToldBy) == 0 {
		return nil
	}
	return &l
}

// unexplained is the first exception that ended a process, where nothing else is known to be wrong.
func (s *story) unexplained() *facts.Death {
	if len(s.complaints) > 0 {
		return nil
	}
	return facts.Find(s.facts.Logs.Deaths, func(d *facts.Death) bool {
		return d.What == "exception" && (d.Uncaught || d.TopLevel) && d.Class != "KeyboardInterrupt" && s.cameThrough(d) && !s.over(d)
	})
}

func printed(d *facts.Death) string { return d.Class + ": " + d.Said }

// itsOwn reports whether an exception, as it is printed, is of the program: those of Python's own
// that only a program's mistake raises, and others unless their class or words speak of communication,
// GPUs, the machine's limits, or another process that failed.
func itsOwn(printed string) bool {
	class, said := parts(printed)
	return slices.Contains(programming, class) || !ofCommunication(printed) && !machineClass.MatchString(class) && !machineWords.MatchString(said)
}

// ofCommunication reports whether an exception speaks of communication between ranks or of GPUs.
func ofCommunication(printed string) bool {
	class, said := parts(printed)
	return communicationClass.MatchString(class) || communicationWords.MatchString(withoutPaths(said))
}

// parts are the class of a printed exception, without its modules, and its words, without those that only say where it was.
func parts(printed string) (class, said string) {
	class, _, _ = strings.Cut(printed, ":")
	return leaf(class), wrapper.ReplaceAllString(printed[len(class):], "")
}

// wrapper is what says where an exception of the program was: on a GPU, or in a process whose exceptions PyTorch
// raises again (torch/_utils.py, ExceptionWrapper).
var wrapper = lazy.New(`cuda:\d+|Caught \w+ in (?:DataLoader worker process|replica|pin memory thread)`)

// withoutPaths are the words of an exception without the files that they name, whose folders may have any name. A file of
// a library's source says whose words they are.
func withoutPaths(said string) string {
	return namedPath.Get().ReplaceAllStringFunc(said, func(file string) string {
		if slices.Contains([]string{".cc", ".cpp", ".cu", ".h"}, path.Ext(file)) {
			return file
		}
		return ""
	})
}

var namedPath = lazy.New(`[\w.+-]*(?:/[\w.+-]+){2,}`)

// elsewhere are libraries that have nothing to do with communication between ranks, whatever words they use: they load
// data and models.
var elsewhere = lazy.New(`/(?:torch/utils/data|torch/serialization|requests|urllib3?|http/client|httpx|aiohttp|huggingface_hub|fsspec|botocore|datasets|safetensors|tokenizers|numpy|pandas|pyarrow|PIL|wandb)\b`)

// leaf is a class without its modules, and of Ray's wrapper the class that it wraps.
func leaf(class string) string {
	class = strings.TrimSuffix(class, ")")
	return class[strings.LastIndexAny(class, ".(")+1:]
}

// programming are the exceptions of https://docs.python.org/3/library/exceptions.html that only a
// program's mistake raises.
var programming = []string{
	"ArithmeticError", "AttributeError", "FloatingPointError", "IndentationError", "IndexError", "JSONDecodeError", "KeyError", "LookupError",
	"ModuleNotFoundError", "NameError", "OverflowError", "RecursionError", "StopIteration", "SyntaxError", "TabError", "TypeError", "UnboundLocalError",
	"UnicodeDecodeError", "UnicodeEncodeError", "ZeroDivisionError",
}

var (
	libraries          = lazy.New(`(?i)nccl|rccl|ucx|ucp_|uct_|ibv|libfabric|gloo|psm2`)
	communicationClass = lazy.New(`(?i)nccl|rccl|cuda|hip|nvml|xla|jax|accelerator|outofmemory|memoryerror|^oom|` +
		`dist(?:backend|network|store|queue|error)|rendezvous|collective|barrier|` +
		`connect|timeout|timedout|expired|network|socket|gaierror|brokenpipe|eoferror|grpc|rpc|http|ssl|zmq|` +
		`childfailed|calledprocess|processraised|processexited|brokenprocess|signal|systemexit|actor|died|crash|dead|killed|cancel`)
	communicationWords = lazy.New(`(?i)nccl|rccl|\bcuda|cudnn|cublas|cusolver|\bhip\b|hiperror|\bhsa\b|\bgpus?\b|\bdriver|nvidia|nvml|triton|kernel image|` +
		`gloo|c10d|\bucx\b|\bmpi\b|rdma|ibv_|libfabric|infiniband|store|socket|connect|\btcp|\bport\b|address (?:already )?in use|unreachable|resolve|` +
		`time(?:d)?[ -]?out|collective|all_?reduce|all_?gather|process group|default group|\bpeer|p2p|nvlink|rank \d+ |world[ _]size|` +
		`root cause|see (?:the )?(?:stack trace|log|above|error)|worker\w* (?:failed|died)|background process`)
	machineClass = lazy.New(`(?i)interrupt|^empty$|permission`)
	machineWords = lazy.New(`(?i)shared memory|(?:^|[^\w./-])/(?:dev|sys|proc)/|\bshm|memlock|\bmemory\b|too many open files|resource temporarily|cannot allocate|not permitted|permission denied|` +
		`\.so\b|undefined symbol|glibc|shared object|dataloader worker|worker\w* (?:process|exited|proc)|exited unexpectedly|terminated|killed|signal`)
)
