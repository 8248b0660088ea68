package compare

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
)

// Since says what became of the findings of an earlier report. One is cured only if its rule was judged again.
func Since(before, now Input) *report.Baseline {
	b := &report.Baseline{Source: before.Name}
	if before.Report.Host.Summary != now.Report.Host.Summary {
		b.Notes = append(b.Notes, "the machine of the earlier report was described as: "+before.Report.Host.Summary)
	}
	for _, p := range pairs(before.Report.AllFindings(), now.Report.AllFindings()) {
		if p.before == nil {
			b.New = append(b.New, p.after.compared())
			continue
		}
		f := p.before.compared()
		f.Advised = advisedFor(before.Report, f)
		reason := notJudged(now.Report, f.Rule)
		switch {
		case p.after != nil:
			b.Remaining = append(b.Remaining, f)
		case reason == "":
			b.Cured = append(b.Cured, f)
		default:
			f.Reason = reason
			b.NotJudged = append(b.NotJudged, f)
		}
	}
	for _, list := range [][]report.Compared{b.Cured, b.Remaining, b.New, b.NotJudged} {
		slices.SortStableFunc(list, func(x, y report.Compared) int {
			return cmp.Or(x.Severity.Rank()-y.Severity.Rank(), strings.Compare(x.Rule, y.Rule), strings.Compare(x.Subject, y.Subject))
		})
	}
	return b
}

func (s *Said) compared() report.Compared {
	return report.Compared{Rule: s.Rule, Subject: s.Subject, Severity: s.Severity, Title: s.Title}
}

// advisedFor are the remedies that a report advises for a finding, best first.
func advisedFor(d *report.Document, f report.Compared) []string {
	cures := func(c remedies.Cure) bool { return c.Rule == f.Rule && c.Object.About(c.Subject) == f.Subject }
	advised := lines.Filter(d.Advice, func(a remedies.Advice) bool { return slices.ContainsFunc(a.Cures, cures) })
	return lines.Unique(lines.Map(advised, func(a remedies.Advice) string { return a.Remedy }))
}

// notJudged says why a rule was not judged in a report; empty if it was.
func notJudged(d *report.Document, rule string) string {
	if i := slices.IndexFunc(d.Skipped, func(s report.Skipped) bool { return s.Rule == rule }); i >= 0 {
		return strings.Join(append([]string{"not judged now"}, d.Skipped[i].Missing[:min(1, len(d.Skipped[i].Missing))]...), ": ")
	}
	if reason, is := d.NotApplicable[rule]; is {
		return "does not apply now: " + reason
	}
	if !judged(d, rule) {
		return "not judged now: the rule was not applied"
	}
	return ""
}
