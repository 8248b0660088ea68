package report

import (
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
