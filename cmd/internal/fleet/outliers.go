package fleet

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unique"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	falseAlarm = 0.001 // The probability that one of all figures of a fleet without an outlier is called one.
	leastGroup = 8     // How many nodes of like hardware it takes to say what is usual.
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
	Value float64 `json:"value"` // The median of its measurements.
	Unit  string  `json:"unit,omitempty"`
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

// slower reports whether it is on the bad side: all figures are rates.
func (o Outlier) slower() bool { return o.Sigmas < 0 }

// Measured is a figure of the nodes with like hardware.
type Measured struct {
	Hardware string  `json:"hardware"`
	Figure   string  `json:"figure"`
	Unit     string  `json:"unit,omitempty"`
	Nodes    int     `json:"nodes"`
	Median   float64 `json:"median"`
	Spread   float64 `json:"spread"` // One standard deviation, estimated from the median absolute deviation.
	Lowest   float64 `json:"lowest"`
	Highest  float64 `json:"highest"`
}

// measuredOf are the figures of like nodes, and those that are outliers, the farthest first.
func measuredOf(nodes []*Node) ([]Measured, []Outlier) {
	type kind struct{ hardware, figure string }
	byKind := map[kind][]*Node{}
	figures := 0
	for _, n := range nodes {
		for name := range n.Figures {
			k := kind{n.Hardware, name}
			byKind[k] = append(byKind[k], n)
		}
		figures += len(n.Figures) + len(n.links)
	}
	var all []Measured
	var outliers []Outlier
	for k, of := range byKind {
		m := Measured{Hardware: k.hardware, Figure: k.figure, Unit: of[0].Figures[k.figure].Unit}
		outliers = append(outliers, m.judge(of, lines.Map(of, func(n *Node) float64 { return n.Figures[k.figure].Value }), figures)...)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Measured) int {
		return cmp.Or(cmp.Compare(a.Hardware, b.Hardware), cmp.Compare(a.Figure, b.Figure))
	})
	outliers = append(outliers, slowLinks(nodes, outliers, figures)...)
	slices.SortFunc(outliers, func(a, b Outlier) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Sigmas), math.Abs(a.Sigmas)), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Figure, b.Figure))
	})
	return all, outliers
}

// judge finds the outliers among what nodes measured of one figure, of as many in all: what is farther from the median than chance gives. The
// spread is estimated from a limited number of nodes: the limit is a quantile of Student's distribution.
func (m *Measured) judge(nodes []*Node, values []float64, figures int) (outliers []Outlier) {
	m.Nodes, m.Lowest, m.Highest = len(values), slices.Min(values), slices.Max(values)
	m.Median = median(values)
	m.Spread = madToSigma * median(lines.Map(values, func(v float64) float64 { return math.Abs(v - m.Median) }))
	spread := math.Max(m.Spread, leastSpread*math.Abs(m.Median))
	if m.Nodes < leastGroup || spread == 0 {
		return nil
	}
	limit := distuv.StudentsT{Sigma: 1, Nu: madEfficiency * float64(m.Nodes-1)}.Quantile(1 - falseAlarm/float64(2*figures))
	for i, value := range values {
		if sigmas := (value - m.Median) / spread; math.Abs(sigmas) > limit {
			outliers = append(outliers, Outlier{Node: nodes[i].Name, Figure: m.Figure, Unit: m.Unit, Value: value, Median: m.Median, Nodes: m.Nodes, Sigmas: sigmas})
		}
	}
	return outliers
}

// slowLinks are the pairs of GPUs whose transfers are far slower than those of the same pair on like nodes: one bad link
// does not change the median of a node. Where that is an outlier already, the pairs say nothing new.
func slowLinks(nodes []*Node, known []Outlier, figures int) []Outlier {
	type kind struct {
		hardware string
		name     unique.Handle[string]
	}
	type rate struct {
		node *Node
		gbps float64
	}
	byKind := map[kind][]rate{}
	for _, n := range nodes {
		for _, l := range n.links {
			k := kind{n.Hardware, l.name}
			byKind[k] = append(byKind[k], rate{n, float64(l.gbps)})
		}
	}
	test := func(node, figure string) string {
		name, _, _ := strings.Cut(strings.ReplaceAll(figure, ",", " "), " ")
		return node + "\x00" + name
	}
	told := map[string]bool{}
	for _, o := range known {
		told[test(o.Node, o.Figure)] = true
	}
	var all []Outlier
	for k, rates := range byKind {
		m := Measured{Hardware: k.hardware, Figure: k.name.Value(), Unit: "GB/s"}
		of, values := lines.Map(rates, func(r rate) *Node { return r.node }), lines.Map(rates, func(r rate) float64 { return r.gbps })
		isNew := func(o Outlier) bool { return o.slower() && !told[test(o.Node, o.Figure)] }
		all = append(all, lines.Filter(m.judge(of, values, figures), isNew)...)
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
