package rules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/evidence"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// factsOfLine are the facts of a log of one line.
func factsOfLine(t *testing.T, line string) *facts.Facts {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.log")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := evidence.Read(t.Context(), []string{file}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return read.Facts
}

// TestVerdicts holds, for every example of every row with a verdict, that a log with
// that line has the finding of the verdict: of a rule that exists, with a severity and
// a confidence, remedies that the rule names, the line as evidence, and no gap in its
// text.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	tried := 0
	for _, row := range message.Statements() {
		v := row.Verdict
		if v == nil {
			continue
		}
		rule, ok := set.Rule(v.Rule)
		if !ok {
			t.Errorf("%s: the verdict's rule %s does not exist", row.ID, v.Rule)
			continue
		}
		for _, remedy := range v.Remedies {
			if !slices.Contains(rule.Remedies, remedy) {
				t.Errorf("%s: the rule %s does not name the remedy %s", row.ID, v.Rule, remedy)
			}
		}
		for _, other := range v.Unless {
			if !slices.ContainsFunc(message.Statements(), func(s *message.Statement) bool { return s.ID == other }) {
				t.Errorf("%s: unless %s, which is no row", row.ID, other)
			}
		}
		for _, example := range row.Examples {
			tried++
			f := factsOfLine(t, example)
			verdict, err := set.Evaluate(t.Context(), f, Options{Only: []string{v.Rule}})
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(verdict.Findings, func(f Finding) bool {
				return f.Rule == v.Rule && f.Subject == v.Subject && slices.ContainsFunc(f.Evidence, func(e Evidence) bool { return e.Fact == "logs.messages["+row.ID+"]" })
			})
			if at < 0 {
				t.Errorf("%s: %q gives no finding of %s: %v", row.ID, example, v.Rule, verdict.Findings)
				continue
			}
			got := verdict.Findings[at]
			if strings.ContainsAny(strings.ReplaceAll(got.Message, f.Logs.Messages[0].Text, ""), "{}") || strings.Contains(got.Message, message.UnknownWords) {
				t.Errorf("%s: the text has a gap: %s", row.ID, got.Message)
			}
			if got.Severity.Rank() == len(severities) || got.Confidence.Rank() == len(confidences) || got.Order == nil || len(got.Remedies) == 0 {
				t.Errorf("%s: severity %q, confidence %q, order %v, remedies %q", row.ID, got.Severity, got.Confidence, got.Order, got.Remedies)
			}
		}
	}
	if tried == 0 {
		t.Error("no row has a verdict")
	}
}

// TestToldUnless holds that a verdict gives way to each message that says more, and
// that the first of several messages of a row is told.
func TestToldUnless(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	gaveWay := 0
	for id, v := range message.Verdicts() {
		said := func(ids ...string) []Finding {
			logs := &facts.LogFacts{}
			for i, id := range ids {
				logs.Messages = append(logs.Messages, facts.Message{ID: id, Text: "it said so", Source: "a", Line: 9 - i, Order: 9 - i})
			}
			return set.told(logs)[v.Rule]
		}
		if f := said(id, id); len(f) != 1 || *f[0].Order != 8 || f[0].Evidence[0].Source != "a:8" {
			t.Errorf("%s, twice: %v", id, f)
		}
		for _, other := range v.Unless {
			gaveWay++
			if f := said(id, other); slices.ContainsFunc(f, func(f Finding) bool { return f.Evidence[0].Fact == "logs.messages["+id+"]" }) {
				t.Errorf("%s is told beside %s", id, other)
			}
		}
	}
	if gaveWay == 0 {
		t.Error("no verdict gives way to another message")
	}
}
