package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/tree/treetest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestTreesJudged checks that the copy of a machine's files is never healthy, and that no rule finds
// anything in it which it does not find in the recording, unless the recording has what
// explains it, such as the probe.
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
