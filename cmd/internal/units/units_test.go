package units

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestSplit checks that each launch is in one unit, with those of the same text and number only; that the nodes of
// Slurm are a unit and count for batch jobs; and that a unit has the variables of its own launches.
func TestSplit(t *testing.T) {
	variable := func(value string) map[string]string { return map[string]string{"NCCL_DEBUG": value, "HOME": "/root"} }
	f := &facts.Facts{
		Texts: []facts.Text{{Name: "a"}, {Name: "b"}, {Name: "slurm.conf"}},
		Env:   &facts.EnvFacts{Variables: []facts.Variable{{Name: "NCCL_DEBUG", Value: "of any", Effective: true}}},
		Launches: []facts.Launch{
			{Kind: "kubernetes", Source: "a", Unit: 1, Line: 7, Object: "Pod/a/x", Variables: variable("INFO")},
			{Kind: "kubernetes", Source: "a", Unit: 2, Line: 20, Object: "Pod/a/y"},
			{Kind: "slurm-node", Source: "slurm.conf", Line: 1, Name: "node1"},
			{Kind: "slurm", Source: "b", Unit: 1, Line: 9},
			{Kind: "shell", Source: "b", Unit: 1, Line: 2, Variables: variable("WARN")},
			{Kind: "torchrun", Source: "b", Unit: 1, Line: 11, Variables: variable("TRACE")},
			{Kind: "slurm-node", Source: "gres.conf", Line: 1, Name: "node1"},
		},
	}
	type unit struct {
		object   string
		line     int
		kinds    []string
		settings []string
	}
	want := []unit{
		{"a Pod/a/x", 7, []string{"kubernetes"}, []string{"INFO true"}},
		{"a Pod/a/y", 20, []string{"kubernetes"}, nil},
		{"slurm.conf", 1, []string{"slurm-node", "slurm-node"}, nil},
		{"b", 2, []string{"slurm", "shell", "torchrun", "slurm-node", "slurm-node"}, []string{"WARN false", "TRACE false"}},
	}
	got := Split(f)
	expect.Must(t, len(got) == len(want), "%d units, want %d", len(got), len(want))
	for i, u := range got {
		w := want[i]
		kinds := expect.Map(u.Facts.Launches, func(l facts.Launch) string { return l.Kind })
		settings := expect.Map(u.Facts.Env.Variables, func(v facts.Variable) string { return fmt.Sprint(v.Value, " ", v.Effective) })
		expect.That(t, u.String() == w.object && u.Line == w.line && slices.Equal(kinds, w.kinds) && slices.Equal(settings, w.settings), "unit %d is %s at line %d: %v, %v; want %+v", i, u.Object, u.Line, kinds, settings, w)
		expect.That(t, len(u.Facts.Texts) <= 1, "%s has %d texts", u.Object, len(u.Facts.Texts))
	}
}
