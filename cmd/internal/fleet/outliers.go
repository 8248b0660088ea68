package fleet

import (
	"cmp"
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

// Measured is a figure of the nodes with like hardware.
type Measured struct {
	Hardware string  `json:"hardware"`
	Figure   string  `json:"figure"`
	Unit     string  `json:"unit,omitempty"`
	Nodes    int     `json:"nodes"`
	Median   float64 `json:"median"`
	// Spread is one standard deviation, estimated from the median absolute deviation.
	Spread  float64 `json:"spread"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`

	of       []*Node
	outliers []Outlier
}

// measuredOf are the figures of like nodes, with their outliers.
func measuredOf(nodes []*Node) []Measured {
	type kind struct{ hardware, figure string }
	byKind := map[kind][]*Node{}
	for _, n := range nodes {
		for name := range n.Figures {
			k := kind{n.Hardware, name}
			byKind[k] = append(byKind[k], n)
		}
	}
	figures := 0
	for _, of := range byKind {
		if len(of) >= leastGroup {
			figures += len(of)
		}
	}
	all := make([]Measured, 0, len(byKind))
	for k, of := range byKind {
		m := Measured{Hardware: k.hardware, Figure: k.figure, Unit: of[0].Figures[k.figure].Unit, Nodes: len(of), of: of}
		m.judge(figures)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Measured) int {
		return cmp.Or(cmp.Compare(a.Hardware, b.Hardware), cmp.Compare(a.Figure, b.Figure))
	})
	return all
}

// judge finds the outliers of one figure, of as many in all. The spread is estimated from a limited number of nodes: the
// limit is a quantile of Student's distribution.
func (m *Measured) judge(figures int) {
	values := make([]float64, 0, len(m.of))
	for _, n := range m.of {
		values = append(values, n.Figures[m.Figure].Value)
	}
	m.Median, m.Lowest, m.Highest = median(values), slices.Min(values), slices.Max(values)
	for i, v := range values {
		values[i] = math.Abs(v - m.Median)
	}
	m.Spread = madToSigma * median(values)
	usual := math.Max(m.Spread, leastSpread*math.Abs(m.Median))
	if len(m.of) < leastGroup || usual == 0 {
		return
	}
	limit := distuv.StudentsT{Sigma: 1, Nu: madEfficiency * float64(len(m.of)-1)}.Quantile(1 - falseAlarm/float64(2*figures))
	for _, n := range m.of {
		f := n.Figures[m.Figure]
		sigmas := (f.Value - m.Median) / math.Hypot(usual, f.Spread)
		if math.Abs(sigmas) > limit {
			m.outliers = append(m.outliers, Outlier{Node: n.Name, Figure: m.Figure, Unit: f.Unit, Value: f.Value, Median: m.Median, Nodes: len(m.of), Sigmas: sigmas})
		}
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
