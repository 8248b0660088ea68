package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/arguments"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/golden"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// TestGoldenManual checks the manual page.
func TestGoldenManual(t *testing.T) {
	app := testApp()
	app.Setup()
	golden.File(t, filepath.Join("..", "..", "docs", "gpudoctor.1"), []byte(manualPage(app)))
}

// TestManual checks that the page names every command and every flag, and that mandoc
// finds no fault in it.
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
