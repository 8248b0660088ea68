package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/evidence"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/rules"
)

// diagnosisOf is a diagnosis without names: what was found, how grave and how sure it
// is, what is advised, and the exit code.
func diagnosisOf(t *testing.T, known knowledge, facts *checks.Facts) []string {
	t.Helper()
	r := request{source: source{from: []string{"x"}}, profile: rules.Training, failOn: report.Threshold(rules.High)}
	verdict, err := known.rules.Evaluate(t.Context(), facts, rules.Options{Profile: r.profile})
	if err != nil {
		t.Fatal(err)
	}
	ranking := r.rank(known.remedies, verdict.Findings, facts)
	d := report.New(report.Input{
		Profile: r.profile, FailOn: r.failOn, Rules: known.rules.Rules(), Facts: facts, Verdict: *verdict, Advice: ranking.Advice, Withheld: ranking.Withheld,
	})
	var out, found []string
	var add func(all []rules.Finding, indent string)
	add = func(all []rules.Finding, indent string) {
		for _, f := range all {
			found = append(found, fmt.Sprintf("%s%s %s %s, %d pieces of evidence", indent, f.Rule, f.Severity, f.Confidence, len(f.Evidence)))
			add(f.Explains, indent+"  ")
		}
	}
	add(d.Findings, "")
	slices.Sort(found) // The findings of one rule stand in order of their subjects.
	for _, a := range d.Advice {
		out = append(out, "advice "+a.ID())
	}
	slices.Sort(out)
	skipped := make([]string, 0, len(d.Skipped))
	for _, s := range d.Skipped {
		skipped = append(skipped, "skipped "+s.Rule)
	}
	return slices.Concat(found, out, skipped, []string{fmt.Sprintf("%s, exit %d", d.Verdict.State, d.Verdict.ExitCode)})
}

// TestRedactionKeepsDiagnosis holds that the redacted facts of every recorded
// machine and of every text give the diagnosis that the facts themselves give.
func TestRedactionKeepsDiagnosis(t *testing.T) {
	known, err := learn("")
	if err != nil {
		t.Fatal(err)
	}
	if err := known.rules.Compile(); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("../../fixtures/*/*.txtar")
	if err != nil || len(examples) == 0 {
		t.Fatal(examples, err)
	}
	for _, dir := range filepath.SplitList(os.Getenv("GPUDOCTOR_TEST_TEXTS")) { // More of them, by hand.
		more, err := filepath.Glob(dir)
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, more...)
	}
	for i, file := range examples {
		if testing.Short() && i%8 > 0 {
			continue
		}
		facts := factsOf(t, file)
		if facts == nil {
			continue
		}
		redacted := facts.Redact()
		if diff := cmp.Diff(diagnosisOf(t, known, facts), diagnosisOf(t, known, redacted)); diff != "" {
			t.Errorf("%s: redacted facts are judged differently (-before +after):\n%s", file, diff)
		}
		if diff := cmp.Diff(redacted, redacted.Redact()); diff != "" {
			t.Errorf("%s: redacting twice changes something (-once +twice):\n%s", file, diff)
		}
	}
}

// factsOf reads the facts of a recording or of texts; nil where there are none.
func factsOf(t *testing.T, file string) *checks.Facts {
	t.Helper()
	read, err := evidence.Read(t.Context(), []string{file}, evidence.Options{})
	if errors.Is(err, evidence.ErrNothing) || err != nil && !strings.HasPrefix(file, "../../fixtures") {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return read.Facts
}
