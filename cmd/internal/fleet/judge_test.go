package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// judged is a fleet of twelve nodes that are alike but for what change does to some.
func judged(t *testing.T, change func(i int, n *Node)) *Fleet {
	t.Helper()
	alike := map[string]string{"size": "large", rules.TraitVariables: "NCCL_ALGO", "NCCL_ALGO": "Ring", "subnet of mlx5_0": "10.0.0.0/24", "subnet of mlx5_1": "10.0.1.0/24"}
	for _, row := range data.Fleet().Traits {
		alike[row.Name] = cmp.Or(row.Expected, "A")
	}
	r := &Reading{}
	for i := range 12 {
		n := &Node{Name: fmt.Sprintf("n%02d", i), State: "healthy", Hardware: "8 x H200", Traits: maps.Clone(alike)}
		if change != nil {
			change(i, n)
		}
		r.Nodes = append(r.Nodes, n)
	}
	f := Fold(r, nil, "test")
	expect.NoError(t, f.Judge(t.Context(), expect.Value(rules.Load())(t)))
	return f
}

// TestAlike checks that nodes which are alike have no cause, nor those of which something is not known, nor racks
// with hardware and subnets of their own.
func TestAlike(t *testing.T) {
	for name, change := range map[string]func(int, *Node){
		"alike":   nil,
		"unknown": func(i int, n *Node) { clear(map[bool]map[string]string{true: n.Traits}[i == 7]) },
		"hardware": func(i int, n *Node) {
			n.Hardware = fmt.Sprintf("8 x model %d", i/6)
			n.Traits["processor"], n.Traits["firmware of the GPUs"] = n.Hardware, n.Hardware
		},
		"racks": func(i int, n *Node) {
			n.Traits["subnet of mlx5_0"], n.Traits["subnet of mlx5_1"] = fmt.Sprintf("10.%d.0.0/24", i/4), fmt.Sprintf("10.%d.1.0/24", i/4)
		},
		"addresses": func(i int, n *Node) { n.Traits["subnet of mlx5_0"] = fmt.Sprintf("10.%d.0.0/31", i) },
	} {
		f := judged(t, change)
		expect.That(t, len(f.Causes) == 0 && f.ExitCode == 0 && len(f.Problems) == 0, "%s: %+v, problems %v", name, f.Causes, f.Problems)
	}
}

// TestEachTrait changes each trait on one node in turn, and checks that the node is named, alone and once.
func TestEachTrait(t *testing.T) {
	names := map[string]string{"NCCL_ALGO": "all ranks of a job must", "NCCL_IB_HCA": "may be intended"}
	for _, row := range data.Read[struct{ Traits []struct{ Name, Why string } }]("fleet").Traits {
		names[row.Name] = row.Why
	}
	for name, why := range names {
		f := judged(t, func(i int, n *Node) {
			if i == 7 {
				n.Traits[name] = "B"
			}
		})
		expect.Must(t, len(f.Causes) == 1, "%s: %+v", name, f.Causes)
		c := f.Causes[0]
		expect.NoDiff(t, []string{"n07"}, c.Nodes, "%s", name)
		expect.That(t, strings.HasPrefix(c.Title, name) && strings.Contains(c.Title, "B on 1 (n07)") && strings.Contains(c.Title, why), "%s: %s", name, c.Title)
		expect.Equal(t, c.Severity.Rank() <= rules.High.Rank(), f.ExitCode == 1, "%s: %s and exit code %d", name, c.Severity, f.ExitCode)
	}
}

// TestExpected checks that a node whose clock is not synchronized is named while another's is, also where most are like it.
func TestExpected(t *testing.T) {
	for wrong := range 13 {
		f := judged(t, func(i int, n *Node) {
			if i < wrong {
				n.Traits["clock synchronization"] = "off"
			}
		})
		if wrong == 0 || wrong == 12 {
			expect.Len(t, 0, f.Causes, "%d of 12 are not synchronized", wrong)
			continue
		}
		expect.Must(t, len(f.Causes) == 1 && f.ExitCode == 0, "%d of 12 are not synchronized: exit code %d, %+v", wrong, f.ExitCode, f.Causes)
		expect.That(t, len(f.Causes[0].Nodes) == wrong && f.Causes[0].Nodes[0] == "n00" && f.Causes[0].Severity == rules.Info, "%d of 12: %+v", wrong, f.Causes[0])
	}
}

// TestUnset checks that a variable which a node lacks differs, and what the nodes without it have in common.
func TestUnset(t *testing.T) {
	f := judged(t, func(i int, n *Node) {
		n.Traits["image"] = "old"
		if i%3 == 0 {
			delete(n.Traits, "NCCL_ALGO")
			n.Traits[rules.TraitVariables], n.Traits["image"] = "none", "new"
		}
	})
	expect.Must(t, len(f.Causes) == 1, "%+v", f.Causes)
	expect.That(t, strings.HasPrefix(f.Causes[0].Title, "NCCL_ALGO: Ring on 8, not set on 4 (n00, n03, n06 and 1 more)"), "%s", f.Causes[0].Title)
	expect.Must(t, len(f.Causes[0].Common) > 0, "nothing in common: %+v", f.Causes[0])
	expect.Equal(t, Trait{"image", "new"}, f.Causes[0].Common[0].Traits[0], "in common")
}
