package main

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/formattest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// ruleIDs are the rules of findings, sorted.
func ruleIDs(findings []rules.Finding) []string {
	ids := []string{}
	for _, f := range findings {
		ids = append(ids, f.Rule)
	}
	slices.Sort(ids)
	return ids
}

// misread says how a report in a format differs from the document; empty where it does not.
func misread(d *report.Document, format string) string {
	f, _ := report.FormatNamed(format)
	var b bytes.Buffer
	if err := f.Write(&b, d, report.Style{}); err != nil {
		return err.Error()
	}
	r, err := formattest.Readers[format](b.Bytes())
	if err != nil {
		return err.Error()
	}
	var gaps []string
	for _, reason := range d.Verdict.Reasons {
		if reason.Code != report.ReasonFinding && reason.Code != report.ReasonWaived {
			gaps = append(gaps, string(reason.Code))
		}
	}
	slices.Sort(gaps)
	slices.Sort(r.Gaps)
	switch {
	case !slices.Equal(r.Rules(false), ruleIDs(d.Findings)):
		return "it has findings of " + strings.Join(r.Rules(false), " ")
	case !slices.Equal(r.Rules(true), ruleIDs(d.AllFindings()[len(d.Findings):])):
		return "it has waived findings of " + strings.Join(r.Rules(true), " ")
	case !slices.Equal(r.Gaps, gaps):
		return "it says that this was not examined: " + strings.Join(r.Gaps, " ")
	case r.Broken != (d.Verdict.ExitCode > 1):
		return "it does not tell the exit code"
	case r.AllPassed && d.Verdict.State == report.Inconclusive:
		return "it reads as a success, and is inconclusive"
	}
	return mistold(d, r, format)
}

// remedyLine is the line of a remedy.
var remedyLine = regexp.MustCompile(`(?m)^(now|fix|or|more): .+ \(.+\)$`)

// mistold says what of the findings a report does not tell.
func mistold(d *report.Document, r formattest.Report, format string) string {
	var told strings.Builder
	fail := 0
	for _, e := range r.Entries {
		told.WriteString(e.Text + "\n")
		if e.Fails {
			fail++
		}
	}
	failing := format == "sarif" || format == "junit" || format == "github"
	if failing && (fail > 0) != (d.Verdict.ExitCode == 1) {
		return "what fails in it does not fit the exit code"
	}
	if format == "prometheus" {
		return ""
	}
	for _, f := range d.AllFindings() {
		want := []string{f.Message}
		for _, e := range f.Explains {
			want = append(want, e.Message)
		}
		for _, text := range want {
			if text = lines.Printable(text, false); len(text) < lines.MaxField/2 && !strings.Contains(told.String(), text) {
				return "it does not say " + text
			}
		}
		cured := slices.ContainsFunc(d.Advice, func(a remedies.Advice) bool {
			return slices.Contains(a.Cures, remedies.Cure{Rule: f.Rule, Subject: f.Subject})
		})
		if cured && !slices.ContainsFunc(r.Entries, func(e formattest.Entry) bool { return e.Rule == f.Rule && remedyLine.MatchString(e.Text) }) {
			return "it names no remedy for " + f.Rule
		}
	}
	return ""
}

// TestFormatsOfAll checks, for all situations and each format for CI systems and monitors, that
// the readers of others take the report, and that it has every finding with its consequences,
// whatever was not examined, and the exit code.
func TestFormatsOfAll(t *testing.T) {
	t.Parallel()
	night.NotShort(t, "it enumerates, and nothing in it runs side by side")
	known := learnt(t)
	reports, findings := 0, 0
	situations(t, func(s situation) {
		d := tellOf(t.Context(), t, known, s)
		for _, format := range slices.Sorted(maps.Keys(formattest.Readers)) {
			reports++
			findings += len(d.Findings)
			expect.Equal(t, "", misread(d, format), "%s, %s", s.name, format)
		}
	})
	t.Logf("%d reports with %d findings", reports, findings)
}
