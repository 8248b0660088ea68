package parse

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// Reading is the examination of one or more texts that describe one machine or one job.
type Reading struct {
	Sink     *Sink
	families []Family
	kinds    []*Kind
	// takers are, by their number in the automaton, the kinds and after them
	// the statements; the last two stand for what may be a shell prompt, and another heading over a section.
	statements  []*message.Statement
	anchors     *anchorSet
	promptTaker uint16
	// piecesTo is the line that follows the pieces of one that was understood, and
	// piecesRead is true if readers of lines have seen that as well.
	piecesTo   int
	piecesRead bool
	// announced are the prefixes of processes that announced the last warning of NCCL, which their next line quotes.
	announced []string
	// quotation is one of which a piece was read.
	quotation *quotation
}

// promptSigns are in each line that may be a shell prompt, or a heading that takes the role of one (see headingOf).
var promptSigns = []string{"$ ", "# ", "% ", "*** /", "==> /", "*** ls: "}

// Registry is the families of kinds that are read.
type Registry struct {
	families []func(*Sink) Family
	// anchors looks for the anchors of every kind and statement; it is built once.
	anchors func() *anchorSet
}

// NewRegistry returns a registry of families, in the order in which a line is offered
// to their kinds. Each function makes a family for one reading.
func NewRegistry(families ...func(*Sink) Family) *Registry {
	r := &Registry{families: families}
	r.anchors = sync.OnceValue(func() *anchorSet {
		var all [][]string
		var skips []func(line []byte) bool
		var prose []uint16
		for i, k := range r.Kinds() {
			if k.Prose {
				prose = append(prose, uint16(i))
			}
			all = append(all, k.Anchors)
			skips = append(skips, k.Skips)
		}
		for _, t := range message.Statements() {
			all = append(all, t.Anchors)
			skips = append(skips, nil)
			if t.Program == message.People {
				skips[len(skips)-1] = OfNCCL
			}
		}
		return &anchorSet{message.NewAnchorSet(append(all, promptSigns, headingSigns, []string{fence})), skips, prose}
	})
	return r
}

// anchorSet finds those who may take a line.
type anchorSet struct {
	*message.AnchorSet
	// skips are the Skips of each kind, and those of each row.
	skips []func(line []byte) bool
	// prose are the kinds that take each line that a person wrote.
	prose []uint16
}

// OfNCCL reports whether a line is one of NCCL's log, which no person wrote.
func OfNCCL(line []byte) bool { return bytes.Contains(line, []byte(" NCCL INFO ")) }

// takersOf appends those to which a line is relevant, which may be one that a person wrote.
func (a *anchorSet) takersOf(line []byte, personal bool, takers []uint16) []uint16 {
	from := len(takers)
	takers = a.In(line, takers)
	if personal {
		takers = append(takers, a.prose...)
		slices.Sort(takers[from:])
		takers = takers[:from+len(slices.Compact(takers[from:]))]
	}
	kept := slices.DeleteFunc(takers[from:], func(t uint16) bool {
		return int(t) < len(a.skips) && a.skips[t] != nil && a.skips[t](line)
	})
	return takers[:from+len(kept)]
}

// Kinds is every kind of text that is recognised.
func (r *Registry) Kinds() []*Kind {
	var all []*Kind
	for _, family := range r.families {
		all = append(all, family(NewSink()).Kinds...)
	}
	return all
}

// NewReading begins a reading.
func (r *Registry) NewReading() *Reading {
	n := &Reading{Sink: NewSink(), statements: message.Statements(), anchors: r.anchors()}
	for _, family := range r.families {
		f := family(n.Sink)
		n.families, n.kinds = append(n.families, f), append(n.kinds, f.Kinds...)
	}
	n.promptTaker = uint16(len(n.kinds) + len(n.statements))
	return n
}

