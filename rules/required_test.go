package rules

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// TestGoldenRequired checks that docs/gate.md shows the table of what healthy requires.
func TestGoldenRequired(t *testing.T) {
	path := filepath.Join("..", "docs", "gate.md")
	page := expect.Value(os.ReadFile(path))(t)
	const from, to = "<!-- required -->\n", "<!-- end of required -->"
	head, rest, begins := strings.Cut(string(page), from)
	_, tail, ends := strings.Cut(rest, to)
	expect.Must(t, begins && ends, "the marks of the table are missing")
	var b strings.Builder
	b.WriteString("| fact | must be | profiles | if | because |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range data.Required().Required {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Fact, cmp.Or(requirements[r.Holds].is, "known"), strings.Join(r.Profiles, ", "), requirements[r.If].is, r.Reason)
	}
	expect.Golden(t, path, []byte(head+from+b.String()+to+tail))
}

// TestRequired checks that each row names a fact, conditions that exist, and profiles.
func TestRequired(t *testing.T) {
	used := map[string]bool{"": true}
	for _, r := range data.Required().Required {
		expect.That(t, inFacts(r.Fact), "%s is no fact", r.Fact)
		for _, name := range []string{r.Holds, r.If} {
			c := requirements[name]
			expect.That(t, name == "" || c.holds != nil && c.is != "", "%s: no condition %q", r.Fact, name)
			used[name] = true
		}
		expect.That(t, len(r.Profiles) > 0 && r.Reason != "", "%s: no profile, or no reason", r.Fact)
		for _, p := range r.Profiles {
			expect.That(t, slices.Contains([]Profile{Training, Image, Launch}, Profile(p)), "%s: no profile %q", r.Fact, p)
		}
	}
	for name := range requirements {
		expect.That(t, used[name], "no row uses %s", name)
	}
}

// inFacts reports whether a path exists in the facts.
func inFacts(path string) bool {
	_, ok := schemaAt(readSchema(), keysOf(path))
	return ok
}
