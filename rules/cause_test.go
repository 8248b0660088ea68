package rules

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/message"
)

// TestCausesAreNamed holds that each example of a row that states a cause, given alone as
// a log, has a finding of a rule that says more than that a job failed; and where the row
// has a verdict that nothing stands in the way of, one of that rule.
func TestCausesAreNamed(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	for i, row := range message.Statements() {
		if testing.Short() && i%64 > 0 {
			continue // The race detector makes each many times as slow.
		}
		if row.Role != "cause" {
			continue
		}
		for _, example := range row.Examples {
			verdict, err := set.Evaluate(t.Context(), factsOfLine(t, row.ID, example), Options{})
			if err != nil {
				t.Fatal(err)
			}
			named := slices.ContainsFunc(verdict.Findings, func(f Finding) bool {
				rule, ok := set.Rule(f.Rule)
				return ok && !rule.LastResort && (row.Verdict == nil || len(row.Verdict.When) > 0 || f.Rule == row.Verdict.Rule)
			})
			if !named {
				t.Errorf("%s states a cause, and %q has no finding that names one", row.ID, example)
			}
		}
	}
}