// Read reads one text, line by line.
func (r *Reading) Read(ctx context.Context, name string, from io.Reader) error {
	r.Sink.Facts.Texts = append(r.Sink.Facts.Texts, facts.Text{Name: name, Kinds: []facts.TextKind{}})
	begin, err := io.ReadAll(io.LimitReader(from, MaxWhole+1))
	if err != nil {
		from = failed{err}
	}
	whole := ""
	if len(begin) <= MaxWhole && err == nil {
		whole = string(begin)
	}
	in := &Lines{name: name, reached: r.Sink.ledger.reached}
	r.Sink.begin(name, whole, &in.prompt)
	s := newScanner(r.anchors, r.Sink.personal)
	go s.split(begin, io.MultiReader(bytes.NewReader(begin), from))
	defer s.close()
	defer r.Sink.ledger.close()
	in.fetch = func() (Line, bool) {
		for {
			l, overwritten, ok := s.next()
			if !ok {
				return l, false
			}
			signed := slices.Contains(l.takers, r.promptTaker)
			if signed {
				if p, _, ok := promptIn(l.Text); ok {
					r.Sink.typed = p.Command
					if startsJob.MatchString(p.Command) {
						r.Sink.started = l.Number
					}
				}
			}
			if slices.Contains(l.takers, r.promptTaker+fenceTaker) { // What follows is another block.
				r.Sink.typed = ""
			}
			if !r.understood(l) {
				r.line(l)
			}
			if !overwritten { // Blocks are made of what stayed on the screen.
				if slices.ContainsFunc(l.takers, func(t uint16) bool { return t >= r.promptTaker }) {
					r.Sink.heading(l)
				}
				l.prompt = r.Sink.source != Program && signed
				return l, true
			}
		}
	}
	r.piecesTo, r.announced, r.quotation = 0, nil, nil
	for ctx.Err() == nil {
		if len(in.ahead) == 0 && s.number != in.prompt.Line && len(r.announced) == 0 && r.quotation == nil {
			s.pass()
		}
		in.ended = false
		l, ok := in.Peek()
		if !ok {
			if !in.skip() {
				break
			}
			continue
		}
		r.block(in, l)
	}
	r.Sink.endSections()
	r.Sink.close()
	t := r.Sink.TextUnderWay()
	t.Lines, t.Bytes = s.number, s.bytes
	r.Sink.date()
	r.Sink.topics()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.cut > 0 {
		t.Problem = fmt.Sprintf("%d of its lines are longer than %s: %s of them were not read", s.cut, Size(MaxLine), Size(s.cutBytes))
		t.Unread = facts.UnreadLines
	}
	for _, f := range r.families {
		if f.End != nil {
			f.End(t)
		}
	}
	return s.err
}

// MaxWhole bounds a text that readers may see as a whole.
const MaxWhole = 256 << 10

// failed is a reader that ended with an error.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// block reads the block that begins at the next line, or passes the line over.
func (r *Reading) block(in *Lines, l Line) {
	kind := r.kindBelow(in, l)
	if kind == nil {
		in.skip()
		return
	}
	defer in.strip(nil)
	before := in.taken
	kind.Read(r.Sink, in)
	r.Sink.ledger.close()
	if in.taken == before { // It took nothing: a bug of the parser, but no endless loop.
		in.skip()
		return
	}
	r.recognised(kind.Name, l.Number, in.taken-before)
}

// kindBelow returns the kind of the block that begins at the next line, be it behind prefixes: those that the lines
// below have as well are tried first, then none, then more of them.
func (r *Reading) kindBelow(in *Lines, l Line) *Kind {
	if !r.mayBegin(in, l) {
		return nil
	}
	prefixes := prefixesOf(l.bare)
	if _, quoted, ok := promptIn(l.bare); l.prompt && ok && len(quoted) > 0 && in.shared(prefixes) >= len(quoted) {
		return nil // It is skipped as a prompt.
	}
	first := 0
	if l.Number == in.prompt.Line+1 && len(in.prompted) > 0 {
		first = commonPrefixes(in.prompted, l.bare)
	} else if len(prefixes) > 0 {
		first = in.shared(prefixes)
	}
	for i := range len(prefixes) + 1 {
		depth := i
		switch {
		case i == 0:
			depth = first
		case i <= first:
			depth = i - 1
		}
		in.strip(prefixes[:depth])
		if k := r.kindOf(in, l); k != nil {
			return k
		}
	}
	in.strip(nil)
	return nil
}

