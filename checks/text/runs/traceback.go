package runs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// The words that CPython's traceback.c, traceback.py, faulthandler.c and logging
// write, and torch/multiprocessing/spawn.py.
const (
	head         = "Traceback (most recent call last):"
	frame        = `  File "`
	ignored      = "Exception ignored in"
	loggingError = "--- Logging error ---"
	chained      = "he above exception" // "During handling of ...", "... was the direct cause".
	spawned      = "terminated with the following error:"
	fatal        = "Fatal Python error: "
	process      = "Process-" // multiprocessing names the process that an exception ended.
)

const (
	// maxLooked bounds the lines that are looked at ahead in one reading, maxOpen the tracebacks under way.
	maxLooked = 4 << 20
	maxOpen   = 512
	// maxBehind bounds the exceptions behind the last one that are kept, and maxWords their words.
	maxBehind = 4
	maxWords  = 160
	maxName   = 200
	// near is how many lines lie at most between two tracebacks of one chain, and
	// between a heading and what it is about.
	near = 64
	// maxPieces bounds the pieces into which a screen broke a frame.
	maxPieces = 8
)

// NewDeaths makes, for one reading, the kinds that show how the processes of a job ended: tracebacks of Python, signals,
// assertions, exit codes that launchers report.
func NewDeaths(s *parse.Sink) parse.Family {
	t := &tracebacks{open: make(map[string]*traceback)}
	return parse.Family{Kinds: []*parse.Kind{
		{
			Name: "traceback", Title: "where a Python program raised an exception or died", Gives: []string{"logs"},
			Anchors: []string{head, frame, ignored, loggingError, chained, spawned, fatal, process},
			Begins:  tracebackBegins,
			Read:    t.read,
		},
		torchrunKind(t), new(ends).kind(), stepsKind(t),
	}, Finish: func() {
		if l := late(t.paces); l != nil {
			s.Logs().Late = l
		}
	}}
}

// tracebacks are those of one reading. The lines of several processes may stand between
// each other: what launchers and loggers write before each line distinguishes them.
type tracebacks struct {
	open   map[string]*traceback
	looked int
	source string
	// rank is the rank of the next traceback, as the line rankLine said.
	rank     *int
	rankLine int
	// survived are the last lines, of a text, that say that the program goes on behind an error. They are read before the
	// tracebacks between them.
	survived   []int
	survivedIn string
	// paces are those of the processes that print the times of the parts of their steps.
	paces []pace
}

// traceback is the last one behind a prefix.
type traceback struct {
	death facts.Death
	inner string // The file of the innermost frame so far.
	own   bool   // The innermost frame so far that is of the program was found.
	// last is the line of its last frame, ended that of its exception.
	last, ended int
	// linked is the line that says that the next traceback is of the same chain,
	// ignored is the line that marks the next traceback as handled.
	linked, ignored int
	// escaped is the line that says that the next traceback ended a process.
	escaped int
	// fatal is the signal of faulthandler, whose frames come innermost first.
	fatal string
}

func tracebackBegins(in *parse.Lines) bool {
	l, _ := parse.Unbroken(in.Ahead(maxPieces))
	return !strings.Contains(l.Whole(), frame) || frameForm.MatchString(l.Whole())
}

// frameForm is a frame: traceback.py's, and with no comma before "in" faulthandler's.
var frameForm = lazy.New(`^(.*?)  File "([^"]{1,999})", line (\d{1,9})(?:,? in (.{1,500}?))?(?:(?:<br|  ).*)?$`)

func (t *tracebacks) read(s *parse.Sink, in *parse.Lines) {
	l, _ := parse.Unbroken(in.Ahead(maxPieces))
	if t.source != s.Source() {
		t.source, t.rank = s.Source(), nil
		clear(t.open)
	}
	if m := frameForm.FindStringSubmatch(l.Whole()); m != nil {
		t.frame(s, in, l, m)
	} else {
		t.heading(s, in, l)
	}
	in.Next()
}

// heading reads a line that says what the next frames are.
func (t *tracebacks) heading(s *parse.Sink, in *parse.Lines, l parse.Line) {
	for _, mark := range []string{head, ignored, loggingError, chained, spawned, fatal, process} {
		before, rest, found := strings.Cut(l.Whole(), mark)
		if !found {
			continue
		}
		switch mark {
		case head:
			t.begin(before, l)
		case ignored, loggingError:
			t.of(before).ignored = l.Number
		case chained:
			t.of(strings.TrimSuffix(strings.TrimSuffix(before, "During handling of t"), "T")).linked = l.Number
		case process:
			if m := endedProcess.FindStringSubmatch(l.Whole()); m != nil {
				t.of(m[1]).escaped = l.Number
			}
		case spawned:
			if m := spawnedRank.FindStringSubmatch(before); m != nil {
				t.nextIs(parse.Optional(m[1]), l)
			}
		case fatal:
			t.fatal(s, in, l, before, rest)
		}
		return
	}
}

// endedProcess is how multiprocessing (process.py, _bootstrap) begins to report an exception that nobody caught.
var endedProcess = lazy.New(`^(.*?)Process \w*Process-\d+:\s*$`)

