package message

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/golden"
)

// TestGoldenArchive holds that messages.zip, which is part of the program, has the files of
// the catalogue. Run make update after a change of a row.
func TestGoldenArchive(t *testing.T) {
	names, err := filepath.Glob("*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no catalogue: %v", err)
	}
	files := make(map[string][]byte, len(names))
	for _, name := range names {
		if files[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	golden.Archive(t, "messages.zip", files)
}

// TestCatalogue holds that each row is found by its own examples, and by no
// row before it.
func TestCatalogue(t *testing.T) {
	rows, err := readStatements(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for _, pattern := range []string{row.Like, row.Unlike} {
			if _, err := regexp.Compile(pattern); err != nil {
				t.Fatalf("%s: %v", row.ID, err)
			}
		}
	}
	id := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	seen := make(map[string]bool)
	for _, row := range Statements() {
		if !id.MatchString(row.ID) || seen[row.ID] {
			t.Errorf("%s: the id is malformed or stands twice", row.ID)
		}
		seen[row.ID] = true
		for _, example := range row.Examples {
			i := slices.IndexFunc(Statements(), func(s *Statement) bool {
				_, ok := s.Match(example)
				return ok && slices.ContainsFunc(s.Anchors, func(a string) bool { return strings.Contains(example, a) })
			})
			switch {
			case i < 0:
				t.Errorf("%s: no row matches its example %q", row.ID, example)
			case Statements()[i].ID != row.ID:
				t.Errorf("%s: its example %q is taken by %s", row.ID, example, Statements()[i].ID)
			}
		}
	}
}
