package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

type graph struct {
	nodes     []string
	good, bad map[string][]string // The partners with which a node works, and with which not.
	reason    map[[2]string]string
	// fails and fail are the verbs for what is bad.
	fails, fail string
}

// newGraph reads pairs. Those of which bad says neither true nor false are left out.
func newGraph(nodes []string, pairs []Run, bad func(Run) (is, known bool)) *graph {
	g := &graph{nodes: nodes, good: map[string][]string{}, bad: map[string][]string{}, reason: map[[2]string]string{}, fails: "fails", fail: "fail"}
	among := map[string]bool{} // There may be a million pairs.
	for _, n := range nodes {
		among[n] = true
	}
	for _, p := range pairs {
		a, b := p.Nodes[0], p.Nodes[1]
		is, known := bad(p)
		switch {
		case !known || !among[a] || !among[b]:
		case is:
			g.bad[a], g.bad[b] = append(g.bad[a], b), append(g.bad[b], a)
			g.reason[[2]string{a, b}], g.reason[[2]string{b, a}] = p.Reason, p.Reason
		default:
			g.good[a], g.good[b] = append(g.good[a], b), append(g.good[b], a)
		}
	}
	return g
}

// parts are the groups of nodes that reach each other through pairs that work, the largest first.
func (g *graph) parts() [][]string {
	seen := map[string]bool{}
	var all [][]string
	for _, n := range g.nodes {
		if seen[n] || len(g.good[n])+len(g.bad[n]) == 0 {
			continue
		}
		part := []string{n}
		seen[n] = true
		for i := 0; i < len(part); i++ {
			for _, other := range g.good[part[i]] {
				if !seen[other] {
					seen[other] = true
					part = append(part, other)
				}
			}
		}
		slices.Sort(part)
		all = append(all, part)
	}
	slices.SortStableFunc(all, func(a, b []string) int { return cmp.Compare(len(b), len(a)) })
	return all
}

// judge says which nodes, and which paths between two, explain the pairs that are bad. A node that works with nobody, while others
// work with each other, is bad itself. Groups that work among themselves only are split. Among nodes that work with some, one that
// fails with most of its partners is likely bad, and what is left are single pairs.
func (g *graph) judge() []Blame {
	parts := g.parts()
	switch {
	case len(parts) == 0 || len(g.bad) == 0:
		return nil
	case len(parts[0]) == 1 && len(parts) == 2:
		a, b := parts[0][0], parts[1][0]
		return []Blame{{Kind: AtPair, Nodes: []string{a, b}, Because: []string{g.reason[[2]string{a, b}], "there is no third node to tell which of the two it is"}}}
	case len(parts[0]) == 1:
		return []Blame{{Kind: AtAll, Nodes: g.nodes, Because: []string{fmt.Sprintf("no pair of %d nodes works", len(parts)), g.reason[[2]string{parts[0][0], g.bad[parts[0][0]][0]}]}}}
	}
	var blames []Blame
	out := map[string]bool{}
	for _, part := range parts[1:] {
		for _, n := range part {
			out[n] = true
		}
		if b, is := g.apart(part, len(part) == len(parts[0])); is {
			blames = append(blames, b)
		}
	}
	return append(blames, g.within(out)...)
}

// apart judges a node, or several, that work with none of the others. It is false where no pair with these was tried.
func (g *graph) apart(part []string, half bool) (Blame, bool) {
	partners := map[string]bool{}
	reason := ""
	for _, n := range part {
		for _, other := range g.bad[n] {
			if !slices.Contains(part, other) {
				partners[other] = true
				reason = cmp.Or(reason, g.reason[[2]string{n, other}])
			}
		}
	}
	with := fmt.Sprintf("each of the %s that were tried: %s", nodesOf(len(partners)), reason)
	if len(part) > 1 {
		return Blame{Kind: AtSplit, Nodes: part, Likely: half, Because: []string{fmt.Sprintf("these %d work among themselves, and %s with %s", len(part), g.fail, with)}}, len(partners) > 0
	}
	return Blame{Kind: AtNode, Nodes: part, Likely: len(partners) == 1, Because: []string{"it " + g.fails + " with " + with}}, len(partners) > 0
}

// within judges the bad pairs of nodes that work with others.
func (g *graph) within(out map[string]bool) []Blame {
	var blames []Blame
	left := map[string][]string{}
	for _, n := range g.nodes {
		for _, other := range g.bad[n] {
			if !out[n] && !out[other] {
				left[n] = append(left[n], other)
			}
		}
	}
	byBad := slices.Clone(g.nodes)
	slices.SortStableFunc(byBad, func(a, b string) int { return cmp.Compare(len(left[b]), len(left[a])) })
	for _, n := range byBad {
		bad := slices.DeleteFunc(slices.Clone(left[n]), func(other string) bool { return out[other] })
		if len(bad) < 2 || len(bad) <= len(g.good[n]) {
			continue
		}
		out[n] = true
		blames = append(blames, Blame{Kind: AtNode, Nodes: []string{n}, Likely: true, Because: []string{
			fmt.Sprintf("it %s with %s (%s) and not with %d: %s", g.fails, nodesOf(len(bad)), strings.Join(bad[:min(len(bad), 4)], ", "), len(g.good[n]), g.reason[[2]string{n, bad[0]}]),
		}})
	}
	for _, n := range g.nodes {
		for _, other := range left[n] {
			if n < other && !out[n] && !out[other] {
				blames = append(blames, Blame{Kind: AtPair, Nodes: []string{n, other}, Because: []string{
					fmt.Sprintf("each works with others (%d and %d), and this pair %s: %s", len(g.good[n]), len(g.good[other]), g.fails, g.reason[[2]string{n, other}]),
				}})
			}
		}
	}
	return blames
}

func nodesOf(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
