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
	// What a row that is no complaint says by itself raises no alarm: only a grade may, where other facts show a failure.
	severities := map[string]string{"cause": "", "category": "", "consequence": "", "warning": "info low medium", "setting": "info low"}
	for _, row := range KernelForms() {
		expect.That(t, row.Kind != "", "%s: the kind is missing", row.ID)
		checkRow(t, &row.Row)
	}
	for _, row := range Statements() {
		checkRow(t, &row.Row)
		most, isRole := severities[row.Role]
		expect.That(t, row.Program != "" && isRole, "%s: program is missing, or the role %q is unknown", row.ID, row.Role)
		expect.That(t, row.Finding == nil || most == "" || slices.Contains(strings.Fields(most), row.Finding.Severity), "%s: a %s has a finding that is not %s", row.ID, row.Role, most)
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

// checkRow checks of a row what a machine can find wrong.
func checkRow(t *testing.T, row *Row) {
	t.Helper()
	expect.That(t, row.Says != "" && row.Source != "" && len(row.Anchors) > 0 && len(row.Examples) > 0, "%s: says, source, anchors or examples are missing", row.ID)
	expect.That(t, !slices.ContainsFunc(row.Anchors, func(a string) bool { return len(a) < 4 }), "%s: an anchor is in too many lines", row.ID)
	v := row.Finding
	if v == nil {
		return
	}
	expect.That(t, v.Rule != "" && v.Subject.Value != "" && v.Text != "" && len(v.Subject.More) == 0, "%s: the finding has no rule, text or single subject", row.ID)
	expect.That(t, !slices.Contains(v.Unless, row.ID), "%s: the finding excludes its own message", row.ID)
	texts := []string{v.Text, v.Subject.Value, v.Affects}
	for _, c := range v.Grades {
		expect.That(t, len(c.When)+len(c.Unless) > 0, "%s: a grade of the finding has no conditions", row.ID)
		texts = append(texts, c.Text)
	}
	for _, text := range texts {
		expect.That(t, !strings.ContainsAny(placeholder.ReplaceAllString(text, ""), "{}"), "%s: the text has a brace that is not part of a {field}: %q", row.ID, text)
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
