package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// stoppedRules are the bodies of two rules that would never end.
var stoppedRules = map[string]string{
	"endless":     "some i in numbers.range(1, 100000)\n\tsome j in numbers.range(1, 100000)\n\ti * j == -1",
	"memory-bomb": "x := [[i, j, k] | some i in numbers.range(1, 1000); some j in numbers.range(1, 1000); some k in numbers.range(1, 1000)]\n\tcount(x) == 1",
}

// TestStoppedRules checks that a rule which is stopped is reported in every format, that
// what others find is reported, and that nothing is called healthy.
func TestStoppedRules(t *testing.T) {
	slowWithRace(t)
	memory := ruleMemory
	ruleLimit, ruleMemory = 200*time.Millisecond, 0
	defer func() { ruleLimit, ruleMemory = 0, memory }()
	for _, tt := range []struct {
		name   string
		honest string // The body of a third rule.
		args   []string
		code   int
		state  report.State
		found  []string
	}{
		{"beside a finding", "true", nil, 1, report.Findings, []string{"honest"}},
		{"alone", "false", nil, 0, report.Inconclusive, nil},
		{"alone and strict", "false", []string{"--strict", "--only", "honest,memory-bomb"}, 3, report.Inconclusive, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			writeRule(t, dir, "honest", tt.honest)
			for id, body := range stoppedRules {
				writeRule(t, dir, id, body)
			}
			args := []string{
				"check", "--from", filepath.Join("..", "..", "fixtures", "hosts", "model-8x-pcie.txtar"), "--policy", dir,
				"--format", "text", "-o", filepath.Join(dir, "r.json"), "-o", filepath.Join(dir, "r.md"),
			}
			code, stdout, stderr := inProcess(append(args, tt.args...)...)
			expect.That(t, code == tt.code && stderr == "", "exit code %d and %q, want %d", code, stderr, tt.code)
			document := decoded[report.Document](t, expect.Value(os.ReadFile(filepath.Join(dir, "r.json")))(t))
			expect.That(t, document.Verdict.State == tt.state && document.Verdict.ExitCode == tt.code, "%+v", document.Verdict)
			var found []string
			for _, f := range document.Findings {
				found = append(found, f.Rule)
			}
			expect.That(t, slices.Equal(found, tt.found), "found %v, want %v", found, tt.found)
			markdown := expect.Value(os.ReadFile(filepath.Join(dir, "r.md")))(t)
			for id := range stoppedRules {
				if len(tt.args) > 0 && id == "endless" {
					continue
				}
				i := slices.IndexFunc(document.Skipped, func(s report.Skipped) bool { return s.Rule == id })
				if i < 0 || !document.Skipped[i].Fault || !strings.HasPrefix(document.Skipped[i].Missing[0], "the rule was stopped: it ") {
					t.Errorf("%s is not skipped with its reason: %+v", id, document.Skipped)
					continue
				}
				toldInOneLine(t, "text", stdout, id, document.Skipped[i].Missing[0])
				toldInOneLine(t, "markdown", string(markdown), id, document.Skipped[i].Missing[0])
			}
		})
	}
}

// writeRule writes a rule that finds something where its body holds.
func writeRule(t *testing.T, dir, id, body string) {
	t.Helper()
	pkg := strings.ReplaceAll(id, "-", "_")
	text := "# METADATA\n# title: T\n# description: D\n# custom:\n#   severity: high\n#   confidence: likely\n#   remedies: [reboot]\n" +
		"package gpudoctor.rules." + pkg + "\n\n" +
		`findings contains {"subject": "host", "message": "m", "evidence": [{"fact": "f", "value": 1, "source": "s"}]} if {` + "\n\t" + body + "\n}\n"
	expect.NoError(t, os.WriteFile(filepath.Join(dir, pkg+".rego"), []byte(text), 0o600))
}

// toldInOneLine checks that a rule and its reason stand together, whatever breaks the lines of a terminal. Rules
// with the same reason share a line.
func toldInOneLine(t *testing.T, format, text, id, reason string) {
	t.Helper()
	flat := strings.Join(strings.Fields(strings.ReplaceAll(text, "`", "")), " ")
	told := regexp.MustCompile(`(^|[ ,])` + id + `(, [a-z0-9-]+)* (\(` + regexp.QuoteMeta(reason) + `\)|\| ` + regexp.QuoteMeta(reason) + ` \|)`)
	expect.That(t, told.MatchString(flat), "%s does not say %q of %s:\n%s", format, reason, id, text)
}
