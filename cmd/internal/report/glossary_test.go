package report

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestIn checks, for each term, where it is used and where it is part of something else.
func TestIn(t *testing.T) {
	for _, term := range glossary {
		for text, want := range map[string]bool{
			term.Name:                        true,
			"The " + term.Name + ".":         true,
			"(" + term.Name + ")":            true,
			"two " + term.Name + "s":         true,
			"a" + term.Name:                  false,
			term.Name + "es":                 false,
			"NCCL_" + term.Name + "_X=1":     false,
			"/dev/" + term.Name:              false,
			term.Name + "x and " + term.Name: true,
			"":                               false,
		} {
			expect.Equal(t, want, slices.Contains(TermsIn(text), term), "%s in %q", term.Name, text)
		}
	}
}

// TestTerms checks that each term is explained once, briefly, and in the glossary of the
// documents.
func TestTerms(t *testing.T) {
	document := expect.Value(os.ReadFile("../../../docs/glossary.md"))(t)
	seen := map[string]bool{}
	for _, term := range glossary {
		words := len(strings.Fields(term.Means))
		expect.That(t, words >= 3 && words <= 17, "%s: %d words", term.Name, words)
		expect.That(t, !seen[term.Name], "%s twice", term.Name)
		seen[term.Name] = true
		listed := slices.ContainsFunc(strings.Split(string(document), "\n"), func(line string) bool {
			name, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			expect.That(t, !row || name != term.Name || line == "| "+name+" | "+term.Means+" |", "docs/glossary.md explains %s in other words", name)
			return row && usesTerm(name, term.Name)
		})
		expect.That(t, listed, "docs/glossary.md does not list %s", term.Name)
	}
}
