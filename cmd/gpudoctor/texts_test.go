package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestTexts checks that each case of fixtures/texts is diagnosed as its comment
// says: "want: RULE SEVERITY CONFIDENCE" is the first finding, "first: REMEDY"
// the first advice, and "healthy" that nothing of medium or above is found.
func TestTexts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../fixtures/texts/*.txtar")
	expect.Must(t, err == nil && len(files) > 0, "no cases: %v", err)
	for i, file := range files {
		if night.Few() && i%4 > 0 {
			continue // The race detector makes each many times as slow.
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			raw := expect.Value(os.ReadFile(file))(t)
			var want, first string
			healthy := false
			for line := range strings.Lines(string(txtar.Parse(raw).Comment)) {
				line = strings.TrimSpace(line)
				if rest, ok := strings.CutPrefix(line, "want: "); ok {
					want = rest
				} else if rest, ok := strings.CutPrefix(line, "first: "); ok {
					first = rest
				}
				healthy = healthy || line == "healthy"
			}
			expect.Must(t, want != "" || healthy, "the comment says neither what is wanted nor that all is well")
			d := expect.Value(diagnose(t.Context(), request{source: source{from: []string{file}}, profile: rules.Training, failOn: report.Threshold(rules.High)}))(t)
			got := ""
			if len(d.Findings) > 0 {
				f := d.Findings[0]
				got = fmt.Sprintf("%s %s %s", f.Rule, f.Severity, f.Confidence)
				expect.That(t, !healthy || f.Severity.Rank() > rules.Medium.Rank(), "a false alarm: %s: %s", got, f.Message)
			}
			expect.That(t, want == "" || got == want, "got %q, want %q", got, want)
			expect.That(t, first == "" || len(d.Advice) != 0 && d.Advice[0].ID() == first, "advice = %v, want %s first", d.Advice, first)
		})
	}
}

// TestHealthyNoise checks that healthy texts stay so behind whatever launchers, collectors
// of logs and people put around their lines: each kind of noise is tried on one of them.
func TestHealthyNoise(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../fixtures/texts/*healthy*.txtar")
	expect.Must(t, err == nil && len(files) > 0, "no cases: %v", err)
	for i, how := range slices.Sorted(maps.Keys(texttest.Noises)) {
		if night.Few() && i%8 > 0 {
			continue
		}
		t.Run(how, func(t *testing.T) {
			file := files[i%len(files)]
			if strings.HasPrefix(how, "rank") && strings.Contains(file, "caught-exceptions") {
				// PyTorch writes "[rank3]:" before the traceback of an exception that ended the process.
				file = files[(i+1)%len(files)]
			}
			a := expect.Value(txtar.ParseFile(file))(t)
			dir := t.TempDir()
			for _, f := range a.Files {
				noisy := string(f.Data)
				if noise := texttest.Noises[how]; !noise.Lines || strings.HasSuffix(f.Name, ".log") {
					noisy = noise.Do(noisy)
				}
				expect.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(f.Name)), []byte(noisy), 0o600))
			}
			d := concluded(t, dir)
			for _, f := range d.Findings {
				expect.That(t, f.Severity.Rank() > rules.Medium.Rank(), "%s: a false alarm: %s: %s", file, f.Rule, f.Message)
			}
		})
	}
}
