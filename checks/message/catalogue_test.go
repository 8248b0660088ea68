package message

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestCatalogue checks that each row is found by its own examples, and by no row before it.
func TestCatalogue(t *testing.T) {
	rows := expect.Value(readStatements(os.DirFS(".")))(t)
	for _, row := range rows {
		for _, pattern := range []string{row.Like, row.Unlike} {
			_, err := regexp.Compile(pattern)
			expect.Must(t, err == nil, "%s: %v", row.ID, err)
		}
	}
	id := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	seen := make(map[string]bool)
	for _, row := range Statements() {
		expect.That(t, id.MatchString(row.ID) && !seen[row.ID], "%s: the id is malformed or stands twice", row.ID)
		seen[row.ID] = true
		for _, example := range row.Examples {
			i := slices.IndexFunc(Statements(), func(s *Statement) bool {
				_, ok := s.Match(example)
				return ok && slices.ContainsFunc(s.Anchors, func(a string) bool { return strings.Contains(example, a) })
			})
			expect.Must(t, i >= 0, "%s: no row matches its example %q", row.ID, example)
			expect.Equal(t, row.ID, Statements()[i].ID, "%s: its example %q is taken by", row.ID, example)
		}
	}
}

// TestNormalForm checks that a blank more or less before a colon makes no other message of an example.
func TestNormalForm(t *testing.T) {
	for _, row := range Statements() {
		for _, example := range row.Examples {
			for _, form := range []string{normal(example), strings.ReplaceAll(normal(example), colon, blankColon)} {
				got, _, ok := Of(form)
				if strings.Contains(row.Like+row.Unlike, `::`) || strings.HasPrefix(row.Like, "^") { // Who wrote a line is told by colons as well.
					continue
				}
				expect.That(t, ok && got.ID == row.ID, "%s: %q is of %+v", row.ID, form, got)
			}
		}
	}
}
