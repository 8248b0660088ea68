package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/ansi"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/gfm"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// JudgedObject is a part of a file that was judged by itself.
type JudgedObject struct {
	rules.Object
	// State is that of a verdict: "inconclusive" means that a rule could not judge it.
	State State `json:"state" jsonschema:"enum=healthy,enum=findings,enum=inconclusive"`
	// Counts are the findings about it by severity, without those that are waived.
	Counts Counts `json:"counts"`

	// Open is true where a rule could not judge it, and Facts are what it was judged by.
	Open  bool         `json:"-"`
	Facts *facts.Facts `json:"-"`
	// Findings and Advice are what is said of it, in Parts.
	Findings []rules.Finding   `json:"-"`
	Advice   []remedies.Advice `json:"-"`
}

// judgedObjects are objects with what was found about them, the worst first.
func (d *Document) judgedObjects(all []JudgedObject) []JudgedObject {
	objects := slices.Clone(all)
	of := map[rules.Object][]rules.Finding{}
	for _, f := range d.Findings {
		if f.Object != nil {
			of[*f.Object] = append(of[*f.Object], f)
		}
	}
	for i := range objects {
		o := &objects[i]
		own := of[o.Object]
		o.Counts, o.State = count(own), Healthy
		switch {
		case slices.ContainsFunc(own, func(f rules.Finding) bool { return atLeast(worst(f), rules.Medium) }):
			o.State = Findings
		case o.Open:
			o.State = Inconclusive
		}
	}
	slices.SortStableFunc(objects, func(a, b JudgedObject) int {
		return cmp.Or(
			-cmp.Compare(a.Counts.Critical, b.Counts.Critical), -cmp.Compare(a.Counts.High, b.Counts.High), -cmp.Compare(a.Counts.Medium, b.Counts.Medium),
			cmp.Compare(a.rank(), b.rank()), -cmp.Compare(a.Counts.Low+a.Counts.Info, b.Counts.Low+b.Counts.Info),
		)
	})
	return objects
}

// rank orders objects without findings of medium severity or above: those that were not judged in full first.
func (o JudgedObject) rank() int {
	if o.State == Healthy {
		return 1
	}
	return 0
}

// standing is what was found about an object, in words.
func (o JudgedObject) standing() string {
	said := tally(o.Counts)
	if o.Open {
		return cmp.Or(said, "not judged in full")
	}
	return cmp.Or(said, "no finding")
}

// listedObjects are the objects to be listed, and how many are left out and why.
func (d *Document) listedObjects(all bool, most int) (shown []JudgedObject, rest string) {
	if len(d.Objects) < 2 {
		return nil, ""
	}
	bad := slices.DeleteFunc(slices.Clone(d.Objects), func(o JudgedObject) bool { return !all && o.standing() == "no finding" })
	shown = bad
	if !all {
		shown = bad[:min(len(bad), most)]
	}
	var left []string
	if n := len(bad) - len(shown); n > 0 {
		left = append(left, plural(n, "more object"))
	}
	if n := len(d.Objects) - len(bad); n > 0 {
		left = append(left, plural(n, "object")+" without a finding")
	}
	return shown, strings.Join(left, "; ")
}

// objects lists what was judged, the worst first.
func (t *text) objects() {
	shown, rest := t.d.listedObjects(t.style.Verbose, maxLines)
	if len(shown) == 0 && rest == "" {
		return
	}
	t.line()
	width := 0
	for _, o := range shown {
		width = max(width, len(o.standing())+2)
	}
	for _, o := range shown {
		lead := t.paint(colorOf(string(o.severity())), lines.Pad(o.standing(), width))
		for _, l := range t.wrapItems(strings.Fields(t.clean(o.Place())), width, width) {
			t.line(lead, l)
			lead = strings.Repeat(" ", width)
		}
	}
	if rest != "" {
		t.wrapped("", ansi.Dim, rest+map[bool]string{true: " (--verbose)"}[!t.style.Verbose])
	}
}

// severity is the worst of what was found about an object; medium if it was not judged in full.
func (o JudgedObject) severity() rules.Severity {
	for i, n := range []int{o.Counts.Critical, o.Counts.High, o.Counts.Medium, o.Counts.Low, o.Counts.Info} {
		if n > 0 {
			return severities[i]
		}
	}
	return map[bool]rules.Severity{true: rules.Medium}[o.Open]
}

// objects writes a table of what was judged, the worst first.
func (m *markdown) objects() {
	shown, rest := m.d.listedObjects(false, m.listed)
	if len(shown) == 0 {
		return
	}
	m.put("| object | findings |\n| --- | --- |")
	for _, o := range shown {
		m.put("| %s | %s |", gfm.Cell(m.code(o.Place())), o.standing())
	}
	m.put("")
	if rest != "" {
		m.put("%s.\n", rest)
	}
}

// objectOf is the object that a group is about; empty where the report is about a machine or one object.
func (d *Document) objectOf(g group) string {
	if g.Object == nil || len(d.Objects) < 2 {
		return ""
	}
	return g.Object.Place()
}

// runsOf is how that is started which advice is for, as apply.Instructions names it.
func (d *Document) runsOf(a *remedies.Advice) string {
	for _, c := range a.Cures {
		for _, o := range d.Objects {
			if o.Object == c.Object && o.Facts != nil {
				return apply.RunsBy(o.Facts)
			}
		}
	}
	return d.runs
}

// Parts are the objects with what the report says of each, or one for all where it names none.
func (d *Document) Parts() []JudgedObject {
	if len(d.Objects) == 0 {
		return []JudgedObject{{Facts: d.facts, Findings: d.Findings, Advice: d.Advice}}
	}
	all := make([]JudgedObject, 0, len(d.Objects))
	for _, p := range d.Objects {
		for _, f := range d.Findings {
			if f.Object != nil && *f.Object == p.Object {
				p.Findings = append(p.Findings, f)
			}
		}
		for _, a := range d.Advice {
			if slices.ContainsFunc(a.Cures, func(c remedies.Cure) bool { return c.Object == p.Object }) {
				p.Advice = append(p.Advice, a)
			}
		}
		all = append(all, p)
	}
	return all
}