var spawnedRank = lazy.New(`-- Process (\d{1,6}) $`)

// nextIs notes whose the next traceback is.
func (t *tracebacks) nextIs(rank *int, l parse.Line) { t.rank, t.rankLine = rank, l.Number }

// of returns the traceback behind a prefix.
func (t *tracebacks) of(prefix string) *traceback {
	key := newPrefix(prefix).key()
	b := cmp.Or(t.open[key], &traceback{})
	if len(t.open) < maxOpen {
		t.open[key] = b
	}
	return b
}

// begin begins a traceback. What stands before its head may be more than what stands
// before its frames: "ERROR: Traceback", "Original Traceback", "  traceback : Traceback".
func (t *tracebacks) begin(before string, l parse.Line) {
	mild := mildLevel.MatchString(before)
	before, original := strings.CutSuffix(before, "Original ")
	before = strings.TrimSuffix(strings.TrimSuffix(before, "+ Exception Group "), "traceback : ")
	b := t.of(before)
	b.restart(l, original || b.linked > b.ended && l.Number-b.linked <= near)
	if t.rank != nil && l.Number-t.rankLine <= near {
		b.death.Rank = t.rank
	}
	b.death.Ignored = b.death.Ignored || mild || t.survivedIn == t.source && slices.Contains(t.survived, l.Number-1)
	t.rank = nil
}

// mildLevel is a level at which a logger reports an exception after which the work continues.
// INFO says nothing: what relays the output of a program logs each of its lines so.
var mildLevel = lazy.New(`\b(?:DEBUG|WARN|WARNING)\b`)

// restart begins the next traceback of a prefix, in a chain with the last one or not.
func (b *traceback) restart(l parse.Line, linked bool) {
	d := facts.Death{What: "exception", Reporter: "python", Begins: l.Number}
	if linked && b.ended > 0 && l.Number-b.ended <= near {
		d.Behind, d.Begins, d.Rank = b.death.Behind, b.death.Begins, b.death.Rank
		if len(d.Behind) < maxBehind {
			d.Behind = append(d.Behind, escape.Printable(strings.TrimSuffix(b.death.Class+": "+b.death.Said, ": "), maxWords))
		}
	}
	d.Ignored = b.ignored > 0 && l.Number-b.ignored <= near
	d.Uncaught = b.escaped > 0 && l.Number-b.escaped == 1 || linked && b.death.Uncaught
	*b = traceback{death: d, linked: b.linked, last: l.Number}
}

// frame reads a frame and, if it is the last one, the exception behind it.
func (t *tracebacks) frame(s *parse.Sink, in *parse.Lines, l parse.Line, m []string) {
	prefix := m[1]
	b := t.of(prefix)
	if b.fatal != "" {
		return
	}
	if b.last == 0 || b.ended > 0 { // Its head is not in the text, or Ray's wraps another.
		b.restart(l, b.ended > 0 && l.Number-b.ended <= 2)
	}
	b.note(m)
	b.last = l.Number
	raised, ok := t.exception(in, l, prefix)
	if !ok {
		return
	}
	b.ended = raised.last
	d := b.death
	d.Class, d.Said = escape.Printable(raised.class, maxName), raised.words
	d.Uncaught = d.Uncaught || hooked.MatchString(prefix)
	b.death.Class, b.death.Said = d.Class, d.Said
	t.end(s, in, b, d, raised.line, prefix)
}

// end notes a death, unless its chain goes on.
func (t *tracebacks) end(s *parse.Sink, in *parse.Lines, b *traceback, d facts.Death, end parse.Line, prefix string) {
	begins := newPrefix(prefix)
	for _, l := range in.Ahead(200) {
		t.looked++
		if l.Number > end.Number+near {
			break
		}
		if l.Number <= end.Number || !strings.Contains(l.Whole(), chained) && !strings.Contains(l.Whole(), "Original "+head) {
			continue
		}
		if _, mine := begins.cut(l); mine {
			b.linked = l.Number
			return
		}
	}
	s.Death(d, end)
}

// hooked is what PyTorch's hook for uncaught exceptions writes before each line
// (torch/distributed/distributed_c10d.py, _distributed_excepthook of 2.2).
var hooked = lazy.New(`\[rank\d+\]: *$`)

// note takes a frame. Frames come outermost first.
func (b *traceback) note(m []string) {
	d, file, ofLibrary := &b.death, m[2], library.MatchString(m[2])
	d.TopLevel = b.inner == "" && m[4] == "<module>" || b.inner != "" && d.TopLevel
	b.inner = file
	d.RaisedIn = escape.Printable(file, maxName)
	if ofLibrary && b.own {
		return
	}
	b.own = !ofLibrary
	d.File, d.FileLine, d.Function = escape.Printable(file, maxName), parse.Number(m[3]), escape.Printable(m[4], maxName)
}

// library is a file of an installed library, of Python itself or of a launcher.
var library = lazy.New(`(?:site|dist)-packages/|/lib(?:64)?/python\d|^<frozen |^<string>|/s?bin/[\w.-]+$|^/opt/(?:pytorch/pytorch|conda/lib)/|\.zip/`)

