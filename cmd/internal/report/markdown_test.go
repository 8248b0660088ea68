package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/gfmtest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// markdownOf is a report in Markdown, which has no fault.
func markdownOf(t *testing.T, name string, d *Document) string {
	t.Helper()
	var b bytes.Buffer
	writeMarkdown(&b, d, Style{})
	for _, fault := range gfmtest.Faults(b.Bytes()) {
		t.Errorf("%s: %s", name, fault)
	}
	expect.That(t, b.Len() <= MaxMarkdown, "%s has %d bytes", name, b.Len())
	return b.String()
}

// TestMarkdownIsValid checks that every sample is GitHub's Markdown that begins with a summary of five lines.
func TestMarkdownIsValid(t *testing.T) {
	for name, d := range samples() {
		lines := strings.Split(markdownOf(t, name, d), "\n")
		for i, label := range []string{"Machine", "Verdict", "Cause", "Do now", "Do next"} {
			if !strings.HasPrefix(lines[2+i], "- **"+label+":** ") {
				t.Errorf("%s: line %d of the summary is %q", name, i+1, lines[2+i])
			}
		}
		expect.Equal(t, "", lines[7], "%s: the summary goes on with", name)
	}
}

// TestFaultsAreSeen checks that the check of Markdown sees what it is for.
func TestFaultsAreSeen(t *testing.T) {
	for _, source := range []string{
		"<script>alert(1)</script>\n", "a <b>c</b>\n", "<details><summary>x</summary>\n\na\n", "a\n\n</details>\n",
		"| a | b |\n| --- | --- |\n| c |\n", "| a | b |\n| --- | --- |\n| `c|d` | e |\n", "[a](b)\n", "![a](b)\n", "https://evil.example\n",
		"```sh\na\n", "<details><summary>a</summary>\n\n<details><summary>b</summary>\n\n</details>\n\n</details>\n",
	} {
		expect.That(t, len(gfmtest.Faults([]byte(source))) > 0, "nothing is wrong with %q", source)
	}
	expect.Len(t, 0, gfmtest.Faults([]byte("<details><summary>Evidence: 2 facts</summary>\n\n| a |\n| --- |\n| `b\\|c` |\n\n</details>\n")), "faults")
}

// saying is a report in which every text from the machine is the same.
func saying(s string, findings, evidence int) *Document {
	in := acs()
	in.Facts.Host.Hostname, in.Facts.Host.Distribution = s, s
	f := in.Verdict.Findings[0]
	f.Title, f.Subject, f.Message = s, s, s
	f.Evidence = nil
	for i := range evidence {
		f.Evidence = append(f.Evidence, rules.Evidence{Fact: fmt.Sprint(s, i), Value: s, Source: s})
	}
	f.Steps = []rules.Step{{Look: s, Command: s}}
	f.Candidates = []rules.Candidate{{Cause: s, Title: s, For: s, Against: s, Command: s, Shows: s}}
	in.Verdict.Findings = nil
	for i := range findings {
		next := f
		next.Rule, next.Subject = fmt.Sprintf("rule-%d", i), s
		if i%5 == 4 {
			next.Severity = rules.Low
		}
		in.Verdict.Findings = append(in.Verdict.Findings, next)
	}
	for i := range in.Advice {
		a := &in.Advice[i]
		a.Title, a.Cost, a.Caution, a.Undo = s, s, s, s
		a.Apply.Commands = []string{s, s}
		for j := range findings {
			a.Cures = append(a.Cures, in.Advice[0].Cures[0])
			a.Cures[len(a.Cures)-1].Rule, a.Cures[len(a.Cures)-1].Subject = fmt.Sprintf("rule-%d", j), s
		}
	}
	in.Facts.Unknown = []facts.Unknown{{Section: "pci", Fact: s, Reason: s, Hint: s}}
	in.Verdict.Skipped = []rules.Skipped{{Rule: "acs-redirect", Missing: []rules.Missing{{Fact: s, Words: s}}}}
	in.Facts.Texts = []facts.Text{{Name: s, Lines: 3}}
	in.Sources = []string{s}
	return New(withRules(in))
}

// TestMarkdownIsShort checks that a report is never longer than a ticket may be, whatever
// it holds, that a long one says what was left out, and that evidence goes first.
func TestMarkdownIsShort(t *testing.T) {
	for _, s := range []string{"x", "@", "long words of a log ", "|`\\|", "<&>*_[]", "€"} {
		for _, n := range []int{1, 400, 3000} {
			for _, findings := range []int{1, 7, 120} {
				text := markdownOf(t, fmt.Sprintf("%d times %q in %d findings", n, s, findings), saying(strings.Repeat(s, n), findings, 12))
				expect.That(t, strings.Contains(text, "\n### ") == (!strings.Contains(text, "all but the summary")), "%d times %q in %d findings: no finding is told, and the report does not say so", n, s, findings)
				folded := strings.Contains(text, "<summary>Evidence")
				expect.That(t, folded || strings.Contains(text, "Shortened to fit the limit"), "%d times %q in %d findings: the evidence is left out, and the report does not say so", n, s, findings)
			}
		}
	}
	for _, e := range extents[:3] {
		expect.That(t, e.details && e.findings == extents[0].findings, "something else than evidence is left out first")
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"</details>", "a|b\\|c`d``", "- - 1. x", "# h\n> q\n    code", "<!-- x", "&lt;b&gt; www.a.example a@b.example", "```\n~~~", "\\", "\u2028\x1b[2J", "[a]: b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { markdownOf(t, fmt.Sprintf("%q", s), saying(s, 3, 3)) })
}