// mayBegin reports whether a block may begin at a line, by its anchors.
func (r *Reading) mayBegin(in *Lines, l Line) bool {
	return in.prompt.Command != "" && l.Number == in.prompt.Line+1 ||
		slices.ContainsFunc(l.takers, func(t uint16) bool { return int(t) < len(r.kinds) && r.kinds[t].Read != nil })
}

// kindOf returns the kind of the block that begins at the next line: of those that may, the first.
func (r *Reading) kindOf(in *Lines, l Line) *Kind {
	var ok bool
	if in.first, ok = in.Peek(); !ok {
		return nil // Without its prefixes the line is a prompt.
	}
	isBelowPrompt := l.Number == in.prompt.Line+1
	for i, k := range r.kinds {
		if k.Read != nil && (slices.Contains(l.takers, uint16(i)) || isBelowPrompt && in.After(k.Commands...)) && r.reads(k, l.Text) && k.Begins(in) {
			return k
		}
	}
	return nil
}

// understood reports whether a line is a quotation, or a piece of a line, that was understood.
func (r *Reading) understood(l Line) bool {
	if (len(r.announced) > 0 || r.quotation != nil) && r.quoted(l) {
		return true
	}
	if l.index >= r.piecesTo && len(l.joins) > 0 {
		pieces, sure := r.joined(l)
		r.piecesTo, r.piecesRead = l.index+pieces, sure
	}
	if l.index >= r.piecesTo {
		return false
	}
	if !r.piecesRead {
		r.kindsOf(l)
	}
	return true
}

// line offers a line to what takes lines by themselves: as it stands, and without the prefixes that it may have.
func (r *Reading) line(l Line) {
	if statements := r.kindsOf(l); !statements || r.Sink.source != NoSource && (r.Sink.source != Data || !toldByServer.MatchString(l.Text)) {
		return
	}
	row, fields, ok := r.statementIn(l.Text, l.takers)
	if !ok {
		return
	}
	r.Sink.Message(row.ID, fields, l)
	r.recognised("messages", l.Number, 1)
	if said := fields[ncclSaid]; said != "" { // XLA quotes NCCL in its own line.
		l.said = message.AsWarning(said)
		if quoted, fields, ok := message.Of(l.said); ok && quoted.Role != "warning" {
			r.Sink.Message(quoted.ID, fields, l)
		}
	}
	if row.ID == announcement && len(r.announced) < maxAnnounced {
		r.announced = append(r.announced, l.Label())
	}
}

const (
	// announcement is the row by which programs announce the last warning of NCCL: they
	// print ncclGetLastError behind it, which is the warning without file and level.
	announcement = "nccl-last-error"
	// ncclSaid is the field of a row that quotes the last warning.
	ncclSaid = "said_by_nccl"
	// maxAnnounced bounds the processes whose quotation is waited for.
	maxAnnounced = 64
)

// quotation is what a process quotes of NCCL, as far as it was read.
type quotation struct {
	line Line
	said string
}

