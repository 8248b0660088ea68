package runs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// The outcomes of runs.
const (
	good    = "ok"
	failed  = "failed"
	hung    = "hung"
	unknown = "unknown"
)

const (
	// leastSteps are as many steps of a training as show that it goes on.
	leastSteps = 3
	// timedOut is the code with which timeout(1) ends.
	timedOut = 124
	// interrupted is that of a shell after ^C, notRunnable and notFound those for a program that did not start.
	interrupted = 130
	notRunnable = 126
	notFound    = 127
)

// table is what the tables of collectives show between two lines of a text.
type table struct {
	begins bool
	// row is the line of the last row; 0 if there is none. several is true if a table begins behind a row of another: the
	// program ran again.
	row          int
	several      bool
	ranks, nodes int
	// wrong is the line that counts wrong values; 0 if none does.
	wrong int
	gbps  *float64
	// microseconds is the shortest time, which is that of the smallest message.
	microseconds *float64
}

// tableIn returns what the tables of a text show from one line to another.
func tableIn(f *facts.Facts, source string, from, to int) (t table) {
	within := func(line int) bool { return line >= from && line <= to }
	for _, b := range f.Benchmarks {
		if b.What != "collective" || b.Source != source {
			continue
		}
		if within(b.Line) {
			t.several = t.several || t.row > 0 && t.row < b.Line
			t.begins, t.ranks, t.nodes = true, cmp.Or(b.Ranks, t.ranks), cmp.Or(b.Nodes, t.nodes)
		}
		if within(b.Lines["wrong"]) {
			t.wrong = b.Lines["wrong"]
		}
		for _, p := range b.Points {
			if !within(p.Line) {
				continue
			}
			t.row = max(t.row, p.Line)
			if p.GBps != nil && (t.gbps == nil || *p.GBps > *t.gbps) {
				t.gbps = new(*p.GBps)
			}
			if p.Microseconds != nil && (t.microseconds == nil || *p.Microseconds < *t.microseconds) {
				t.microseconds = new(*p.Microseconds)
			}
		}
	}
	return t
}

// settle finds what a run measured and the outcome of it.
func (r *run) settle(t table) {
	r.begun = r.begun || t.begins
	r.GPUs, r.Nodes, r.GBps = cmp.Or(t.ranks, r.GPUs), cmp.Or(t.nodes, r.Nodes), t.gbps
	r.Microseconds = t.microseconds
	if len(r.Devices) > 0 && r.GPUs > len(r.Devices) {
		r.GPUs = 0 // A count of the whole machine.
	}
	switch {
	case r.unclear || t.several:
	case t.wrong > 0:
		r.Wrong = true
		r.is(failed, "it gave wrong results", t.wrong, true)
	case t.row > 0 || r.begun:
		r.judgeTable()
	default:
		r.judge()
	}
}

// is notes the outcome of a run, with the line that shows it. What rows show, the whole run
// does: its first line stands for it.
func (r *run) is(outcome, why string, line int, told bool) {
	r.Outcome, r.Why, r.Told, r.Shown = outcome, why, told, r.Line
	text := r.text
	for _, m := range r.marks {
		if m.line == line && m.text != "" {
			r.Shown, text = line, m.text
		}
	}
	r.Text = escape.Printable(strings.TrimSpace(text), maxText)
}

// last is the last mark of some kinds; its line is 0 if there is none.
func (r *run) last(kinds ...markKind) mark {
	for _, m := range slices.Backward(r.marks) {
		if slices.Contains(kinds, m.kind) {
			return m
		}
	}
	return mark{}
}

// judgeTable judges a run whose table began: it ended only if its closing lines are there.
func (r *run) judgeTable() {
	end, check, by := r.last(finished, checked), r.last(checked), r.last(stopped, word)
	complained, failing := r.last(complaint).line, r.last(exit).number != 0
	switch {
	case check.number > 0:
		r.Wrong = true
		r.is(failed, "it gave wrong results", check.line, true)
	case end.line > 0 && !failing && complained < end.line:
		r.is(good, "its table is complete", end.line, true)
	case complained > 0 || failing:
		r.judge()
	case by.kind == stopped:
		r.is(hung, "its rows stop, and it was interrupted by hand", by.line, false)
	case by.value == hung:
		r.is(hung, "its rows stop, and the text says that it hangs", by.line, false)
	case r.last(word).value != good: // The text was shortened.
		r.is(hung, "its rows stop", r.Line, false)
	}
}

// judge judges a run by what programs and people say of its end.
func (r *run) judge() {
	m := r.last(complaint, exit, passed, step, stopped, word)
	first := mark{} // The first complaint that is more than an exit code.
	for _, c := range r.marks {
		isCode := func(m mark) bool { return m.kind == exit && m.line == c.line }
		if c.kind == complaint && first.line == 0 && !slices.ContainsFunc(r.marks, isCode) {
			first = c
		}
	}
	complained := first.line > 0
	switch {
	case m.line == 0:
	case m.kind == exit && m.number == 0:
		r.is(good, "it ended with exit code 0", m.line, true)
	case m.kind == passed:
		r.is(good, "it ran to completion", m.line, true)
	case m.kind == step && m.count >= leastSteps:
		r.is(good, "its training continues", m.line, true)
	case m.kind == word && m.value == good && !complained:
		r.is(good, "the text says that it works", m.line, false)
	case complained && r.stalled():
		r.is(hung, "a collective timed out", first.line, true)
		r.Message = first.name
	case complained:
		r.is(failed, "it ended with an error", first.line, true)
		r.Message = first.name
		r.Stated = slices.ContainsFunc(r.marks, func(m mark) bool { return m.kind == complaint && m.value == "cause" })
	case m.kind == exit && slices.Contains([]int{interrupted, notRunnable, notFound}, m.number), m.kind == step:
	case m.kind == exit && m.number == timedOut:
		r.is(hung, "it timed out", m.line, true)
	case m.kind == exit:
		r.is(failed, "it ended with an error", m.line, true)
	case m.kind == stopped && !r.stepped():
		r.is(hung, "it was interrupted by hand", m.line, false)
	case m.kind == word && m.value == hung:
		r.is(hung, "the text says that it hangs", m.line, false)
	case m.kind == word && m.value == failed:
		r.is(failed, "the text says that it fails", m.line, false)
	}
}

// stalled reports whether the run's complaints begin with one of a collective that did not
// end; what follows on it are consequences.
func (r *run) stalled() bool {
	i := slices.IndexFunc(r.marks, func(m mark) bool { return m.kind == complaint })
	return i >= 0 && stalls(r.marks[i].name)
}

// stepped reports whether a training made steps.
func (r *run) stepped() bool { return r.last(step).line > 0 }
