package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// details writes what was not judged and why.
func (t *text) details() {
	var notApplicable, settings []pair
	for _, id := range slices.Sorted(maps.Keys(t.v.NotApplicable)) {
		notApplicable = append(notApplicable, pair{id, t.v.NotApplicable[id]})
	}
	for _, s := range t.v.Settings {
		settings = append(settings, pair{s.Place(), s.Key + ": " + strings.Join(s.Values, ", ")})
	}
	t.pairs("Could not be judged", t.v.notJudged())
	t.pairs("Not known", t.v.notRead())
	t.pairs("Not applicable", notApplicable)
	if len(t.v.Passed) > 0 {
		t.Head("Passed")
		t.Wrapped("  ", lines.Plain, strings.Join(t.v.Passed, ", "))
	}
	t.pairs("Set in files", settings)
	t.times()
	t.Line()
}

// pairs writes names and what is said of each, under a title.
func (t *text) pairs(title string, all []pair) {
	const indent = 28
	if len(all) > 0 {
		t.Head(title)
	}
	for _, p := range all {
		name := p.Name
		if utf8.RuneCountInString(name) > indent-4 {
			t.Line("  ", name)
			name = ""
		}
		t.Under("  "+lines.Pad(name, indent-2), strings.Repeat(" ", indent), lines.Plain, p.Text)
	}
}

// times writes how long the checks and the judging took, and the stages of the
// probe, the longest first.
func (t *text) times() {
	steps, stages := maps.Clone(t.v.Timing.ChecksMS), map[string]float64{}
	if len(steps) > 0 {
		steps["rules"], steps["remedies"] = t.v.Timing.RulesMS, t.v.Timing.RemediesMS
	}
	if t.v.Transfers != nil {
		for _, s := range t.v.Transfers.Stages {
			stages[s.Name] += s.Milliseconds
		}
	}
	if len(steps)+len(stages) > 0 {
		t.Head("Time")
	}
	for _, list := range []pair{{"steps", longest(steps)}, {"probe", longest(stages)}} {
		if list.Text != "" {
			t.hanging("  ", list.Name, lines.Plain, list.Text)
		}
	}
}

// longest lists times, the longest first; several below a millisecond are only
// counted.
func longest(ms map[string]float64) string {
	var parts []string
	names := slices.SortedFunc(maps.Keys(ms), func(a, b string) int { return cmp.Or(cmp.Compare(ms[b], ms[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		if rest := len(names) - i; ms[name] < 1 && rest > 1 {
			parts = append(parts, fmt.Sprintf("%d others below 1 ms", rest))
			break
		}
		parts = append(parts, name+" "+cmp.Or(took(ms[name]), "0 ms"))
	}
	return strings.Join(parts, ", ")
}
