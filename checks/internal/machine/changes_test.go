package machine

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the list of words that redacting changes")

// fixtureTexts are all texts of fixtures/texts, by file and member.
func fixtureTexts(tb testing.TB) map[string]string {
	tb.Helper()
	files, err := filepath.Glob("../../../fixtures/texts/*.txtar")
	if err != nil || len(files) == 0 {
		tb.Fatal(files, err)
	}
	all := make(map[string]string)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range txtar.Parse(raw).Files {
			all[strings.TrimSuffix(filepath.Base(file), ".txtar")+":"+f.Name] = string(f.Data)
		}
	}
	return all
}

// TestRedactChanges lists every word of the repository's texts that redacting
// changes, with what becomes of it. A word on the list that is neither a name nor
// a secret is a fault: evidence is spoilt.
func TestRedactChanges(t *testing.T) {
	texts := fixtureTexts(t)
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := texts[name]
		r := NewRedactor()
		r.Study(text)
		if changes := changedWords(text, r.Text(text)); len(changes) > 0 {
			fmt.Fprintf(&list, "%s\n  %s\n", name, strings.Join(changes, "\n  "))
		}
		if got := NewSecretsRedactor().Text(text); got != text {
			fmt.Fprintf(&list, "%s, secrets\n  %s\n", name, strings.Join(changedWords(text, got), "\n  "))
		}
	}
	file := filepath.Join("testdata", "redact-changes.golden")
	if *update {
		if err := os.WriteFile(file, []byte(list.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), list.String()); diff != "" {
		t.Errorf("other words are replaced than before (-before +after); -update writes the list:\n%s", diff)
	}
}

// changedWords returns what differs between two texts of equal lines, word by
// word, each change once.
func changedWords(from, to string) []string {
	word := regexp.MustCompile(`\S+`)
	var all []string
	a, b := strings.Split(from, "\n"), strings.Split(to, "\n")
	if len(a) != len(b) {
		return []string{fmt.Sprintf("%d lines become %d", len(a), len(b))}
	}
	for i := range a {
		was, is := word.FindAllString(a[i], -1), word.FindAllString(b[i], -1)
		if len(was) != len(is) {
			if a[i] != b[i] {
				all = append(all, a[i]+" -> "+b[i])
			}
			continue
		}
		for j := range was {
			if was[j] != is[j] {
				all = append(all, was[j]+" -> "+is[j])
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
