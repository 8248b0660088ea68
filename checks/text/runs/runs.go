// Package runs separates the runs of a program in transcripts and in the files of a
// ticket, finds the outcome of each, and compares those that differ in one
// thing: people try a job with and without a setting, on two GPUs and on four.
//
// Lines leave marks while they are read; when all texts are read, runs are built from the marks.
package runs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// New makes the kinds of this package for one reading.
func New(s *parse.Sink) parse.Family {
	r := &recorder{sink: s, texts: map[string]*transcript{}}
	s.Listen(r.hear)
	return parse.Family{Kinds: []*parse.Kind{runsKind(r)}, Finish: r.finish}
}

// runsKind sees the lines that separate runs or tell the outcome of one. Other kinds read
// most of them as well: it takes none away.
func runsKind(r *recorder) *parse.Kind {
	return &parse.Kind{
		Name: "runs", Title: "Several runs of a program: with and without a setting, on other GPUs", Gives: []string{"runs"},
		Anchors: []string{
			// Prompts and headings.
			"$ ", "# ", "% ", "NCCL_", "RCCL_", "_DEVICES=", "P2P off", "P2P on", "P2P dis", "P2P ena", "P2P is ", "ith P2P", "p2p off", "p2p on", "p2p dis", "p2p ena",
			"ith p2p", "SHM off", "SHM on", "IB off", "IB on", "RDMA off", "RDMA on", "GDR off", "GDR on", "NVLS off", "NVLS on", "iommu", "IOMMU", "ACS ", "ithout", "efault",
			"aseline", " GPUs", "GPUs ", "GPU 0,", "GPU 1,", "GPU 2,", "GPU 3,", "GPU 4,", "GPU 5,", "GPU 6,", " and GPU",
			// The outcome of a run.
			"nThread ", "Out of bounds values", "Avg bus bandwidth", " - Init COMPLETE", `"content":`, `"text":`, `"response":`, "xit code", "xit status", "exitcode", "PASSED", " passed", " loss", "'loss", "Loss",
			"^C", " hang", "hangs", "Hang", "hung", "stuck", "works", "Works", "Test failed", "core dumped",
			"eboot", "ower cycle", "ower-cycle", "pgraded", "owngraded", "nstalled", "swapped",
		},
		Prefilter: prefilter,
		Line: func(_ *parse.Sink, l parse.Line) bool {
			r.line(l)
			return false
		},
	}
}

// markKind says what a line is for a run.
type markKind uint8

const (
	// prompt is a shell prompt, command a line that starts a program, heading one that says
	// what the run below is, and banner how a program begins its output.
	prompt markKind = iota
	command
	heading
	banner
	// variable is a line that sets one, unset one that takes it away, version what a library
	// says about itself, made a communicator that was made, and change what somebody says was
	// changed of the machine.
	variable
	unset
	version
	made
	change
	// finished is the closing line of a table, checked its count of wrong values, complaint a
	// message that says something failed, exit how a process ended, passed the word of a
	// test, step a step of a training, stopped a ^C, and word what a person says about the run.
	finished
	checked
	complaint
	exit
	passed
	step
	stopped
	word
)

// mark is a line that tells something of runs.
type mark struct {
	kind markKind
	line int
	// text is the line, at most maxText bytes of it.
	text string
	// name and value are a variable's, a library's, or a message's id and role; of a word
	// value is the outcome.
	name, value string
	// number is an exit code, a count of wrong values, or that of a step.
	number int
	// count is how many steps came in a row, each with a larger number.
	count int
	// settings are those of a heading or command, removed the variables that it takes away.
	settings []setting
	removed  []string
	host     string
	launch   *facts.Launch
	// logged is true for a variable that the library says it read.
	logged bool
	// asked is true for a heading that asks, or asks for something.
	asked bool
	// quoted is how many times the line is quoted, and indented how far.
	quoted, indented int
}

type setting struct{ name, value string }

// transcript is the marks of one text.
type transcript struct {
	name string
	// marks are in the order of lines, and what is said again and again is in them as often
	// as it matters. recent are those behind them, as they came: the command of a block is
	// told after lines of its output.
	marks, recent []mark
	// enough is how many recent ones are put in order.
	enough int
	// since is where the marks behind the last boundary begin, and said what was told there
	// once.
	since int
	said  map[telling]bool
	// full is true once marks were left out: the outcome of the last run is not known.
	full bool
}

