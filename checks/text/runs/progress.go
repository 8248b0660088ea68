package runs

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// maxProgressText bounds the text of a line, as facts.Progress promises.
const maxProgressText = 300

// NewProgress makes, for one reading, the reader of how far each rank of a job came in its process groups, from what the
// watchdogs of PyTorch print when a collective times out, in lines that the catalogue of messages knows.
func NewProgress(s *parse.Sink) parse.Family {
	w := &watchdogs{sink: s}
	s.Listen(w.hear)
	return parse.Family{Finish: w.finish}
}

// watchdogs collects what the watchdogs of ranks say.
type watchdogs struct {
	sink *parse.Sink
	list []facts.Progress
}

func (w *watchdogs) hear(e parse.Event) {
	if e.Kind != parse.MessageSaid || e.Name != "torch-watchdog-timeout" && e.Name != "torch-work-status" {
		return
	}
	rank := w.sink.RankOf(e.Line)
	if rank == nil {
		return
	}
	w.note(facts.Progress{
		Group: e.Fields["group"], Rank: *rank, Seq: parse.Optional(e.Fields["seq"]), Op: e.Fields["op"], Elements: parse.Optional(e.Fields["numel_in"]),
		Enqueued: parse.Optional(e.Fields["enqueued"]), Completed: parse.Optional(e.Fields["completed"]),
		Text: escape.Printable(strings.TrimSpace(e.Line.Whole()), maxProgressText), Source: w.sink.Source(), Line: e.Line.Number,
	})
}

// note adds what a line tells to the entry that it is about, or begins one. A watchdog
// names the collective in one line, often without its group, and the group in the next.
func (w *watchdogs) note(p facts.Progress) {
	for i := range w.list {
		k := &w.list[i]
		sameGroup := k.Group == p.Group && agree(k, &p)
		if k.Source == p.Source && k.Rank == p.Rank && (sameGroup || (k.Group == "" || p.Group == "") && within(k, &p)) {
			join(k, &p)
			return
		}
	}
	if len(w.list) < parse.MaxEntries {
		w.list = append(w.list, p)
	}
}

// agree reports whether two lines of one rank and group may report the same hang.
func agree(k, p *facts.Progress) bool {
	return same(k.Seq, p.Seq) && same(k.Completed, p.Completed) && (k.Op == "" || p.Op == "" || k.Op == p.Op)
}

// same reports whether two numbers are equal, as far as both are known.
func same(a, b *int) bool { return a == nil || b == nil || *a == *b }

// within reports whether two lines are about one collective: both name it, or one names it
// and the other says that it began and did not end.
func within(k, p *facts.Progress) bool {
	named, status := k, p
	if named.Seq == nil {
		named, status = p, k
	}
	switch {
	case !agree(k, p) || named.Seq == nil:
		return false
	case status.Seq != nil:
		return true
	}
	return status.Enqueued != nil && status.Completed != nil && *status.Completed < *named.Seq && *named.Seq <= *status.Enqueued
}

// join puts what a line tells into an entry.
func join(k, p *facts.Progress) {
	k.Group = cmp.Or(k.Group, p.Group)
	if k.Seq == nil {
		k.Seq, k.Op, k.Elements = p.Seq, p.Op, p.Elements
	}
	k.Completed = cmp.Or(k.Completed, p.Completed)
	if p.Enqueued != nil && (k.Enqueued == nil || *k.Enqueued < *p.Enqueued) {
		k.Enqueued = p.Enqueued
	}
}

func (w *watchdogs) finish() {
	if len(w.list) == 0 {
		return
	}
	slices.SortStableFunc(w.list, func(a, b facts.Progress) int { return a.Rank - b.Rank })
	w.sink.Logs().Progress = w.list
}

// stepsKind reads the lines in which training, or a server, reports its steps, which hold that a process went on behind an
// exception, and those above a traceback that say so.
func stepsKind(t *tracebacks) *parse.Kind {
	return &parse.Kind{
		Name: "training-steps", Title: "steps of a training job", Gives: []string{"logs"},
		Anchors: []string{
			"loss", "Step ", "step ", "step=", "step:", "iter", "Iteration ", "Epoch", "epoch", "Avg generation throughput: ",
			"allreduce", "all_reduce", "all-reduce", "going on", "continu", "skipp", "taking the next", "its place", "falling back", "recovered", "dropped", " instead",
		},
		Line: func(s *parse.Sink, l parse.Line) bool {
			if len(l.Whole()) > maxStep {
				return false
			}
			paced := t.notePace(s, l)
			if message.Copes(l.Whole()) {
				if t.survivedIn != s.Source() || len(t.survived) == near {
					t.survived, t.survivedIn = nil, s.Source()
				}
				t.survived = append(t.survived, l.Number)
			}
			if !progressForm.MatchString(l.Whole()) {
				return paced
			}
			s.Step(l)
			return true
		},
	}
}

// maxStep is longer than a line of a step.
const maxStep = 600

// progressForm are "step 12", "epoch: 3", "iteration 100/ 5000" and "'loss': 0.1". Progress bars do not count:
// downloads also have them. A vLLM server reports its throughput, which is 0.0 while it is idle.
var progressForm = lazy.New(`(?i)Avg generation throughput: (?:[1-9]|0\.[1-9])|\b(?:global[_ ]?step|step|iter(?:ation)?|epoch)s?["']?\s*[:=#\[(]?\s*\d+|\bloss["']?\s*[:= ]\s*-?\d+\.\d`)
