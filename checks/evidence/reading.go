package evidence

import (
	"bytes"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks"
)

// reading is the examination of one or more texts that tell of one machine or
// one job.
type reading struct {
	sink       *Sink
	kinds      []*Kind
	statements []*Statement
	// current is the text under way.
	current *checks.Text
	// inBlock is the kind whose block is being read.
	inBlock *Kind
}

func newReading() *reading {
	return &reading{sink: newSink(), kinds: kinds(), statements: Statements()}
}

// text reads one text from memory.
func (r *reading) text(name string, data []byte) {
	lines := bytes.SplitAfter(data, []byte("\n"))
	n := 0
	r.read(name, func() (Line, bool) {
		if n >= len(lines) || n == len(lines)-1 && len(lines[n]) == 0 {
			return Line{}, false
		}
		l := lines[n]
		n++
		return Line{Text: clean(l[:min(len(l), maxLine)]), Number: n}, true
	})
}

// read reads one text, line by line.
func (r *reading) read(name string, next func() (Line, bool)) {
	r.sink.Facts.Texts = append(r.sink.Facts.Texts, checks.Text{Name: name})
	r.current = &r.sink.Facts.Texts[len(r.sink.Facts.Texts)-1]
	r.sink.name = name
	in := &Lines{name: name}
	r.sink.prompt = &in.prompt
	in.fetch = func() (Line, bool) {
		l, ok := next()
		if ok {
			r.current.Lines++
			r.current.Bytes += int64(len(l.Text)) + 1
			r.line(l)
		}
		return l, ok
	}
	for {
		l, ok := in.Peek()
		if !ok {
			if _, more := in.skip(); !more {
				return
			}
			continue
		}
		kind := r.kindOf(in, l)
		if kind == nil {
			in.skip()
			continue
		}
		before := in.taken
		kind.Read(r.sink, in)
		if in.taken == before { // It took nothing: a bug of the parser, but no endless loop.
			in.skip()
			continue
		}
		r.recognised(kind.Name, l, in.taken-before)
	}
}

// kindOf returns the kind of the block that begins at the next line.
func (r *reading) kindOf(in *Lines, l Line) *Kind {
	for _, k := range r.kinds {
		if k.Read == nil {
			continue
		}
		if !containsAny(l.Text, k.Anchors) && !in.After(k.Commands...) {
			continue
		}
		if k.Begins(in) {
			return k
		}
	}
	return nil
}

// line offers a line to what takes lines by themselves.
func (r *reading) line(l Line) {
	for _, k := range r.kinds {
		if k.Line != nil && containsAny(l.Text, k.Anchors) && k.Line(r.sink, l) {
			r.recognised(k.Name, l, 1)
		}
	}
	for _, row := range r.statements {
		if !containsAny(l.Text, row.Anchors) {
			continue
		}
		if fields, ok := row.match(l.Text); ok {
			r.sink.messages.add(row.ID, fields, l)
			r.recognised("messages", l, 1)
			return
		}
	}
}

// recognised counts lines as understood.
func (r *reading) recognised(kind string, first Line, lines int) {
	for i := range r.current.Kinds {
		if k := &r.current.Kinds[i]; k.Kind == kind {
			k.Lines += lines
			return
		}
	}
	r.current.Kinds = append(r.current.Kinds, checks.TextKind{Kind: kind, Line: first.Number, Lines: lines})
}

func containsAny(s string, literals []string) bool {
	return slices.ContainsFunc(literals, func(l string) bool { return strings.Contains(s, l) })
}

// finish joins what the texts told and returns the facts.
func (r *reading) finish() *checks.Facts {
	s := r.sink
	if list := s.messages.messages(); len(list) > 0 || s.Facts.Logs != nil {
		s.Logs().Messages = list
	}
	s.join()
	return s.Facts
}
