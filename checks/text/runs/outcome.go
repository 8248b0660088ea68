package runs

import (
	"slices"

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
	// interrupted is that of a shell after ^C.
	interrupted = 130
)

// tables are the tables of collectives, by text.
type tables struct{ of map[string][]*facts.Benchmark }

func tablesOf(f *facts.Facts) *tables {
	t := &tables{of: map[string][]*facts.Benchmark{}}
	for i := range f.Benchmarks {
		if b := &f.Benchmarks[i]; b.What == "collective" {
			t.of[b.Source] = append(t.of[b.Source], b)
		}
	}
	return t
}

// points calls see with each row between two lines.
func (t *tables) points(source string, from, to int, see func(*facts.BenchmarkPoint)) {
	for _, b := range t.of[source] {
		for i := range b.Points {
			if p := &b.Points[i]; p.Line >= from && p.Line <= to {
				see(p)
			}
		}
	}
}

// rows counts the rows between two lines.
func (t *tables) rows(source string, from, to int) int {
	n := 0
	t.points(source, from, to, func(*facts.BenchmarkPoint) { n++ })
	return n
}

// begun are the tables that begin between two lines.
func (t *tables) begun(source string, from, to int) []*facts.Benchmark {
	var list []*facts.Benchmark
	for _, b := range t.of[source] {
		if b.Line >= from && b.Line <= to {
			list = append(list, b)
		}
	}
	return list
}

// any reports whether there is any part of a table between two lines.
func (t *tables) any(source string, from, to int) bool {
	return len(t.begun(source, from, to)) > 0 || t.rows(source, from, to) > 0
}

// settle finds what a run measured and what became of it.
func (r *run) settle(of *tables, source string) {
	begun := of.begun(source, r.Line, r.end)
	for _, b := range begun {
		if b.Ranks > 0 {
			r.GPUs = b.Ranks
		}
		if b.Nodes > 0 {
			r.Nodes = b.Nodes
		}
	}
	rows, last := 0, 0
	of.points(source, r.Line, r.end, func(p *facts.BenchmarkPoint) {
		rows++
		last = max(last, p.Line)
		if p.GBps != nil && (r.GBps == nil || *p.GBps > *r.GBps) {
			rate := *p.GBps
			r.GBps = &rate
		}
	})
	if len(r.Devices) > 0 && r.GPUs > len(r.Devices) {
		r.GPUs = 0 // A count of the whole machine.
	}
	wrong := 0
	for _, b := range of.of[source] {
		if at := b.Lines["wrong"]; at >= r.Line && at <= r.end {
			wrong = at
		}
	}
	switch {
	case r.cut:
		r.is(unknown, "its text is too long", r.end, false)
	case wrong > 0:
		r.is(failed, "it gave wrong results", wrong, true)
	case len(begun) > 0 || rows > 0 || r.begun:
		r.judgeTable(max(last, r.Line))
	default:
		r.judge()
	}
}

func (r *run) is(outcome, why string, line int, told bool) {
	r.Outcome, r.Why, r.Shown, r.Told = outcome, why, line, told
	if outcome == unknown {
		r.Why, r.Shown = "", 0
	}
}

// last is the last mark of some kinds.
func (r *run) last(kinds ...markKind) (mark, bool) {
	for _, m := range slices.Backward(r.marks) {
		if slices.Contains(kinds, m.kind) {
			return m, true
		}
	}
	return mark{}, false
}

// judgeTable judges a run whose table began: it ended only if its closing lines are there.
func (r *run) judgeTable(last int) {
	end, ended := r.last(finished)
	complained, bad := r.last(complaint)
	gone, left := r.last(exit)
	if check, ok := r.last(checked); ok && check.number > 0 {
		r.is(failed, "it gave wrong results", check.line, true)
		return
	}
	switch {
	case ended && !(bad && complained.line > end.line) && !(left && gone.number != 0):
		r.is(good, "its table is complete", end.line, true)
	case bad || left && gone.number != 0:
		r.judge()
	default:
		if m, ok := r.last(stopped, word); ok && (m.kind == stopped || m.value == hung) {
			r.is(hung, "its rows stop, and it was ended by hand", m.line, false)
			if m.kind == word {
				r.Why = "its rows stop, and somebody says that it hangs"
			}
			return
		}
		if m, ok := r.last(word); ok && m.value == good {
			r.is(unknown, "", 0, false) // The text was shortened.
			return
		}
		r.is(hung, "its rows stop", last, false)
	}
}

// judge judges a run by what programs and people say of its end.
func (r *run) judge() {
	m, ok := r.last(complaint, exit, passed, step, stopped, word)
	if !ok {
		r.is(unknown, "", 0, false)
		return
	}
	first := mark{}
	for _, c := range r.marks {
		if c.kind == complaint && first.line == 0 && !r.exited(c.line) {
			first = c
		}
	}
	complained := first.line > 0
	switch {
	case m.kind == exit && m.number == 0:
		r.is(good, "it ended with exit code 0", m.line, true)
	case m.kind == passed:
		r.is(good, "it came to its end", m.line, true)
	case m.kind == step && m.count >= leastSteps:
		r.is(good, "its training goes on", m.line, true)
	case m.kind == word && m.value == good && !complained:
		r.is(good, "somebody says that it works", m.line, false)
	case complained && r.stalled():
		r.is(hung, "a collective did not end in time", first.line, true)
		r.Message = first.name
	case complained:
		r.is(failed, "it ended with an error", first.line, true)
		r.Message, r.Stated = first.name, r.stated()
	case m.kind == exit && m.number == interrupted, m.kind == step:
		r.is(unknown, "", 0, false)
	case m.kind == exit && m.number == timedOut:
		r.is(hung, "it did not end in time", m.line, true)
	case m.kind == exit:
		r.is(failed, "it ended with an error", m.line, true)
	case m.kind == stopped && !r.stepped():
		r.is(hung, "it was ended by hand", m.line, false)
	case m.kind == word && m.value == hung:
		r.is(hung, "somebody says that it hangs", m.line, false)
	case m.kind == word && m.value == failed:
		r.is(failed, "somebody says that it fails", m.line, false)
	default:
		r.is(unknown, "", 0, false)
	}
}

// exited reports whether a line says with which code a process ended: that is no more than
// the code.
func (r *run) exited(line int) bool {
	return slices.ContainsFunc(r.marks, func(m mark) bool { return m.kind == exit && m.line == line })
}

// stalled reports whether the run's complaints begin with one of a collective that did not
// end; what follows on it are consequences.
func (r *run) stalled() bool {
	for _, m := range r.marks {
		if m.kind == complaint {
			return stalls(m.name)
		}
	}
	return false
}

// stated reports whether a message of the run states a cause.
func (r *run) stated() bool {
	return slices.ContainsFunc(r.marks, func(m mark) bool { return m.kind == complaint && m.value == "cause" })
}

// stepped reports whether a training made steps.
func (r *run) stepped() bool {
	return slices.ContainsFunc(r.marks, func(m mark) bool { return m.kind == step })
}
