package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Part is a part of a file that is judged by itself.
type Part struct {
	rules.Object
	// Facts are what it is judged by, and Open is true where a rule could not judge it.
	Facts *facts.Facts
	Open  bool
}

// JudgedObject is what was found about a part of a file.
type JudgedObject struct {
	rules.Object
	// State is that of a verdict: "inconclusive" means that a rule could not judge it.
	State  State  `json:"state" jsonschema:"enum=healthy,enum=findings,enum=inconclusive"`
	Counts Counts `json:"counts"` // The findings about it by severity, without those that are waived.

	runs string // How it is started, as apply.Instructions names it.
}

// addObjects notes what the report says of each part, the worst first.
func (d *Document) addObjects() {
	findings := map[rules.Object][]rules.Finding{}
	for _, f := range d.Findings {
		findings[f.Scope()] = append(findings[f.Scope()], f)
	}
	for _, p := range d.in.Parts {
		own := findings[p.Object]
		o := JudgedObject{Object: p.Object, State: Healthy, Counts: count(own), runs: apply.RunsBy(p.Facts)}
		switch {
		case slices.ContainsFunc(own, func(f rules.Finding) bool { return atLeast(worst(f), rules.Medium) }):
			o.State = Findings
		case p.Open:
			o.State = Inconclusive
		}
		d.Objects = append(d.Objects, o)
	}
	slices.SortStableFunc(d.Objects, func(a, b JudgedObject) int {
		return cmp.Or(
			slices.Compare(b.Counts.list()[:3], a.Counts.list()[:3]), // Of medium severity and above.
			cmp.Compare(notInFull[b.State], notInFull[a.State]), cmp.Compare(b.Counts.Low+b.Counts.Info, a.Counts.Low+a.Counts.Info),
		)
	})
}

// notInFull comes first of objects without findings of medium severity or above.
var notInFull = map[State]int{Findings: 1, Inconclusive: 1}

// Standing is what was found about an object, in words.
func (o JudgedObject) Standing() string {
	if o.State == Inconclusive {
		return cmp.Or(o.Counts.String(), "not judged in full")
	}
	return cmp.Or(o.Counts.String(), "no finding")
}

// objectList are the objects to be listed, and how many are left out and why. Width is that of what was found.
type objectList struct {
	Rows  []JudgedObject
	Rest  string
	Width int
}

// listedObjects are the objects to be listed; nil where the report is about one.
func (d *Document) listedObjects(all bool, most int) *objectList {
	if len(d.Objects) < 2 {
		return nil
	}
	bad := lines.Filter(d.Objects, func(o JudgedObject) bool { return all || o.Standing() != "no finding" })
	l := &objectList{Rows: bad}
	if !all {
		l.Rows = bad[:min(len(bad), most)]
	}
	var left []string
	if n := len(bad) - len(l.Rows); n > 0 {
		left = append(left, lines.Count(n, "more object"))
	}
	if n := len(d.Objects) - len(bad); n > 0 {
		left = append(left, lines.Count(n, "object")+" without a finding")
	}
	l.Rest = strings.Join(left, "; ")
	for _, o := range l.Rows {
		l.Width = max(l.Width, len(o.Standing())+2)
	}
	return l
}

// Severity is the worst of what was found about an object; medium if it was not judged in full.
func (o JudgedObject) Severity() rules.Severity {
	if i := slices.IndexFunc(o.Counts.list(), func(n int) bool { return n > 0 }); i >= 0 {
		return severities[i]
	}
	return map[bool]rules.Severity{true: rules.Medium}[o.State == Inconclusive]
}

func (d *Document) objectOf(f finding) string {
	if f.Object == nil || len(d.Objects) < 2 {
		return ""
	}
	return f.Object.Place()
}

// runsOf is how that is started which advice is for, as apply.Instructions names it.
func (d *Document) runsOf(a *remedies.Advice) string {
	for _, c := range a.Cures {
		for _, o := range d.Objects {
			if o.Object == c.Object {
				return o.runs
			}
		}
	}
	return d.runs
}
