package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/formattest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/rules"
)

// flatten lists findings and their consequences.
func flatten(findings []rules.Finding) []rules.Finding {
	var all []rules.Finding
	for _, f := range findings {
		all = append(append(all, f), flatten(f.Explains)...)
	}
	return all
}

// gapsOf are the reasons of a verdict that are no findings.
func gapsOf(d *report.Document) []string {
	var gaps []string
	for _, r := range d.Verdict.Reasons {
		if r.Code != report.ReasonFinding && r.Code != report.ReasonWaived {
			gaps = append(gaps, string(r.Code)+" "+r.Text)
		}
	}
	return gaps
}

// waiving makes the report of a situation with waivers, strict or not.
func waiving(t *testing.T, known knowledge, s situation, verdict *rules.Result, all []waivers.Waiver, strict bool) *report.Document {
	t.Helper()
	in := report.Input{
		Version: version, Sources: s.request.source.names(), Profile: s.request.profile, FailOn: s.request.failOn, Strict: strict, TextsOnly: s.textsOnly,
		Rules: known.rules.Rules(), Facts: s.facts, Verdict: *verdict, Recheck: s.request.recheck(),
	}
	if all != nil {
		applied := waivers.Apply(*verdict, all, "2027-01-31")
		in.Waiving = &applied
	}
	return report.New(in)
}

// TestWaiversOfAll checks, for all situations: if every finding is waived, each is listed as
// waived, in every format, and none counts; what was not examined stays as it was, the exit
// code of it too, and no verdict becomes healthy. If all waivers have expired, every finding
// counts as if there were none. A waiver of one rule is for the findings of this rule alone.
func TestWaiversOfAll(t *testing.T) {
	t.Parallel()
	night.NotShort(t, "it enumerates, and nothing in it runs side by side")
	known := learnt(t)
	waivedFindings, inconclusive := 0, 0
	try := night.Every(5) // Profiles alternate.
	situations(t, func(s situation) {
		if !try(string(s.request.profile)) {
			return
		}
		verdict, _ := judgedAndTold(t.Context(), t, known, s)
		found := flatten(verdict.Findings)
		all := []waivers.Waiver{}
		for i, id := range slices.Compact(ruleIDs(found)) {
			all = append(all, waivers.Waiver{Rule: id, Reason: "r", Expires: "2027-01-31", File: "f", Line: i + 1})
		}
		for _, strict := range []bool{false, true} {
			plain := waiving(t, known, s, verdict, nil, strict)
			waived := waiving(t, known, s, verdict, all, strict)
			waivedFindings += len(waived.Waived)
			if waived.Verdict.State == report.Inconclusive {
				inconclusive++
			}
			expect.Equal(t, "", wronglyWaived(plain, waived, found, strict), "%s, strict %t", s.name, strict)
			if !strict {
				for _, format := range slices.Sorted(maps.Keys(formattest.Readers)) {
					expect.Equal(t, "", misread(waived, format), "%s, waived, %s", s.name, format)
				}
			}
			expired := slices.Clone(all)
			for i := range expired {
				expired[i].Expires = "2027-01-30"
			}
			late := waiving(t, known, s, verdict, expired, strict)
			if len(late.Findings) != len(plain.Findings)+len(all) || len(late.Waived) > 0 || late.Verdict.ExitCode != plain.Verdict.ExitCode || late.Verdict.State != plain.Verdict.State {
				t.Errorf("%s: with expired waivers %d findings, exit %d; without %d, exit %d", s.name, len(late.Findings), late.Verdict.ExitCode, len(plain.Findings), plain.Verdict.ExitCode)
			}
		}
		for _, w := range all {
			one := waivers.Apply(*verdict, []waivers.Waiver{w}, "2027-01-31")
			if slices.Contains(ruleIDs(flatten(one.Findings)), w.Rule) || len(flatten(one.Findings))+len(one.Waived) != len(found) {
				t.Errorf("%s: the waiver of %s leaves %v, and waives %d of %d", s.name, w.Rule, ruleIDs(one.Findings), len(one.Waived), len(found))
			}
		}
	})
	least := 25 // Of a twentieth of them.
	if night.Is() {
		least = 500
	}
	expect.That(t, waivedFindings >= least && inconclusive >= 25, "only %d findings were waived, %d verdicts inconclusive", waivedFindings, inconclusive)
	t.Logf("%d findings were waived, %d verdicts inconclusive", waivedFindings, inconclusive)
}

// wronglyWaived says how a report in which every finding is waived makes too much of it; empty where it does not.
func wronglyWaived(plain, waived *report.Document, found []rules.Finding, strict bool) string {
	v, code := waived.Verdict, 0
	gaps := gapsOf(plain)
	switch before := plain.Verdict.ExitCode; {
	case before == 2, before == 3, before == 1 && strict && len(gaps) > 0:
		code = max(before, 2)
		if before == 1 {
			code = 3
		}
	case slices.ContainsFunc(plain.Verdict.Reasons, func(r report.Reason) bool { return r.Code == report.ReasonFailed || r.Code == report.ReasonProbe }):
		code = 3
	}
	graveWaived := slices.ContainsFunc(waived.Waived, func(w waivers.Waived) bool { return w.Finding.Severity.Rank() <= rules.Medium.Rank() })
	switch {
	case len(waived.Findings) > 0 || v.Waived != len(found) || !slices.Equal(ruleIDs(waived.AllFindings()), ruleIDs(found)):
		return "not every finding is listed as waived"
	case !slices.Equal(gapsOf(waived), gaps):
		return "what was not examined differs"
	case v.State == report.Healthy && (plain.Verdict.State != report.Healthy || graveWaived):
		return "it became healthy"
	case len(gaps) == 0 && graveWaived && v.State != report.Findings, len(gaps) > 0 && !graveWaived && v.State != report.Inconclusive:
		return "its state is " + string(v.State)
	case v.ExitCode != code:
		return "the exit code is " + string(rune('0'+v.ExitCode)) + ", want " + string(rune('0'+code))
	}
	return ""
}
