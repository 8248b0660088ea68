package data

import (
	"regexp"
	"testing"
)

// TestJobNeeds checks that each row says when, what and why, and that no row sets what another
// one under the same conditions does.
func TestJobNeeds(t *testing.T) {
	table := JobNeeds()
	checkSources(t, "job_needs", table.Sources...)
	sentence := regexp.MustCompile(`^[A-Z{].*\.$`)
	for i, n := range table.Needs {
		if len(n.When) == 0 || (n.Remedy == "") == (len(n.Environment) == 0) || !sentence.MatchString(n.Reason) {
			t.Errorf("row %d: when %v, remedy %q, environment %v, reason %q", i+1, n.When, n.Remedy, n.Environment, n.Reason)
		}
	}
}
