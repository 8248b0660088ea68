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
	// interrupted is that of a shell after ^C, notRunnable and notFound those for a program
	// that did not start.
	interrupted = 130
	notRunnable = 126
	notFound    = 127
)

// tables are the tables of collectives, by text.
type tables struct {
	of map[string][]*facts.Benchmark
	// starts are the lines in which they begin, and rows those of their rows, in order.
	starts, rows map[string][]int
}

func tablesOf(f *facts.Facts) *tables {
	t := &tables{of: map[string][]*facts.Benchmark{}, starts: map[string][]int{}, rows: map[string][]int{}}
	for i := range f.Benchmarks {
		b := &f.Benchmarks[i]
		if b.What != "collective" {
			continue
		}
		t.of[b.Source] = append(t.of[b.Source], b)
		t.starts[b.Source] = append(t.starts[b.Source], b.Line)
		for _, p := range b.Points {
			t.rows[b.Source] = append(t.rows[b.Source], p.Line)
		}
	}
	for source := range t.of {
		slices.Sort(t.starts[source])
		slices.Sort(t.rows[source])
	}
	return t
}

// between reports whether one of some lines, which are in order, lies between two.
func between(lines []int, from, to int) bool {
	i, _ := slices.BinarySearch(lines, from)
	return i < len(lines) && lines[i] <= to
}

// any reports whether there is any part of a table between two lines.
func (t *tables) any(source string, from, to int) bool {
	return between(t.starts[source], from, to) || between(t.rows[source], from, to)
}

// settle finds what a run measured and the outcome of it.
func (r *run) settle(of *tables, source string) {
	last, wrong := 0, 0
	within := func(line int) bool { return line >= r.Line && line <= r.end }
	for _, b := range of.of[source] {
		if within(b.Line) {
			r.begun = true
			r.GPUs, r.Nodes = cmp.Or(b.Ranks, r.GPUs), cmp.Or(b.Nodes, r.Nodes)
		}
		if at := b.Lines["wrong"]; within(at) {
			wrong = at
		}
		for _, p := range b.Points {
			if !within(p.Line) {
				continue
			}
			last = max(last, p.Line)
			if p.GBps != nil && (r.GBps == nil || *p.GBps > *r.GBps) {
				r.GBps = new(*p.GBps)
			}
		}
	}
	if len(r.Devices) > 0 && r.GPUs > len(r.Devices) {
		r.GPUs = 0 // A count of the whole machine.
	}
	switch {
	case r.cut:
		r.is(unknown, "its text is too long", r.end, false)
	case wrong > 0:
		r.is(failed, "it gave wrong results", wrong, true)
	case last > 0 || r.begun:
		r.judgeTable()
	default:
		r.judge()
	}
}

// is notes the outcome of a run, with the line that shows it. What rows show, the whole run
// does: its first line stands for it.
func (r *run) is(outcome, why string, line int, told bool) {
	r.Outcome = outcome
	if outcome == unknown {
		return
	}
	r.Why, r.Told = why, told
	r.Shown, r.Text = r.Line, escape.Printable(strings.TrimSpace(r.text), maxText)
	for _, m := range r.marks {
		if m.line == line && m.text != "" {
			r.Shown, r.Text = line, escape.Printable(strings.TrimSpace(m.text), maxText)
		}
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
func (r *run) judgeTable() {
	end, ended := r.last(finished)
	complained, bad := r.last(complaint)
	gone, left := r.last(exit)
	if check, ok := r.last(checked); ok && check.number > 0 {
		r.is(failed, "it gave wrong results", check.line, true)
		return
	}
	left = left && gone.number != 0
	switch {
	case ended && !left && (!bad || complained.line < end.line):
		r.is(good, "its table is complete", end.line, true)
	case bad || left:
		r.judge()
	default:
		if m, ok := r.last(stopped, word); ok && (m.kind == stopped || m.value == hung) {
			r.is(hung, "its rows stop, and it was interrupted by hand", m.line, false)
			if m.kind == word {
				r.Why = "its rows stop, and the text says that it hangs"
			}
			return
		}
		if m, ok := r.last(word); ok && m.value == good {
			r.is(unknown, "", 0, false) // The text was shortened.
			return
		}
		r.is(hung, "its rows stop", r.Line, false)
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
		r.Message, r.Stated = first.name, r.stated()
	case m.kind == exit && slices.Contains([]int{interrupted, notRunnable, notFound}, m.number), m.kind == step:
		r.is(unknown, "", 0, false)
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
