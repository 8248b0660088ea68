package nodes

import (
	"cmp"
	"math"
	"slices"
)

// Skew is a node whose clock differs from that of another one.
type Skew struct {
	Node, Of string
	Clock
}

// Skews are the nodes whose clocks differ by more than limit seconds, whatever the error, from the clock in the middle of all, the
// farthest first. The middle of two is the first rank's.
func (r *Report) Skews(limit float64) []Skew {
	known := slices.DeleteFunc(slices.Clone(r.Nodes), func(n Peer) bool { return n.Clock == nil })
	if len(known) == 0 {
		return nil
	}
	middle := known[0]
	if len(known) > 2 {
		slices.SortStableFunc(known, func(a, b Peer) int { return cmp.Compare(a.Clock.Ahead, b.Clock.Ahead) })
		middle = known[len(known)/2]
	}
	var all []Skew
	for _, n := range known {
		c := Clock{Ahead: n.Clock.Ahead - middle.Clock.Ahead, Error: n.Clock.Error + middle.Clock.Error}
		if math.Abs(c.Ahead)-c.Error > limit {
			all = append(all, Skew{Node: n.Name, Of: middle.Name, Clock: c})
		}
	}
	slices.SortStableFunc(all, func(a, b Skew) int { return cmp.Compare(math.Abs(b.Ahead), math.Abs(a.Ahead)) })
	return all
}
