package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestFindTerms(t *testing.T) {
	for _, tt := range []struct {
		words string
		want  []string
	}{
		{"3", []string{"3"}},
		{"exit 3", []string{"3"}},
		{"exit code 3", []string{"3"}},
		{"exit-code 3", []string{"3"}},
		{"exit", []string{"0", "1", "2", "3", "128 and above"}},
		{"exit code", []string{"0", "1", "2", "3", "128 and above"}},
		{"130", []string{"128 and above"}},
		{"exit 143", []string{"128 and above"}},
		{"Critical", []string{"critical"}},
		{"severity", []string{"critical", "high", "medium", "low", "info"}},
		{"verdict", []string{"healthy", "findings", "inconclusive"}},
		{"", nil},
		{"4", nil},
		{"exit 4", nil},
		{"128", nil},
		{"193", nil},
		{"exit 3 4", nil},
		{"acs-redirect", nil},
	} {
		var got []string
		for _, term := range findTerms(strings.Fields(tt.words)) {
			got = append(got, term.Name)
		}
		expect.That(t, slices.Equal(got, tt.want), "Find(%q) = %q, want %q", tt.words, got, tt.want)
	}
}

// TestNames checks that each name is found, and that every severity has one.
func TestTermNames(t *testing.T) {
	for _, name := range termNames() {
		found := findTerms([]string{name})
		expect.That(t, (len(found) == 1 || name == "exit") && len(found) != 0, "Find(%q) finds %d terms", name, len(found))
	}
	for _, severity := range report.Thresholds() {
		expect.That(t, severity == string(report.Never) || slices.Contains(termNames(), severity), "the severity %s is not explained", severity)
	}
}

// TestDocs checks that the table of exit codes in docs/report.md says the same.
func TestTermsInDocs(t *testing.T) {
	raw := expect.Value(os.ReadFile(filepath.Join("..", "..", "docs", "report.md")))(t)
	doc := strings.ReplaceAll(string(raw), "`", "")
	for _, term := range allTerms {
		row := "| " + term.Name + " | " + term.Means + " |"
		expect.That(t, term.Kind != exitCodeTerm || strings.Contains(doc, row), "docs/report.md lacks the row %q", row)
	}
}
