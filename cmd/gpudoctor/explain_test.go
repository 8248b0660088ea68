package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/arguments"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/golden"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// TestExplain checks that every id and every word is explained, and in ASCII where that is asked for.
func TestExplain(t *testing.T) {
	known := expect.Value(learn(""))(t)
	names := known.names()
	expect.Must(t, len(names) >= 100, "only %d names", len(names))
	for i, name := range names {
		if night.Few() && i%10 > 0 {
			continue // It enumerates, and nothing in it runs side by side.
		}
		code, stdout, stderr := inProcess("explain", name, "--ascii")
		expect.That(t, code == exitOK && len(stdout) >= 40 && stderr == "", "explain %s ends with %d and writes %q and %q", name, code, stdout, stderr)
		for _, c := range stdout {
			if c != '\n' && (c < ' ' || c > '~') {
				t.Errorf("explain %s --ascii writes %q", name, c)
				break
			}
		}
	}
}

// TestGoldenManual checks the manual page.
func TestGoldenManual(t *testing.T) {
	app := testApp()
	app.Setup()
	golden.File(t, filepath.Join("..", "..", "docs", "gpudoctor.1"), []byte(manualPage(app)))
}

// TestManual checks that the page names every command and every flag, and that mandoc finds no fault in it.
func TestManual(t *testing.T) {
	app := testApp()
	app.Setup()
	page := manualPage(app)
	for _, c := range arguments.Leaves(app.Commands) {
		if c.Name == "help" {
			continue
		}
		_, about, ok := strings.Cut(page, ".Ss "+c.HelpName+"\n")
		about, _, _ = strings.Cut(about, "\n.Ss ")
		expect.That(t, ok, "the page lacks %s", c.HelpName)
		for _, f := range c.Flags {
			if name := " Fl -" + f.Names()[0]; !arguments.Hidden(f) && !strings.Contains(about, name) {
				t.Errorf("%s: the page lacks --%s", c.HelpName, f.Names()[0])
			}
		}
	}
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		night.Lacks(t, "mandoc is not installed")
	}
	lint := exec.Command(mandoc, "-T", "lint", "-W", "style")
	lint.Stdin = strings.NewReader(page)
	out, _ := lint.CombinedOutput() // It fails where it says anything.
	for line := range strings.Lines(string(out)) {
		// That another page is not installed is no fault of this one.
		if !strings.Contains(line, "referenced manual not found") && !strings.Contains(line, "outdated mandoc.db") {
			t.Error(strings.TrimSpace(line))
		}
	}
}

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