// telling is what a log says again and again, and what counts once.
type telling struct {
	kind        markKind
	logged      bool
	name, value string
}

// again reports whether it was told since the last boundary, and remembers it.
func (t *transcript) again(told telling) bool {
	if t.said[told] {
		return true
	}
	if len(t.said) < maxMarks {
		t.said[told] = true
	}
	return false
}

// recorder takes the marks of a reading.
type recorder struct {
	sink  *parse.Sink
	texts map[string]*transcript
	order []*transcript
	// marks counts those of all texts.
	marks int
}

// maxText bounds what is kept of a line.
const maxText = 300

// maxMarks bounds the marks of a reading: of a text with prompts, hundreds are many.
const maxMarks = 1 << 15

const (
	// mostBehind is how many lines a mark may come late: readers of blocks look up to 200
	// lines ahead (see Lines.Ahead).
	mostBehind = 256
	// leastRecent is how many marks are put in order together, at least.
	leastRecent = 512
)

// text is the transcript of the text that is being read.
func (r *recorder) text() *transcript {
	name := r.sink.Source()
	if n := len(r.order); n > 0 && r.order[n-1].name == name {
		return r.order[n-1]
	}
	t := r.texts[name]
	if t == nil {
		t = &transcript{name: name, said: map[telling]bool{}, enough: leastRecent}
		r.texts[name] = t
		r.order = append(r.order, t)
	}
	return t
}

// note keeps a mark.
func (r *recorder) note(m mark) {
	t := r.text()
	if r.marks >= maxMarks {
		t.full = true
		return
	}
	m.text = strings.Clone(m.text[:min(len(m.text), maxText)])
	r.marks++
	t.recent = append(t.recent, m)
	if len(t.recent) >= t.enough {
		r.marks -= t.settle(m.line - mostBehind)
	}
}

// settle puts the recent marks of the lines before one in order, and returns how many of
// them are not kept.
func (t *transcript) settle(before int) (dropped int) {
	inOrder(t.recent)
	n, _ := slices.BinarySearchFunc(t.recent, before, func(m mark, line int) int { return cmp.Compare(m.line, line) })
	kept := len(t.marks)
	for _, m := range t.recent[:n] {
		t.keep(m)
	}
	t.recent = slices.Delete(t.recent, 0, n)
	t.enough = 2*len(t.recent) + leastRecent
	return n - (len(t.marks) - kept)
}

// inOrder sorts marks by their lines; of one line what begins a run comes first.
func inOrder(marks []mark) {
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.kind, b.kind)) })
}

// keep keeps a mark. What a log says thousands of times is kept as often as it matters.
func (t *transcript) keep(m mark) {
	switch m.kind {
	case prompt, command, heading, banner:
		t.since = len(t.marks)
		clear(t.said)
	case variable, version, made, change:
		if t.again(telling{m.kind, m.logged, m.name, m.value}) {
			return
		}
	default:
		if t.repeated(m) {
			return
		}
	}
	t.marks = append(t.marks, m)
}

// repeated reports whether a mark adds nothing to those since the last boundary, or was
// joined to one of them.
func (t *transcript) repeated(m mark) bool {
	since := t.marks[t.since:]
	n := len(since)
	if m.kind == step && n > 0 && since[n-1].kind == step {
		last := &since[n-1]
		if m.number > last.number {
			last.count++
		}
		last.line, last.text, last.number = m.line, m.text, m.number
		return true
	}
	// The first of several and the last count.
	several := m.kind == exit || m.kind == word || m.kind == complaint && n > 0 && stalls(since[n-1].name) == stalls(m.name)
	if several && n > 1 && since[n-1].kind == m.kind && since[n-2].kind == m.kind {
		since[n-1] = m
		return true
	}
	return false
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
		switch {
		case e.Value == "cause" || e.Value == "category" || e.Value == "consequence":
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

// launched are the kinds of launches that are typed at a prompt.
var launched = []string{"docker-run", "slurm", "apptainer", "mpirun", "torchrun", "command"}
