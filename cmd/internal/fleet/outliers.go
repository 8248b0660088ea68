package fleet

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// falseAlarm is the probability that one of all figures of a fleet without an outlier is called one.
	falseAlarm = 0.001
	// leastGroup is how many nodes of like hardware it takes to say what is usual.
	leastGroup = 8
	// leastSpread is the spread, as a part of the median, below which a difference is no fault: what a node measures
	// again differs by as much (docs/probe.md).
	leastSpread = 0.01
	// madToSigma makes the standard deviation of a normal distribution of its median absolute deviation
	// (1/Φ⁻¹(3/4)), and madEfficiency is what that estimate is worth in nodes, as a part of them (Rousseeuw and Croux,
	// Alternatives to the Median Absolute Deviation, 1993).
	madToSigma    = 1.4826
	madEfficiency = 0.37
)

// Figure is what a node measured of one kind.
type Figure struct {
	// Value is the median of its measurements, and Spread how far these differ, as one standard deviation.
	Value  float64 `json:"value"`
	Spread float64 `json:"spread,omitempty"`
	Unit   string  `json:"unit,omitempty"`
}

// Outlier is a figure of a node that is far from those of nodes with like hardware.
type Outlier struct {
	Node   string  `json:"node"`
	Figure string  `json:"figure"`
	Unit   string  `json:"unit,omitempty"`
	Value  float64 `json:"value"`
	// Median is that of the Nodes with like hardware, and Sigmas how far the node's is from it, in
	// standard deviations; negative below it.
	Median float64 `json:"median"`
	Nodes  int     `json:"nodes"`
	Sigmas float64 `json:"sigmas"`
}

// outliersOf are the figures that are far from the others, the farthest first.
func outliersOf(nodes []*Node) []Outlier {
	type kind struct{ hardware, figure string }
	byKind := map[kind][]*Node{}
	for _, n := range nodes {
		for name := range n.Figures {
			k := kind{n.Hardware, name}
			byKind[k] = append(byKind[k], n)
		}
	}
	figures := 0
	maps.DeleteFunc(byKind, func(_ kind, of []*Node) bool { return len(of) < leastGroup })
	for _, of := range byKind {
		figures += len(of)
	}
	var all []Outlier
	for k, of := range byKind {
		all = append(all, far(k.figure, of, figures)...)
	}
	slices.SortFunc(all, func(a, b Outlier) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Sigmas), math.Abs(a.Sigmas)), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Figure, b.Figure))
	})
	return all
}

// far are the outliers of one figure among nodes with like hardware. The spread is estimated from a limited number of
// nodes: the limit is a quantile of Student's distribution.
func far(name string, of []*Node, figures int) []Outlier {
	values := make([]float64, 0, len(of))
	for _, n := range of {
		values = append(values, n.Figures[name].Value)
	}
	middle := median(values)
	away := make([]float64, 0, len(values))
	for _, v := range values {
		away = append(away, math.Abs(v-middle))
	}
	spread := math.Max(madToSigma*median(away), leastSpread*math.Abs(middle))
	if spread == 0 {
		return nil
	}
	limit := distuv.StudentsT{Sigma: 1, Nu: madEfficiency * float64(len(of)-1)}.Quantile(1 - falseAlarm/float64(2*figures))
	var all []Outlier
	for _, n := range of {
		f := n.Figures[name]
		sigmas := (f.Value - middle) / math.Hypot(spread, f.Spread)
		if math.Abs(sigmas) > limit {
			all = append(all, Outlier{Node: n.Name, Figure: name, Unit: f.Unit, Value: f.Value, Median: middle, Nodes: len(of), Sigmas: sigmas})
		}
	}
	return all
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
