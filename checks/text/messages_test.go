package text_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
)

// TestStatementsNeed checks that no row of the catalogue misses a line because it lacks a
// literal: the lines are those of the rows' examples and of the repository's texts.
func TestStatementsNeed(t *testing.T) {
	lines := make(map[string]bool)
	for _, text := range texttest.EveryText(t) {
		for line := range strings.SplitSeq(text, "\n") {
			lines[line] = true
		}
	}
	for _, row := range message.Statements() {
		like, unlike := regexp.MustCompile(withoutBlank(row.Like)), regexp.MustCompile(withoutBlank(row.Unlike))
		for line := range lines {
			if !slices.ContainsFunc(row.Anchors, func(a string) bool { return strings.Contains(line, a) }) {
				continue
			}
			plain := withoutBlank(line)
			want := like.MatchString(plain) && (row.Unlike == "" || !unlike.MatchString(plain))
			_, got := row.Row.Match(line)
			expect.That(t, got == want, "%s: %q: got %t, want %t", row.ID, line, got, want)
		}
	}
}

// withoutBlank is a line or a form without a blank before a colon, as they are compared.
func withoutBlank(text string) string { return strings.ReplaceAll(text, " : ", ": ") }
