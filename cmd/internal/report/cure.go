package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// cure writes what to do in order of rank: the quickest workaround, the lasting
// fix, and how to see that it helped.
func (t *text) cure(margin string, f *finding) {
	if len(f.Remedies)+len(f.More)+len(f.Steps)+len(f.Notes) == 0 {
		return
	}
	t.Line()
	for _, note := range f.Notes {
		t.labelled(margin, "note", note)
	}
	for i := range f.Remedies {
		if r := &f.Remedies[i]; t.points(f, r) {
			t.pointer(margin, r.Label, r.Title+" ("+r.Effort+"):", "gpudoctor explain "+r.ID)
		} else {
			t.remedy(margin, r)
		}
	}
	for _, m := range f.More {
		if t.style.Verbose || t.all || len(f.Remedies) == 0 {
			t.labelled(margin, "more", m.Name+": "+m.Text)
		}
	}
	t.steps(margin, f.Steps)
	if len(f.Remedies) > 0 {
		t.Line(margin, t.Paint(lines.Dim, lines.Pad("check", labelWidth)), after(f.Fresh, ": ")+f.Check)
	}
}

// points reports whether a remedy is only named: what else would do, where there is something quick.
func (t *text) points(f *finding, r *remedy) bool {
	return r.Label == "or" && f.has("now") && !t.style.Verbose && !t.all
}

// flags writes how a container gets what it lacks: the flags, or where a description in several lines
// is to be found.
func (t *text) flags(margin string, f *finding) {
	for _, r := range f.Remedies {
		if !r.OfContainer {
			continue
		}
		if first := r.Blocks[0]; len(first.Lines) == 1 {
			t.step(margin, t.label("fix"), first.Where+": "+first.Lines[0], false)
		} else {
			t.pointer(margin, "fix", r.Title+":", "gpudoctor explain "+r.ID)
		}
		return
	}
}

// steps writes what to look at, in order. A command is never broken.
func (t *text) steps(margin string, steps []rules.Step) {
	label := "look"
	for i, s := range steps {
		number := fmt.Sprintf("%d. ", i+1)
		lead, inner := t.label(label)+number, strings.Repeat(" ", labelWidth+len(number))
		t.Under(margin+lead, margin+inner, lines.Plain, s.Look)
		if s.Command != "" {
			t.Line(margin, inner, s.Command)
		}
		label = ""
	}
}

// remedy writes one remedy: what to type, what it takes and what it costs.
func (t *text) remedy(margin string, r *remedy) {
	if r.Same != 0 && r.Same <= t.v.Grave {
		t.labelled(margin, r.Label, fmt.Sprintf("%s, as under %d", r.Title, r.Same))
		return
	}
	blocks := r.Typed()
	if t.style.Verbose {
		blocks = slices.Concat(r.Blocks, r.More)
	}
	inner := margin + strings.Repeat(" ", labelWidth)
	label := r.Label
	if t.all || len(blocks) == 0 {
		t.labelled(margin, label, r.Title)
		label = ""
	}
	hidden := t.blocks(margin, t.label(label), blocks)
	if hidden > 0 {
		t.Wrapped(inner, lines.Yellow, "and "+lines.Count(hidden, "more line")+" that need no change (--verbose)")
	}
	if !r.PerBlock {
		t.Wrapped(inner, lines.Dim, r.Effort)
	}
	t.remark(inner, lines.Green, "", r.Proof)
	cost, caution := sentence(r.Cost), sentence(r.Caution)
	if t.style.Verbose {
		cost, caution = r.Cost, r.Caution
	}
	if t.style.Verbose || r.Workaround {
		t.remark(inner, lines.Dim, "costs: ", cost)
	}
	t.remark(inner, lines.Yellow, "caution: ", caution)
	if t.style.Verbose {
		t.Wrapped(inner, lines.Dim, "why here: "+r.Why)
		t.Wrapped(inner, lines.Dim, "undo: "+r.Undo)
		t.Wrapped(inner, lines.Dim, "verify: "+r.Verify)
	}
}

// blocks writes what to type and to do behind a label, and returns how many lines it leaves out.
func (t *text) blocks(margin, lead string, blocks []block) (hidden int) {
	inner := strings.Repeat(" ", labelWidth)
	n := 0
	for _, b := range blocks {
		where := after(b.Where, ": ")
		for _, l := range b.Lines {
			if n++; n > maxLines && !t.style.Verbose {
				hidden++
				continue
			}
			t.step(margin, lead, where+l, b.IsByHand())
			lead, where = inner, strings.Repeat(" ", len(where))
		}
		t.remark(margin+inner, lines.Dim, "", b.Effort)
	}
	return hidden
}

// remark writes a text behind its lead, if there is any.
func (t *text) remark(margin string, c lines.Color, lead, said string) {
	if said != "" {
		t.Wrapped(margin, c, lead+said)
	}
}

// step writes one line of a remedy. What is to be typed is never broken.
func (t *text) step(margin, lead, line string, prose bool) {
	if prose {
		t.Under(margin+lead, margin+strings.Repeat(" ", labelWidth), lines.Plain, line)
	} else {
		t.Line(margin, lead, line)
	}
}

// label is a label of a remedy.
func (t *text) label(name string) string { return t.Paint(lines.Green, lines.Pad(name, labelWidth)) }

// labelled writes a sentence behind a label of a remedy.
func (t *text) labelled(margin, label, said string) { t.step(margin, t.label(label), said, true) }

// pointer writes a sentence behind a label, and a command below it.
func (t *text) pointer(margin, label, said, command string) {
	t.labelled(margin, label, said)
	t.Line(margin, strings.Repeat(" ", labelWidth), command)
}
