package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/ansi"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// cure writes what to do in order of rank: the quickest workaround, the lasting
// fix, and how to see that it helped.
func (t *text) cure(number int, margin string, g group) {
	c := cureOf(g, t.d.Advice)
	steps := g.steps()
	withheld := g.withheld(t.d.Withheld)
	cured := len(c.lead) > 0
	if !cured && len(steps) == 0 && len(withheld) == 0 {
		return
	}
	t.line()
	for _, said := range withheld {
		t.labelled(margin, "note", said)
	}
	for _, l := range c.lead {
		if l.label == "or" && c.has("now") && !t.style.Verbose {
			t.pointer(margin, l.label, l.advice.Title+" ("+apply.Effort(l.advice.Needs, l.advice.Lasts)+"):", "gpudoctor explain "+l.advice.ID())
		} else {
			t.advice(number, margin, l.label, l.advice)
		}
	}
	if len(c.others) > 0 && t.style.Verbose {
		t.labelled(margin, "more", strings.Join(c.others, ", "))
	}
	t.steps(margin, steps)
	if cured {
		t.line(margin, t.paint(ansi.Dim, lines.Pad("check", labelWidth)), after(t.d.recheck.Fresh(), ": ")+t.clean(t.d.recheck.Command(g.ids()...)))
	}
}

// flags writes how a container gets what it lacks: the flags, or where a description in several lines
// is to be found.
func (t *text) flags(margin string, g group) {
	for _, l := range cureOf(g, t.d.Advice).lead {
		i, ok := apply.InContainer(l.advice.Apply, t.d.runsOf(l.advice))
		switch {
		case !ok || l.advice.Kind != remedies.Fix:
			continue
		case len(i.Lines) == 1:
			t.step(margin, t.paint(ansi.Green, lines.Pad("fix", labelWidth)), i.Where+": "+t.clean(i.Lines[0]), false)
		default:
			t.pointer(margin, "fix", l.advice.Title+":", "gpudoctor explain "+l.advice.ID())
		}
		return
	}
}

// after is a lead with what separates it from what it leads to; nothing if it is empty.
func after(lead, separator string) string {
	if lead == "" {
		return ""
	}
	return lead + separator
}

// steps writes what to look at, in order. A command is never broken.
func (t *text) steps(margin string, steps []rules.Step) {
	label := "look"
	for i, s := range steps {
		number := fmt.Sprintf("%d. ", i+1)
		lead, inner := t.paint(ansi.Green, lines.Pad(label, labelWidth))+number, strings.Repeat(" ", labelWidth+len(number))
		for _, l := range lines.Wrap(t.clean(s.Look), t.width-len(margin)-len(inner)) {
			t.line(margin, lead, l)
			lead = inner
		}
		if s.Command != "" {
			t.line(margin, inner, t.clean(s.Command))
		}
		label = ""
	}
}

// advice writes one remedy: what to type, what it takes and what it costs.
func (t *text) advice(number int, margin, label string, a *remedies.Advice) {
	key := a.ID() + "\x00" + valueOf(a.Apply)
	if at := t.shown[key]; at != unnumbered {
		t.labelled(margin, label, fmt.Sprintf("%s, as under %d", a.Title, at))
		return
	}
	if number != unnumbered {
		t.shown[key] = number
	}
	primary, others := apply.Instructions(a.Apply, t.d.runsOf(a))
	if t.style.Verbose {
		primary = append(primary, others...)
	} else if len(primary) > 1 {
		// Beside what can be typed, the steps are remarks.
		primary = slices.DeleteFunc(primary, func(i apply.Instruction) bool { return i.Where == apply.ByHand })
	}
	lead := t.paint(ansi.Green, lines.Pad(label, labelWidth))
	inner := margin + strings.Repeat(" ", labelWidth)
	efforts := apply.Efforts(primary, a.Needs, a.Lasts)
	n, hidden := 0, 0
	for at, i := range primary {
		where := ""
		if i.Where != "" {
			where = i.Where + ": "
		}
		for _, l := range i.Lines {
			if n >= maxLines && !t.style.Verbose {
				hidden++
				continue
			}
			t.step(margin, lead, where+t.clean(l), i.Where == apply.ByHand)
			lead, where = strings.Repeat(" ", labelWidth), strings.Repeat(" ", len(where))
			n++
		}
		if efforts != nil && efforts[at] != "" {
			t.wrapped(inner, ansi.Dim, t.clean(efforts[at]))
		}
	}
	if n == 0 {
		t.step(margin, lead, t.clean(a.Title), true)
	}
	if hidden > 0 {
		t.wrapped(inner, ansi.Yellow, "and "+plural(hidden, "more line")+" that need no change (--verbose)")
	}
	if efforts == nil {
		t.wrapped(inner, ansi.Dim, t.clean(apply.Effort(a.Needs, a.Lasts)))
	}
	if p := apply.Proof(a.Proof); p != "" {
		t.wrapped(inner, ansi.Green, t.clean(p))
	}
	switch {
	case a.Cost == "":
	case t.style.Verbose:
		t.wrapped(inner, ansi.Dim, "costs: "+t.clean(a.Cost))
	case a.Kind == remedies.Workaround:
		t.wrapped(inner, ansi.Dim, "costs: "+t.clean(sentence(a.Cost)))
	}
	if a.Caution != "" {
		caution := a.Caution
		if !t.style.Verbose {
			caution = sentence(caution)
		}
		t.wrapped(inner, ansi.Yellow, "caution: "+t.clean(caution))
	}
	if t.style.Verbose {
		t.wrapped(inner, ansi.Dim, "why here: "+t.clean(a.Why))
		t.wrapped(inner, ansi.Dim, "undo: "+t.clean(a.Undo))
		t.wrapped(inner, ansi.Dim, "verify: "+t.clean(a.Verify))
	}
}

// step writes one line of a remedy. What is to be typed is never broken.
func (t *text) step(margin, lead, line string, prose bool) {
	if !prose {
		t.line(margin, lead, line)
		return
	}
	for i, l := range lines.Wrap(line, t.width-len(margin)-labelWidth) {
		if i > 0 {
			lead = strings.Repeat(" ", labelWidth)
		}
		t.line(margin, lead, l)
	}
}

// labelled writes a sentence behind a label of a remedy.
func (t *text) labelled(margin, label, said string) {
	t.step(margin, t.paint(ansi.Green, lines.Pad(label, labelWidth)), t.clean(said), true)
}

// pointer writes a sentence behind a label and a command behind it, which is
// not broken.
func (t *text) pointer(margin, label, said, command string) {
	words := append(strings.Fields(t.clean(said)), t.clean(command))
	indent := len(margin) + labelWidth
	lead := t.paint(ansi.Green, lines.Pad(label, labelWidth))
	for _, l := range t.wrapItems(words, indent, indent) {
		t.line(margin, lead, l)
		lead = strings.Repeat(" ", labelWidth)
	}
}
