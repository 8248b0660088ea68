package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestGoldenVerdicts compares what is said of every case, host, text, launch file and log of a fault with
// fixtures/verdicts.txt, so that a change shows all that it changes: for each input its verdict and exit code, digests
// of its facts and of the report as text, Markdown and HTML, and then each finding. GPUDOCTOR_VERDICTS is a regular expression:
// only inputs of which the file says something that it matches are judged and compared.
func TestGoldenVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing in it runs side by side")
	}
	t.Parallel()
	cases := expect.Value(fixtures.Cases(os.DirFS("../../fixtures")))(t)
	recorded := expect.Value(os.ReadFile("../../fixtures/verdicts.txt"))(t)
	want := map[string]string{} // Of each input, what is recorded.
	for _, block := range regexp.MustCompile(`(?m)^\w.*\n(?: .*\n)*`).FindAllString(string(recorded), -1) {
		name, _, _ := strings.Cut(block, ": ")
		want[name] = block
	}
	only := regexp.MustCompile(os.Getenv("GPUDOCTOR_VERDICTS"))
	var b, wanted bytes.Buffer
	leftOut := func(name string) bool {
		if only.String() != "" && !only.MatchString(want[name]) {
			return true
		}
		wanted.WriteString(want[name])
		return false
	}
	add := func(kind, name string, d *report.Document) {
		raw := expect.Value(json.Marshal(d.Facts()))(t)
		fmt.Fprintf(&b, "%s %s: %s %d, facts %s", kind, name, d.Verdict.State, d.Verdict.ExitCode, digestOf(raw))
		d.Timing, d.RulesDigest = report.Timing{}, "" // They differ from run to run, and with every comment in a rule.
		for _, format := range []string{"text", "markdown", "html"} {
			fmt.Fprintf(&b, ", %s %s", format, digestOf([]byte(writtenAs(format, d, report.Style{}))))
		}
		b.WriteByte('\n')
		for _, f := range d.Findings {
			fmt.Fprintf(&b, "  %s %s: %s %s, %s\n", f.Rule, f.Subject, f.Severity, f.Confidence, strings.Join(f.Remedies, " "))
		}
	}
	for _, c := range cases {
		if leftOut("case " + c.Name) {
			continue
		}
		s := selection{profile: rules.Profile(c.Want.Profile), failOn: report.Threshold(rules.High)}
		add("case", c.Name, judge(t, learnt(t), c.Facts, s))
	}
	inputs := func(kind, pattern string, profile rules.Profile) {
		files, err := filepath.Glob(pattern)
		expect.Must(t, err == nil && len(files) > 0, "no %s: %v", kind, err)
		for _, file := range files {
			if leftOut(kind + " " + filepath.Base(file)) {
				continue
			}
			d, err := diagnose(t.Context(), requestFor(profile, file))
			expect.Must(t, err == nil, "%s: %v", file, err)
			if kind == "text" {
				asItSays(t, file, d)
			}
			add(kind, filepath.Base(file), d)
		}
	}
	inputs("host", "../../fixtures/hosts/*.txtar", rules.Training)
	inputs("text", "../../fixtures/texts/*.txtar", rules.Training)
	inputs("launch", "../../fixtures/launches/*.txtar", rules.Launch)
	inputs("fault", "../../fixtures/faults/logs/*", rules.Training)
	if only.String() != "" {
		diff := cmp.Diff(strings.Split(wanted.String(), "\n"), strings.Split(b.String(), "\n"))
		expect.That(t, diff == "" && b.Len() != 0, "%d bytes, (-want +got):\n%s", b.Len(), diff)
		return
	}
	expect.Golden(t, "../../fixtures/verdicts.txt", b.Bytes())
}

// asItSays checks that a case of fixtures/texts is diagnosed as its comment says: "want: RULE SEVERITY CONFIDENCE" is the
// first finding, "first: REMEDY" the first advice, and "healthy" that nothing of medium or above is found.
func asItSays(t *testing.T, file string, d *report.Document) {
	t.Helper()
	got, first, told := "", "", 0
	if len(d.Findings) > 0 {
		f := d.Findings[0]
		got = fmt.Sprintf("%s %s %s", f.Rule, f.Severity, f.Confidence)
	}
	if len(d.Advice) > 0 {
		first = d.Advice[0].Remedy
	}
	for line := range strings.Lines(string(expect.Value(txtar.ParseFile(file))(t).Comment)) {
		line = strings.TrimSpace(line)
		if want, ok := strings.CutPrefix(line, "want: "); ok {
			told++
			expect.Equal(t, want, got, "%s: the first finding", file)
		} else if want, ok := strings.CutPrefix(line, "first: "); ok {
			expect.Equal(t, want, first, "%s: the first advice", file)
		} else if line == "healthy" {
			told++
			expect.That(t, got == "" || d.Findings[0].Severity.Rank() > rules.Medium.Rank(), "%s: a false alarm: %s", file, got)
		}
	}
	expect.That(t, told != 0, "%s: the comment says neither what is wanted nor that all is well", file)
}

// digestOf is the beginning of a digest.
func digestOf(raw []byte) string { return fmt.Sprintf("%x", sha256.Sum256(raw))[:12] }

// TestTreesJudged checks that the copy of a machine's files is never healthy, and that no rule finds anything in it
// which it does not find in the recording, unless the recording has what explains it, such as the probe.
func TestTreesJudged(t *testing.T) {
	slowWithRace(t)
	judge := func(from string) *report.Document {
		t.Helper()
		d := expect.Value(diagnose(t.Context(), requestFor(rules.Training, from)))(t)
		return d
	}
	for _, name := range fixtures.Examples() {
		recording := expect.Value(fixtures.Example(name))(t)
		entries, _ := checktest.SplitRecording(t, recording)
		file := filepath.Join(t.TempDir(), name+".tgz")
		expect.NoError(t, os.WriteFile(file, checktest.Gzip(checktest.Tar(t, name, entries)), 0o600))
		whole, copied := judge("example:"+name), judge(file)
		expect.That(t, copied.Verdict.State != report.Healthy && !copied.TextsOnly(), "%s: the verdict on its files is %s, texts only: %t", name, copied.Verdict.State, copied.TextsOnly())
		found := map[string]bool{}
		for _, f := range whole.Findings {
			found[f.Rule] = true
		}
		for _, f := range copied.Findings {
			expect.That(t, found[f.Rule], "%s: only its files show %s: %s", name, f.Rule, f.Message)
		}
	}
}
