// Package runs separates the runs of a program in transcripts and in the files of a ticket, finds the outcome of each,
// and compares those that differ in one thing. It also reads how the processes of a job ended, and how far each came.
//
// Lines leave marks while they are read. A session goes over those of a text, in order, and makes runs of them.
package runs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// New makes the kinds of this package for one reading.
func New(s *parse.Sink) parse.Family {
	r := &recorder{sink: s, headers: map[caption]string{}}
	s.Listen(r.hear)
	return parse.Family{Kinds: []*parse.Kind{runsKind(r), matrixKind(r)}, Finish: r.finish}
}

// runsKind sees the lines that separate runs or tell the outcome of one. Other kinds read
// most of them as well: it takes none away.
func runsKind(r *recorder) *parse.Kind {
	return &parse.Kind{
		Name: "runs", Title: "Several runs of a program: with and without a setting, on other GPUs; or a sentence that tells of them", Gives: []string{"runs"},
		Anchors: []string{
			// Prompts and headings.
			"$ ", "# ", "% ", "CCL_", "HSA_", "UCX_", "FI_", "GGML_", "GLOO_", "TP_SOCKET", "MPICH_", "VLLM_", "_DEVICES=", "P2P off", "P2P on", "P2P dis", "P2P ena", "P2P is ", "ith P2P", "p2p off", "p2p on", "p2p dis", "p2p ena",
			"ith p2p", "SHM off", "SHM on", "IB off", "IB on", "RDMA off", "RDMA on", "GDR off", "GDR on", "NVLS off", "NVLS on", "iommu", "IOMMU", "ACS ", "ithout", "efault",
			"aseline", " GPUs", "GPUs ", "GPU 0,", "GPU 1,", "GPU 2,", "GPU 3,", "GPU 4,", "GPU 5,", "GPU 6,", " and GPU",
			// The outcome of a run.
			"nThread ", "nccl-library=", "Out of bounds values", "Avg bus bandwidth", " - Init COMPLETE", `"content":`, `"text":`, `"response":`, "xit code", "xit status", " rc=", "exitcode", "PASSED", " passed", "Generated text: ", " loss", "'loss", "Loss",
			"^C", " hang", "hangs", "Hang", "hung", "stuck", "works", "Works", "Test failed", "core dumped",
			"esult |", "utcome |", "tatus |", "etting |", "onfig |", "? |", "结果 |", "NCCL", "RCCL", "libnccl", "librccl", // Headers of tables.
			"isable-custom-all-reduce", "isable_custom_all_reduce", "isabling ", "isabled ", "shm-size", "--ipc", "rivileged", "ingle node", "ne node", "eer access", "eer-to-peer", "btl_tcp_if", " fail", " crash", " dies", "reeze", "froze", "eadlock", // Sentences.
			"eboot", "ower cycle", "ower-cycle", "pgraded", "owngraded", "nstalled", "swapped",
		},
		Prose: true,
		Skips: skips,
		Line: func(_ *parse.Sink, l parse.Line) bool {
			r.line(l)
			return !strings.Contains(l.Text, " - Init COMPLETE") && r.prose(l)
		},
	}
}

// markKind says what a line is for a run. Of one line, what begins a run comes first; from finished on, a mark tells its outcome.
type markKind uint8

const (
	prompt    markKind = iota // a shell prompt
	command                   // a line that starts a program
	heading                   // what the run below it is
	banner                    // how a program begins its output
	variable                  // a line that sets one
	unset                     // one that takes variables away
	version                   // what a library says about itself
	made                      // a communicator was made
	change                    // somebody says that the machine was changed
	finished                  // the closing line of a table
	checked                   // its count of wrong values
	complaint                 // a message that something failed
	exit                      // how a process ended
	passed                    // the word of a test
	step                      // a step of a training
	stopped                   // a ^C
	word                      // what a person says about the run
)

