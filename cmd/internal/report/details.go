package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/ansi"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// details writes what was not judged and why.
func (t *text) details() {
	if len(t.d.Skipped) > 0 {
		t.line()
		t.line(t.paint(ansi.Bold, "Could not be judged"))
		for _, s := range t.d.Skipped {
			t.listed(s.Rule, strings.Join(s.Missing, "; "))
		}
	}
	if len(t.d.Unknown) > 0 {
		t.line()
		t.line(t.paint(ansi.Bold, "Not known"))
		for _, u := range t.d.Unknown {
			said := u.Reason
			if u.Hint != "" {
				said += " (" + u.Hint + ")"
			}
			t.listed(strings.TrimSuffix(u.Section+"."+u.Fact, "."), said)
		}
	}
	if len(t.d.NotApplicable) > 0 {
		t.line()
		t.line(t.paint(ansi.Bold, "Not applicable"))
		for _, id := range slices.Sorted(maps.Keys(t.d.NotApplicable)) {
			t.listed(id, t.d.NotApplicable[id])
		}
	}
	if len(t.d.Passed) > 0 {
		t.line()
		t.line(t.paint(ansi.Bold, "Passed"))
		t.wrapped("  ", ansi.Plain, t.clean(strings.Join(t.d.Passed, ", ")))
	}
	if len(t.d.Settings) > 0 {
		t.line()
		t.line(t.paint(ansi.Bold, "Set in files"))
		for _, s := range t.d.Settings {
			t.listed(s.Place(), s.Key+": "+strings.Join(s.Values, ", "))
		}
	}
	t.times()
	t.line()
}

// listed writes a name and what is said of it.
func (t *text) listed(name, said string) {
	const indent = 28
	name = t.clean(name)
	broken := lines.Wrap(t.clean(said), t.width-indent)
	if utf8.RuneCountInString(name) > indent-4 {
		t.line("  ", name)
		name = ""
	}
	for _, l := range broken {
		t.line("  ", lines.Pad(name, indent-2), l)
		name = ""
	}
}

// times writes how long the checks and the judging took, and the stages of the
// probe, the longest first.
func (t *text) times() {
	lists := []struct {
		name string
		ms   map[string]float64
	}{{"steps", maps.Clone(t.d.Timing.ChecksMS)}, {"probe", map[string]float64{}}}
	if len(lists[0].ms) > 0 {
		lists[0].ms["rules"], lists[0].ms["remedies"] = t.d.Timing.RulesMS, t.d.Timing.RemediesMS
	}
	if t.d.Transfers != nil {
		for _, s := range t.d.Transfers.Stages {
			lists[1].ms[s.Name] += s.Milliseconds
		}
	}
	begun := false
	for _, l := range lists {
		if len(l.ms) == 0 {
			continue
		}
		if !begun {
			t.line()
			t.line(t.paint(ansi.Bold, "Time"))
			begun = true
		}
		t.hanging("  ", l.name, ansi.Plain, t.clean(longest(l.ms)))
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
