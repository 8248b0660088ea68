package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"gonum.org/v1/gonum/stat/combin"
)

// significance is the probability with which one of all the traits that are tried would seem to go with a cause, although
// none does.
const significance = 0.01

// Trait is what nodes have in common: a version, a variable, a part of their names.
type Trait struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Common is what nodes with a cause have and the others lack, beyond chance.
type Common struct {
	// Traits are alike for all nodes of the fleet: nothing distinguishes them.
	Traits []Trait `json:"traits"`
	// With of Affected nodes with the cause have it, and Without of Others that were judged.
	With     int `json:"with"`
	Affected int `json:"affected"`
	Without  int `json:"without"`
	Others   int `json:"others"`
	// P is the probability of as many by chance (Fisher's exact test, one-sided), times the number of
	// traits that were tried.
	P float64 `json:"p"`
}

// group is the nodes that share traits.
type group struct {
	traits []Trait
	nodes  set
}

type set map[int]bool

// groupsOf are the groups of nodes by their traits. Traits of the same nodes are one group; what all nodes share, or only
// one has, tells nothing.
func groupsOf(nodes []*Node) []group {
	byTrait := map[Trait]set{}
	for i, n := range nodes {
		for name, value := range n.Traits {
			t := Trait{name, value}
			if byTrait[t] == nil {
				byTrait[t] = set{}
			}
			byTrait[t][i] = true
		}
	}
	var all []group
	for _, t := range slices.SortedFunc(maps.Keys(byTrait), func(a, b Trait) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value)) }) {
		if of := byTrait[t]; len(of) > 1 && len(of) < len(nodes) {
			all = append(all, group{[]Trait{t}, of})
		}
	}
	sameNodes := func(g group) string { return fmt.Sprint(slices.Sorted(maps.Keys(g.nodes))) }
	return lines.Map(lines.Grouped(all, sameNodes), func(alike []group) group {
		return group{slices.Concat(lines.Map(alike, func(g group) []Trait { return g.traits })...), alike[0].nodes}
	})
}

func (c *Cause) associate(nodes []*Node, groups []group, tried int) {
	affected := set{}
	for _, name := range c.Nodes {
		if i, found := slices.BinarySearchFunc(nodes, name, func(n *Node, name string) int { return cmp.Compare(n.Name, name) }); found {
			affected[i] = true
		}
	}
	if len(affected) < len(nodes) {
		c.Common = commonTo(affected, len(nodes), groups, tried)
	}
}

// commonTo is what the affected of some nodes have in common, the most telling first. Tried is how many pairs of a cause
// and a group are tried in all.
func commonTo(affected set, nodes int, groups []group, tried int) []Common {
	var all []Common
	for _, g := range groups {
		with := 0
		for i := range g.nodes {
			if affected[i] {
				with++
			}
		}
		c := Common{Traits: g.traits, With: with, Affected: len(affected), Without: len(g.nodes) - with, Others: nodes - len(affected)}
		if with < 2 {
			continue
		}
		c.P = math.Min(1, fisher(c)*float64(tried))
		if c.P <= significance {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b Common) int { return cmp.Or(cmp.Compare(a.P, b.P), cmp.Compare(b.With, a.With)) })
	return all
}

// fisher is the probability that as many of the affected, or more, are in a group by chance: the upper tail of the
// hypergeometric distribution.
func fisher(c Common) float64 {
	inGroup, total := c.With+c.Without, c.Affected+c.Others
	p := 0.0
	for k := c.With; k <= min(inGroup, c.Affected); k++ {
		p += math.Exp(choose(c.Affected, k) + choose(c.Others, inGroup-k) - choose(total, inGroup))
	}
	return math.Min(1, p)
}

// choose is the logarithm of the binomial coefficient.
func choose(n, k int) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	return combin.LogGeneralizedBinomial(float64(n), float64(k))
}