// mark is a line that tells something of runs.
type mark struct {
	kind markKind
	line int
	// text is the line, at most maxText bytes of it.
	text string
	// name and value are a variable's, a library's, or a message's id and role; of a word value is the outcome.
	name, value string
	// number is an exit code, a count of wrong values, or that of a step.
	number int
	// count is how many steps came in a row, each with a larger number.
	count int
	// settings are those of a heading or command, removed the variables that it takes away.
	settings [][2]string
	removed  []string
	// denied are those of the removed of which the value is said that they do not have.
	denied [][2]string
	host   string
	launch *facts.Launch
	// logged is true for a variable that the library says it read.
	logged bool
	// asked is true for a heading that asks, or asks for something.
	asked bool
	// quoted is how many times the line is quoted, and indented how far.
	quoted, indented int
}

// recorder takes the marks of a reading.
type recorder struct {
	sink *parse.Sink
	// sessions are those of the texts so far.
	sessions []*session
	// headers are lines that may be headers of tables, and tabled the runs of tables.
	headers map[caption]string
	tabled  []*run
	// told are those that sentences tell of, and now is how far the text under way came.
	told []*run
	now  telling
}

const (
	// maxText bounds what is kept of a line.
	maxText = 300
	// mostBehind is how many lines a mark may come late: readers of blocks look ahead.
	mostBehind = 512
	// leastRecent is how many marks are put in order together, at least.
	leastRecent = 512
)

// session is that of the text that is being read.
func (r *recorder) session() *session {
	if n := len(r.sessions); n > 0 && r.sessions[n-1].name == r.sink.Source() {
		return r.sessions[n-1]
	}
	s := newSession(r.sink.Source())
	r.sessions = append(r.sessions, s)
	return s
}

// note takes a mark, and gives the session those before which no other can come.
func (r *recorder) note(m mark) {
	s := r.session()
	m.text = strings.Clone(m.text[:min(len(m.text), maxText)])
	if s.recent = append(s.recent, m); len(s.recent) >= s.enough {
		s.takeBefore(m.line - mostBehind)
		s.enough = 2*len(s.recent) + leastRecent
	}
}

// takeBefore takes the recent marks of the lines before one, in order; of one line what begins a run comes first.
func (s *session) takeBefore(line int) {
	slices.SortStableFunc(s.recent, func(a, b mark) int { return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.kind, b.kind)) })
	n, _ := slices.BinarySearchFunc(s.recent, line, func(m mark, line int) int { return cmp.Compare(m.line, line) })
	for _, m := range s.recent[:n] {
		if len(s.runs) < 2*maxRuns {
			s.take(m)
		}
	}
	s.recent = slices.Delete(s.recent, 0, n)
}

// stalls reports whether a row of the catalogue says that something did not end in time.
func stalls(id string) bool { return slices.Contains(data.Experiments().Hangs, id) }

// hear takes what other kinds learnt of a line.
func (r *recorder) hear(e parse.Event) {
	m := mark{line: e.Line.Number, text: e.Line.Text, name: e.Name, value: e.Value}
	m.quoted, m.indented = e.Line.Quoted()
	switch e.Kind {
	case parse.VariableSet:
		m.kind, m.logged = variable, strings.Contains(e.Line.Text, " set by environment to ") || strings.Contains(e.Line.Text, " NCCL INFO ")
	case parse.VersionTold:
		if e.Name != "nccl" && e.Name != "rccl" {
			return
		}
		m.kind = version
	case parse.MessageSaid:
		if message.StatementOf(e.Name).Program != "people" && (!r.sink.Personal() || len(strings.Fields(e.Line.Text)) < leastProse) {
			r.forget(e.Line) // A program said it.
		}
		switch {
		case complains(e.Value):
			m.kind = complaint
		case slices.Contains(data.Experiments().Starts, e.Name):
			m.kind = passed
		default:
			return
		}
	case parse.Launched:
		if e.Launch.Command == nil || !slices.Contains(launched, e.Launch.Kind) {
			return
		}
		m.kind, m.launch = command, e.Launch
	}
	r.note(m)
}

// complains reports whether messages of a role of the catalogue say that something failed.
func complains(role string) bool {
	return slices.Contains([]string{"cause", "category", "consequence"}, role)
}

// launched are the kinds of launches that are typed at a prompt.
var launched = []string{"docker-run", "slurm", "apptainer", "mpirun", "torchrun", "command"}
