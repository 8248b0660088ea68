package compare

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/baseline"
	"github.com/gpudoctor/gpudoctor/remedies"
)

// Since says what became of the findings of an earlier report. One is cured only if its rule was
// judged again.
func Since(version string, before, now Input) *baseline.Baseline {
	b := &baseline.Baseline{
		Source: before.Name,
		Cured:  []baseline.Compared{}, Remaining: []baseline.Compared{}, New: []baseline.Compared{}, NotJudged: []baseline.Compared{},
	}
	if before.Report.Host.Summary != now.Report.Host.Summary {
		b.Notes = append(b.Notes, "the machine of the earlier report was described as: "+before.Report.Host.Summary)
	}
	gone := map[string]int{} // How many findings are not there now, by path.
	for _, i := range Compare(version, before, now).Items {
		switch {
		case i.Kind != Finding:
		case i.Change == Gone:
			gone[i.Path]++
			f := findingOf(i.BeforeFinding)
			f.Advised = advisedFor(before.Report, f)
			if f.Reason = notJudged(now.Report, f.Rule); f.Reason != "" {
				f.CauseCured = i.BeforeFinding.Under // noteCauses takes it back where that is not so.
				b.NotJudged = append(b.NotJudged, f)
			} else {
				b.Cured = append(b.Cured, f)
			}
		case i.Change == New:
			b.New = append(b.New, findingOf(i.AfterFinding))
		}
	}
	for _, one := range flat(before.Report.AllFindings(), "") {
		if path := findingItem(Gone, &one.said, nil).Path; gone[path] > 0 {
			gone[path]--
			continue
		}
		f := findingOf(&one.said)
		f.Advised = advisedFor(before.Report, f)
		b.Remaining = append(b.Remaining, f)
	}
	noteCauses(b)
	for _, list := range [][]baseline.Compared{b.Cured, b.Remaining, b.New, b.NotJudged} {
		slices.SortStableFunc(list, func(x, y baseline.Compared) int { return x.Severity.Rank() - y.Severity.Rank() })
	}
	b.Rates = rates(before.Report.Transfers, now.Report.Transfers)
	return b
}

// noteCauses leaves the cause of what was not judged only where it is cured, and no finding of its
// rule is there now.
func noteCauses(b *baseline.Baseline) {
	of := func(list []baseline.Compared, rule string) bool {
		return slices.ContainsFunc(list, func(f baseline.Compared) bool { return f.Rule == rule })
	}
	for i := range b.NotJudged {
		f := &b.NotJudged[i]
		if !of(b.Cured, f.CauseCured) || of(b.Remaining, f.CauseCured) || of(b.New, f.CauseCured) || of(b.NotJudged, f.CauseCured) {
			f.CauseCured = ""
		}
	}
}

func findingOf(s *Said) baseline.Compared {
	return baseline.Compared{Rule: s.Rule, Subject: s.Subject, Severity: s.Severity, Title: s.Title}
}

// advisedFor are the remedies that a report advises for a finding, best first.
func advisedFor(d *report.Document, f baseline.Compared) []string {
	var ids []string
	for i := range d.Advice {
		a := &d.Advice[i]
		cures := func(c remedies.Cure) bool { return c.Rule == f.Rule && c.Object.About(c.Subject) == f.Subject }
		if slices.ContainsFunc(a.Cures, cures) && !slices.Contains(ids, a.ID()) {
			ids = append(ids, a.ID())
		}
	}
	return ids
}

// notJudged says why a rule was not judged in a report; empty if it was.
func notJudged(d *report.Document, rule string) string {
	for _, s := range d.Skipped {
		if s.Rule == rule {
			if len(s.Missing) > 0 {
				return "not judged now: " + s.Missing[0]
			}
			return "not judged now"
		}
	}
	if reason, is := d.NotApplicable[rule]; is {
		return "does not apply now: " + reason
	}
	if !judged(d, rule) {
		return "not judged now: the rule was not applied"
	}
	return ""
}

// rates are the slowest transfers of the tests that both reports measured, where they differ by
// more than two measurements of one thing.
func rates(before, now *probe.Report) []baseline.TestRate {
	var all []baseline.TestRate
	was, is := slowest(before), slowest(now)
	for _, test := range is.order {
		if b, measured := was.gbps[test]; measured && !near(b, is.gbps[test]) {
			all = append(all, baseline.TestRate{Test: test, Before: b, After: is.gbps[test]})
		}
	}
	return all
}

// slowestOf are the slowest transfers of tests, by test, and the tests in order.
type slowestOf struct {
	gbps  map[string]float64
	order []string
}

func slowest(r *probe.Report) slowestOf {
	m := slowestOf{gbps: map[string]float64{}}
	if r == nil {
		return m
	}
	for _, t := range r.Transfers {
		if t.GBps == nil {
			continue
		}
		have, is := m.gbps[t.Test]
		if !is {
			m.order = append(m.order, t.Test)
		}
		if !is || *t.GBps < have {
			m.gbps[t.Test] = *t.GBps
		}
	}
	return m
}

// Replaced reports whether stand-ins took the place of names.
func Replaced(s Input) bool {
	return s.Report.Redacted == report.RedactedNames || s.Facts != nil && Redacted(s.Facts)
}