// quoted reads a line that quotes a warning of NCCL, as if it stood in NCCL's own; one that
// a screen broke, with its other pieces. It reports whether it is one.
func (r *Reading) quoted(l Line) bool {
	q := r.quotation
	r.quotation = nil
	if q != nil {
		q.said += cmp.Or(l.piece, l.Whole())
	} else {
		i := slices.Index(r.announced, l.Label())
		if i < 0 || !isSentence(l.Text) {
			return false
		}
		r.announced = slices.Delete(r.announced, i, i+1)
		q = &quotation{line: l, said: strings.TrimPrefix(cmp.Or(l.piece, l.Whole()), l.Label())}
	}
	if l.piece != "" && len(q.said) < maxText {
		r.quotation = q
		return true
	}
	q.line.said = message.AsWarning(strings.TrimSpace(q.said))
	row, fields, ok := message.Of(q.line.said)
	if ok {
		r.Sink.Message(row.ID, fields, q.line)
		r.recognised("messages", q.line.Number, 1)
	}
	return ok
}

// isSentence reports whether a line holds words, and not only what closes a block of code.
func isSentence(text string) bool {
	text = strings.TrimSpace(text)
	return strings.Contains(text, " ") && strings.ContainsFunc(text, unicode.IsLetter) && !strings.HasPrefix(text, "<")
}

// kindsOf offers a line to the kinds that take lines by themselves. It reports whether
// rows of the catalogue may match it as well.
func (r *Reading) kindsOf(l Line) (statements bool) {
	for _, t := range l.takers {
		if int(t) >= len(r.kinds) {
			statements = statements || t < r.promptTaker
			continue
		}
		if k := r.kinds[t]; k.Line != nil && r.reads(k, l.Text) {
			if r.lineOf(k, l) {
				r.recognised(k.Name, l.Number, 1)
			}
			r.Sink.ledger.close()
		}
	}
	return statements
}

// lineOf offers a line to a kind, and reports whether it understood it.
func (r *Reading) lineOf(k *Kind, l Line) bool {
	for range maxPrefixes {
		if k.Line(r.Sink, l) {
			return true
		}
		inner, _, ok := stripPrefix(l.Text)
		if !ok {
			break
		}
		l.Text = inner
	}
	return false
}

// statementIn returns the first of the catalogue's rows, of those whose anchors a line holds, that it matches, and its
// fields: those without prefixes, where these are found there as well.
func (r *Reading) statementIn(line string, takers []uint16) (row *message.Statement, fields map[string]string, ok bool) {
	for range maxPrefixes {
		if row != nil {
			below, ok := row.Match(line)
			if !ok || !maps.EqualFunc(below, fields, func(string, string) bool { return true }) { // Other fields than before.
				break
			}
			fields = below
		}
		for _, t := range takers { // In their order in the catalogue.
			if i := int(t) - len(r.kinds); row == nil && i >= 0 && i < len(r.statements) {
				if found, ok := r.statements[i].Match(line); ok {
					row, fields = r.statements[i], found
				}
			}
		}
		inner, _, more := stripPrefix(line)
		if !more {
			break
		}
		line = inner
	}
	return row, fields, row != nil
}

// recognised counts lines as understood, of which the first has a number.
func (r *Reading) recognised(kind string, first, lines int) {
	t := r.Sink.TextUnderWay()
	if k := facts.Find(t.Kinds, func(k *facts.TextKind) bool { return k.Kind == kind }); k != nil {
		k.Lines += lines
		return
	}
	t.Kinds = append(t.Kinds, facts.TextKind{Kind: kind, Line: first, Lines: lines})
}

// Finish joins what the texts told and returns the facts.
func (r *Reading) Finish() *facts.Facts {
	s := r.Sink
	for _, f := range r.families {
		if f.Finish != nil {
			f.Finish()
		}
	}
	s.past()
	if len(s.deaths) > 0 || s.Facts.Logs != nil {
		logs := s.Logs()
		logs.Messages = append([]facts.Message{}, logs.Messages...)
		s.settle(logs.Messages)
		if len(s.deaths) > 0 {
			logs.Deaths = s.deathsIn(logs.Messages)
		}
		logs.Processes = s.processes.facts()
	}
	s.join()
	s.Facts.Origins = s.ledger.origins(s.Facts)
	return s.Facts
}
