package report

import (
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Baseline is what changed since an earlier report.
type Baseline struct {
	Source string `json:"source"` // The file of the earlier report.
	// Cured are findings that were there and are not now, although their rules were judged.
	Cured     []Compared `json:"cured"`
	Remaining []Compared `json:"remaining"` // Findings that were there and still are.
	New       []Compared `json:"new"`       // Findings that were not there.
	// NotJudged are findings that were there, and whose rules could not be judged now or do
	// no longer apply: whether they are cured is not known.
	NotJudged []Compared `json:"not_judged"`
	// Notes say what limits the comparison.
	Notes []string `json:"notes,omitempty"`
}

// Compared is a finding of either report.
type Compared struct {
	Rule     string         `json:"rule"`
	Subject  string         `json:"subject"`
	Severity rules.Severity `json:"severity"`
	Title    string         `json:"title"`
	// Advised are the remedies that the earlier report advised for it, best first.
	Advised []string `json:"advised,omitempty"`
	// Reason says why it is not judged.
	Reason string `json:"reason,omitempty"`
}

// Entries are what a report says, one line each. They begin with one word: "cured", "still", "new", "open" for what is not
// known, or "note".
func (b *Baseline) Entries() []lines.Entry {
	var all []lines.Entry
	add := func(label string, findings []Compared, advised bool) {
		for _, group := range lines.Grouped(findings, func(f Compared) [4]string {
			return [...]string{f.Rule, string(f.Severity), f.Reason, strings.Join(f.Advised, " ")}
		}) {
			all = append(all, lines.Entry{Lead: label, Text: comparedInWords(group, advised)})
		}
	}
	add("cured", b.Cured, true)
	add("still", b.Remaining, false)
	add("new", b.New, false)
	add("open", b.NotJudged, false)
	if len(b.Cured)+len(b.Remaining)+len(b.New)+len(b.NotJudged) == 0 {
		all = append(all, lines.Entry{Lead: "note", Text: "no findings then, none now"})
	}
	return append(all, lines.Map(b.Notes, func(n string) lines.Entry { return lines.Entry{Lead: "note", Text: n} })...)
}

func comparedInWords(group []Compared, advised bool) string {
	f := group[0]
	subject := f.Subject
	if n := len(group) - 1; n > 0 {
		subject += fmt.Sprintf(" and %d more", n)
	}
	s := fmt.Sprintf("%s (%s, %s), %s", f.Title, f.Rule, f.Severity, subject)
	if advised {
		s += lines.Behind("; advised was ", strings.Join(f.Advised, ", "))
	}
	return s + lines.Behind(": ", f.Reason)
}