// exception is the line behind the last frame of a traceback.
type exception struct {
	line         parse.Line
	last         int // The number of its last piece, where a screen broke it.
	class, words string
}

// exception looks ahead for the exception behind a frame, and finds none where another frame comes first.
func (t *tracebacks) exception(in *parse.Lines, l parse.Line, prefix string) (raised exception, ok bool) {
	begins := newPrefix(prefix)
	for _, n := range []int{8, 200} {
		lines := in.Ahead(n + maxPieces)
		_, pieces := parse.Unbroken(lines)
		for i := pieces; i < min(n, len(lines)); i += pieces {
			if t.looked++; t.looked > maxLooked {
				return raised, false
			}
			var next parse.Line
			next, pieces = parse.Unbroken(lines[i:])
			rest, mine := begins.cut(next)
			if !mine || next.Number == l.Number {
				continue
			}
			if strings.HasPrefix(rest, frame) || strings.HasPrefix(rest, head) {
				return raised, false
			}
			if m := exceptionForm.FindStringSubmatch(rest); m != nil && !levels[m[1]] {
				return exception{next, lines[i+pieces-1].Number, m[1], strings.TrimSpace(m[2])}, true
			}
		}
	}
	return raised, false
}

// exceptionForm is an exception as traceback.py ends with it.
var exceptionForm = lazy.New(`^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:\(\w+\))?)(?:: ?(.*))?$`)

// levels are words before a colon that name no exception.
var levels = map[string]bool{"DEBUG": true, "INFO": true, "WARNING": true, "WARN": true, "ERROR": true, "CRITICAL": true, "FATAL": true}

// fatal reads the end of a process of which faulthandler tells: the stack of the
// thread at fault has its innermost frame first.
func (t *tracebacks) fatal(s *parse.Sink, in *parse.Lines, l parse.Line, prefix, words string) {
	d := facts.Death{What: "signal", Class: endTable().Names[strings.TrimSpace(words)], Said: words, Reporter: "python", Uncaught: true}
	begins := newPrefix(prefix)
	current := false
	lines := in.Ahead(100)
	_, pieces := parse.Unbroken(lines)
	for i := pieces; i < len(lines); i += pieces {
		var next parse.Line
		next, pieces = parse.Unbroken(lines[i:])
		t.looked++
		rest, mine := begins.cut(next)
		switch {
		case !mine:
			continue
		case strings.HasPrefix(rest, "Current thread"):
			current = true
		case strings.HasPrefix(rest, "Thread "):
			current = false
		}
		m := frameForm.FindStringSubmatch(next.Whole())
		if m == nil || !current {
			continue
		}
		d.RaisedIn = cmp.Or(d.RaisedIn, escape.Printable(m[2], maxName))
		if d.File == "" || library.MatchString(d.File) && !library.MatchString(m[2]) {
			d.File, d.FileLine, d.Function = escape.Printable(m[2], maxName), parse.Number(m[3]), escape.Printable(m[4], maxName)
		}
	}
	s.Death(d, l)
	*t.of(prefix) = traceback{fatal: words}
}

// prefix is what stands before each line of one process, in parts: between them stand times and numbers of lines, which
// differ from line to line. Behind it the lines may be indented.
type prefix struct {
	parts  []string
	indent int
}

// times are what differs from line to line in a prefix, and timeAhead that at the beginning of a text.
var (
	times     = lazy.New(timeForm + `|\b\d{1,7}:$`)
	timeAhead = lazy.New(`^(?:` + timeForm + `|\d{1,7}:)`)
)

// timeForm is a time, or the number of a line as cat -n writes it.
const timeForm = `\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?|(?:\d\d-\d\d )?\d\d:\d\d:\d\d(?:[.,]\d+)?| *\d{1,7}\t`

func newPrefix(text string) prefix {
	var p prefix
	put := strings.TrimRight(text, " ")
	if put != "" && len(put) < len(text) {
		put += " "
	}
	p.indent = len(text) - len(put)
	at := 0
	for _, place := range times.Get().FindAllStringIndex(put, -1) {
		p.parts, at = append(p.parts, put[at:place[0]]), place[1]
	}
	p.parts = append(p.parts, put[at:])
	return p
}

// key is the same for all lines of one process.
func (p prefix) key() string { return strings.Join(p.parts, "0") }

// cut takes the prefix off a line of its process, and its indentation or less.
func (p prefix) cut(l parse.Line) (rest string, mine bool) {
	line := l.Whole()
	if len(p.parts) == 1 && p.parts[0] == "" && l.Label() != "" {
		return "", false
	}
	for i, part := range p.parts {
		if i > 0 {
			found := timeAhead.FindString(line)
			if found == "" {
				return "", false
			}
			line = line[len(found):]
		}
		if line, mine = strings.CutPrefix(line, part); !mine {
			return "", false
		}
	}
	for n := 0; n < p.indent && strings.HasPrefix(line, " "); n++ {
		line = line[1:]
	}
	return line, true
}
