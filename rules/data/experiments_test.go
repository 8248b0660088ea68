package data

import (
	"regexp"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestExperiments checks that each switch says which values turn it off and what is at fault
// then, that words name switches, and that each pattern is right.
func TestExperiments(t *testing.T) {
	table := Experiments()
	checkSources(t, "experiments", table.Sources...)
	names := map[string]int{}
	for _, row := range table.Switches {
		checkSources(t, row.Words, row.Source)
		_, err := regexp.Compile(row.Off)
		expect.That(t, err == nil && row.Off != "" && len(row.Names) != 0 && row.Words != "" && len(row.Causes) != 0, "%v: something is missing (%v)", row.Names, err)
		expect.That(t, !regexp.MustCompile(row.Off).MatchString(""), "%v is off where it is not set", row.Names)
		expect.That(t, row.When == "" || row.When == "roce" || row.When == "infiniband", "%v: there is no network %q", row.Names, row.When)
		for _, name := range row.Names {
			if names[name]++; names[name] > 2 {
				t.Errorf("%s stands in a row that is never reached", name)
			}
		}
		checkCauses(t, row.Words, row.Causes)
	}
	for _, w := range table.Words {
		_, err := regexp.Compile(w.Like)
		expect.That(t, err == nil && names[w.Name] != 0, "%q names no switch (%v)", w.Like, err)
		row := table.Switches[slices.IndexFunc(table.Switches, func(s Switch) bool { return slices.Contains(s.Names, w.Name) })]
		expect.That(t, w.Value == "" || regexp.MustCompile(row.Off).MatchString(w.Value), "%q: with %q %s is not off", w.Like, w.Value, w.Name)
	}
	expect.That(t, table.Faster > 1, "a run is slow next to one that is %v times as fast", table.Faster)
}
