package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/tree/treetest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestExamples checks that the same is said of each recorded machine, in the same words but for the times, when it is
// asked again. What that is, TestGoldenVerdicts checks.
func TestExamples(t *testing.T) {
	slowWithRace(t)
	for _, name := range fixtures.Examples() {
		request := request{source: source{from: []string{examplePrefix + name}}, profile: rules.Training, failOn: report.Threshold(rules.High)}
		first, second := withoutTimes(t, expect.Value(diagnose(t.Context(), request))(t)), withoutTimes(t, expect.Value(diagnose(t.Context(), request))(t))
		if first != second {
			t.Errorf("%s: said otherwise the second time:\n%s", name, cmp.Diff(first, second))
		}
	}
}

func withoutTimes(t *testing.T, d *report.Document) string {
	t.Helper()
	copied := *d
	copied.Timing = report.Timing{}
	return string(expect.Value(json.Marshal(copied))(t))
}

// TestExamplesJudged checks which rules could not be judged on a recorded machine
// that is healthy: that rules ask for what they need costs it nothing.
func TestExamplesJudged(t *testing.T) {
	type want struct {
		State   report.State
		Skipped []string
		Passed  int // At least.
	}
	// The links of a virtual machine are not the real ones, and the recordings are older than the section storage.
	old := []string{"gds-compat-mode", "nvme-failed", "pcie-link-degraded", "raid-degraded"}
	for name, w := range map[string]want{
		"h200x2":        {report.Healthy, old, 17},
		"h200x4":        {report.Healthy, old, 17},
		"model-8x-pcie": {report.Healthy, nil, 17},
		"model-mi300x8": {report.Healthy, nil, 20},
	} {
		t.Run(name, func(t *testing.T) {
			d := expect.Value(diagnose(t.Context(), request{source: source{from: []string{"example:" + name}}, profile: rules.Training, failOn: report.Threshold(rules.High)}))(t)
			got := want{State: d.Verdict.State}
			for _, s := range d.Skipped {
				got.Skipped = append(got.Skipped, s.Rule)
			}
			got.Passed = min(w.Passed, len(d.Passed))
			expect.NoDiff(t, w, got, "judged")
		})
	}
}

// TestTreesJudged checks that the copy of a machine's files is never healthy, and that no rule finds anything in it
// which it does not find in the recording, unless the recording has what explains it, such as the probe.
func TestTreesJudged(t *testing.T) {
	slowWithRace(t)
	judge := func(from string) *report.Document {
		t.Helper()
		d := expect.Value(diagnose(t.Context(), request{source: source{from: []string{from}}, profile: rules.Training, failOn: report.Threshold(rules.High)}))(t)
		return d
	}
	for _, name := range fixtures.Examples() {
		recording := expect.Value(fixtures.Example(name))(t)
		entries, _ := treetest.Split(t, recording)
		file := filepath.Join(t.TempDir(), name+".tgz")
		expect.NoError(t, os.WriteFile(file, treetest.Gzip(t, treetest.Tar(t, name, entries)), 0o600))
		whole, copied := judge("example:"+name), judge(file)
		if copied.Verdict.State == report.Healthy || copied.TextsOnly() {
			t.Errorf("%s: the verdict on its files is %s, texts only: %t", name, copied.Verdict.State, copied.TextsOnly())
		}
		found := map[string]bool{}
		for _, f := range whole.Findings {
			found[f.Rule] = true
		}
		for _, f := range copied.Findings {
			expect.That(t, found[f.Rule], "%s: only its files show %s: %s", name, f.Rule, f.Message)
		}
	}
}
