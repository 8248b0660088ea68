package rules

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// TestCausesAreNamed checks that each example of a row that states a cause, given alone as a log, has a finding of a
// rule that says more than that a job failed; and where the row has a verdict that nothing stands in the way of, one of
// that rule. By day that is every eighth row, and one of each program and of each rule.
func TestCausesAreNamed(t *testing.T) {
	t.Parallel()
	night.NotShort(t, "nothing in it runs side by side")
	set := compiledSet(t)
	try := night.Every(8)
	for _, row := range message.Statements() {
		if row.Role != "cause" {
			continue
		}
		classes := []string{row.Program}
		if row.Finding != nil {
			classes = append(classes, "rule "+row.Finding.Rule)
		}
		if !try(classes...) {
			continue
		}
		for _, example := range row.Examples {
			verdict := expect.Value(set.Evaluate(t.Context(), factsOfLine(t, row.ID, example), Options{}))(t)
			named := slices.ContainsFunc(verdict.Findings, func(f Finding) bool {
				rule, ok := set.Rule(f.Rule)
				return ok && !rule.LastResort && (row.Finding == nil || len(row.Finding.When) > 0 || f.Rule == row.Finding.Rule)
			})
			expect.That(t, named, "%s states a cause, and %q has no finding that names one", row.ID, example)
		}
	}
}
