package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// rack is nodes whose names begin alike.
type rack struct {
	Name  string
	Cells []cell
}

// cell is a node in the picture.
type cell struct{ Name, Class, Title string }

// draw makes the picture: each node in its rack. If names tell of no racks, all are in one.
func (p *page) draw() {
	p.Size = "named"
	cells := p.cells()
	if len(cells) > fewNodes {
		p.Size = "small"
	}
	rackOf := func(c cell) string { return strings.Join(nameParts(c.Name), "-") }
	for _, alike := range lines.Grouped(cells, rackOf) {
		p.Racks = append(p.Racks, rack{Name: rackOf(alike[0]), Cells: alike})
	}
	if len(p.Racks)*2 > len(cells) {
		p.Racks = []rack{{Cells: cells}}
	}
}

// cells are the nodes, with the causes that they have, and their outliers as the last of the filters.
func (p *page) cells() []cell {
	classes, titles := map[string]string{}, map[string]string{}
	note := func(node, class, title string) {
		if !strings.Contains(classes[node], class) {
			classes[node] += class
		}
		titles[node] = lines.Joined("; ", titles[node], title)
	}
	for _, c := range p.Causes {
		class := fmt.Sprintf(" c%d", c.Number)
		if c.Number >= maxFilters {
			class = ""
		}
		for _, name := range c.Nodes {
			note(name, class, c.Title)
		}
	}
	for _, o := range p.Outliers {
		note(o.Node, fmt.Sprintf(" odd c%d", maxFilters), o.Figure+" "+short(o.Value))
	}
	cells := make([]cell, 0, len(p.Nodes)+len(p.Unreported))
	odd := 0
	for _, n := range p.Nodes {
		cells = append(cells, cell{n.Name, n.class() + classes[n.Name], lines.Joined(": ", n.Name, lines.Joined("; ", n.State, titles[n.Name]))})
		if strings.Contains(classes[n.Name], " odd") {
			odd++
		}
	}
	for _, name := range p.Unreported {
		cells = append(cells, cell{name, "n-gone", name + ": no report"})
	}
	if odd > 0 {
		p.Filters = append(p.Filters, filter{maxFilters, "", "a figure far from those of like nodes", odd})
	}
	return cells
}

// class is the colour of a node.
func (n *Node) class() string {
	switch {
	case n.ExitCode == exitFindings:
		return "n-bad"
	case n.State == string(report.Findings):
		return "n-warn"
	case n.State == string(report.Healthy) && n.ExitCode == 0:
		return "n-good"
	}
	return "n-open"
}

// histogram is a figure as a picture: 40 columns, of which the first and the last are the outliers below and above.
type histogram struct {
	Measured
	Said, Count, Middle, Low, High, Far string
	Bars                                []bar
	Line                                float64
}

// bar is how many nodes have about the same figure.
type bar struct {
	Class, Title   string
	X, Top, Height int
}

// The columns for what is no outlier, and the height of the picture.
const (
	firstColumn, columns = 2, 36
	pictureHeight        = 64
	leastBar             = 3
)

// histogram draws a figure.
func (m Measured) histogram() histogram {
	h := histogram{Measured: m, Count: lines.Count(m.Nodes, "node"), Middle: short(m.Median), Line: firstColumn + columns/2}
	var far []string
	var counts [columns + 2*firstColumn]int
	odd := map[string]bool{}
	for _, o := range m.outliers {
		odd[o.Node] = true
		far = append(far, o.Node+" "+short(o.Value))
		if o.Sigmas < 0 {
			counts[0]++
		} else {
			counts[len(counts)-1]++
		}
	}
	low, high := m.Highest, m.Lowest
	for _, n := range m.of {
		if !odd[n.Name] {
			low, high = min(low, n.Figures[m.Figure].Value), max(high, n.Figures[m.Figure].Value)
		}
	}
	width := (high - low) / columns
	if width > 0 {
		h.Line = firstColumn + (m.Median-low)/width
	}
	for _, n := range m.of {
		switch v := n.Figures[m.Figure].Value; {
		case odd[n.Name]:
		case width == 0:
			counts[firstColumn+columns/2]++
		default:
			counts[firstColumn+min(int((v-low)/width), columns-1)]++
		}
	}
	for x, n := range counts {
		if n == 0 {
			continue
		}
		height := max(leastBar, n*(pictureHeight-leastBar)/slices.Max(counts[:]))
		one := bar{"usual", lines.Count(n, "node") + " near " + short(low+(float64(x-firstColumn)+0.5)*width) + " " + m.Unit, x, pictureHeight - height, height}
		if x == 0 || x == len(counts)-1 {
			one.Class, one.Title = "odd", lines.Count(n, "outlier")
		}
		h.Bars = append(h.Bars, one)
	}
	h.Low, h.High = short(low), short(high)
	if h.Said = fmt.Sprintf("%s from %s to %s %s", m.Figure, h.Low, h.High, m.Unit); len(far) > 0 {
		h.Far = "outliers: " + lines.First(far, textLimits.names, ", ")
		h.Said += "; " + h.Far
	}
	return h
}
